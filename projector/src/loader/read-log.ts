import type { LogBatch, Topic } from '@gamenet/schemas'
import { type Backoff, backoffMs, DEFAULT_BACKOFF, pause, reasonOf } from '../backoff.js'
import { eventTables } from '../event-tables.js'
import type { LogReader } from '../log.js'
import type { FromReader, LoaderPort, ToReader } from './message.js'
import { RowBuilder } from './row-builder.js'

/** Batches that may be on their way: one being stored, one behind it. */
const CREDITS = 2
/** More rows than one scrape makes: a backlog is being read, and a pause is only the log fetching its next piece. */
const BACKLOG_ROWS = 2000
/** Nothing more came for this long: the log has been read to its end, so what there is goes out. */
const IDLE_MS = { scrape: 5, backlog: 100 }
/** A trickle that never pauses: nothing waits longer than this while the storing side is free. */
const PATIENCE_MS = { scrape: 250, backlog: 1000 }

/** What the reading side of the loader needs. */
export type LoaderWorkerOptions = {
  readonly port: LoaderPort
  readonly reader: LogReader
  readonly topics: readonly Topic[]
  readonly backoff?: Backoff
}

/**
 * The reading side of the loader: reads the topics, judges each record and builds its row, and posts the rows as bytes.
 * Runs in a worker thread (its entry opens the log and calls this) or beside the storing side. Resolves after `stop`.
 *
 * It remembers nothing across a crash: the storing side tells where each partition begins, from the checkpoint that was
 * written after the rows. What was on its way is read again, and a row stored twice reads as one.
 */
export async function runLoaderWorker(options: LoaderWorkerOptions): Promise<void> {
  const { port, reader, topics, backoff = DEFAULT_BACKOFF } = options
  const stop = new AbortController()
  const post = (message: FromReader, transfer?: ArrayBuffer[]) => port.postMessage(message, transfer)
  const outbox = new Outbox(post, stop.signal, topics)
  const positions = new Map<number, { resolve: (next: number) => void; reject: (error: Error) => void }>()
  let asked = 0

  const answerExtents = async (id: number, topic: string) => {
    try {
      post({ kind: 'extents', id, extents: await reader.extents(topic) })
    } catch (error) {
      post({ kind: 'extents-failed', id, reason: reasonOf(error) })
    }
  }
  const commit = async ({ topic, progress }: Extract<ToReader, { kind: 'stored' }>) => {
    try {
      for (const position of progress) await reader.commit(topic, position)
    } catch (error) {
      post({ kind: 'commit-failed', topic, reason: reasonOf(error) })
    }
  }
  port.on('message', (received) => {
    const message = received as ToReader
    if (message.kind === 'stored') {
      outbox.credit()
      void commit(message)
    } else if (message.kind === 'start-at') {
      positions.get(message.id)?.resolve(message.next)
      positions.delete(message.id)
    } else if (message.kind === 'extents') void answerExtents(message.id, message.topic)
    else {
      stop.abort()
      for (const { reject } of positions.values()) reject(new Error('the loader was stopped'))
    }
  })

  const startAt = (topic: string, epoch: number, partition: number) =>
    new Promise<number>((resolve, reject) => {
      asked += 1
      positions.set(asked, { resolve, reject })
      post({ kind: 'start-at', id: asked, topic, epoch, partition })
    })

  for (let failures = 0; !stop.signal.aborted; ) {
    const deliver = async (batch: LogBatch) => {
      if (failures > 0) post({ kind: 'trouble', reason: null })
      failures = 0
      await outbox.deliver(batch)
    }
    try {
      await reader.consume({ topics: topics.map((topic) => topic.name), startAt, deliver, signal: stop.signal })
      if (!stop.signal.aborted) throw new Error('reading the log ended by itself')
    } catch (error) {
      if (stop.signal.aborted) break
      failures += 1
      post({ kind: 'trouble', reason: reasonOf(error) })
      await pause(backoffMs(backoff, failures), stop.signal)
    }
  }
  outbox.close()
  post({ kind: 'stopped' })
}

/**
 * Rows on their way to the storing side. A full batch goes as soon as there is a credit; a partial one only when nothing
 * is being stored, and when the log has nothing more at the moment. So a single event leaves after 5 ms, and a backlog
 * leaves in whole batches, which keeps the number of parts low.
 */
class Outbox {
  readonly #post: (message: FromReader, transfer: ArrayBuffer[]) => void
  readonly #signal: AbortSignal
  readonly #builders: ReadonlyMap<string, RowBuilder>
  #inFlight = 0
  #waiting: (() => void)[] = []
  #timer: NodeJS.Timeout | undefined
  #isIdle = false

  constructor(
    post: (message: FromReader, transfer: ArrayBuffer[]) => void,
    signal: AbortSignal,
    topics: readonly Topic[]
  ) {
    this.#post = post
    this.#signal = signal
    const wanted = new Set(topics.map((topic) => topic.name))
    const tables = eventTables.filter((table) => wanted.has(table.topic.name))
    this.#builders = new Map(tables.map((table) => [table.topic.name, new RowBuilder(table)]))
    signal.addEventListener('abort', () => this.#wake(), { once: true })
  }

  async deliver(batch: LogBatch): Promise<void> {
    const builder = this.#builders.get(batch.topic)
    if (builder === undefined) throw new Error(`The log gave topic ${batch.topic}, which was not asked for.`)
    clearTimeout(this.#timer)
    this.#isIdle = false
    for (const record of batch.records) {
      while (builder.isFull && !this.#signal.aborted) {
        this.#pump()
        if (builder.isFull) await new Promise<void>((resolve) => this.#waiting.push(resolve))
      }
      if (this.#signal.aborted) return
      builder.add(batch.epoch, batch.partition, record)
    }
    this.#pump()
    this.#timer = setTimeout(
      () => {
        this.#isIdle = true
        this.#pump()
      },
      IDLE_MS[builder.rows < BACKLOG_ROWS ? 'scrape' : 'backlog']
    )
  }

  credit(): void {
    this.#inFlight -= 1
    this.#pump()
  }

  close(): void {
    clearTimeout(this.#timer)
  }

  #pump(): void {
    if (this.#signal.aborted) return
    for (const builder of this.#builders.values()) {
      if (this.#inFlight < CREDITS && builder.isFull) this.#send(builder)
    }
    const [oldest] = [...this.#builders.values()].filter((each) => !each.isEmpty).sort((a, b) => a.since - b.since)
    if (this.#inFlight > 0 || oldest === undefined) return
    if (
      this.#isIdle ||
      performance.now() - oldest.since >= PATIENCE_MS[oldest.rows < BACKLOG_ROWS ? 'scrape' : 'backlog']
    )
      this.#send(oldest)
  }

  #send(builder: RowBuilder): void {
    const batch = builder.take()
    this.#inFlight += 1
    this.#post({ kind: 'batch', batch }, [batch.events.body.buffer, batch.parked.body.buffer])
    this.#wake()
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}
