import {
  type Backoff,
  backoffMs,
  DEFAULT_BACKOFF,
  errorMessage,
  type LogBatch,
  pause,
  type StalledPartition,
  type Topic
} from '@gamenet/schemas'
import { eventTablesOf } from '../events/event-tables.js'
import type { LogReader } from './log.js'
import type { FromReader, LoaderPort, ToReader } from './message.js'
import { RowBuilder } from './row-builder.js'
import { peopleOf, SealKeyCache } from './seal-key-cache.js'

export type { FromReader }

/** Maximum number of batches on the way: one being stored, one waiting. */
const CREDITS = 2
/** More rows than one scrape: a backlog is being read, and a pause only means that the log fetches its next chunk. */
const BACKLOG_ROWS = 2000
/** After this pause the log has been read to its end, and the current rows are sent. */
const IDLE_MS = { scrape: 5, backlog: 100 }
/** Longest wait of a row while the storing side is free and records keep trickling in. */
const PATIENCE_MS = { scrape: 250, backlog: 1000 }

/** The dependencies of the loader's reading side. */
export type LoaderWorkerOptions = {
  readonly port: LoaderPort
  readonly reader: LogReader
  readonly topics: readonly Topic[]
  readonly backoff?: Backoff
}

/**
 * The reader thread of the loader: reads the topics, validates each record, builds its row, and posts the rows as
 * bytes. Runs in a worker thread (whose entry opens the log and calls this) or in the storing side's thread. Resolves
 * after `stop`.
 *
 * It keeps no state across a crash: the storing side provides the start of each partition, from the checkpoint that was
 * written after the rows. Records on the way are read again; a row stored twice counts once.
 */
export async function runLoaderWorker(options: LoaderWorkerOptions): Promise<void> {
  const { port, reader, topics, backoff = DEFAULT_BACKOFF } = options
  const stop = new AbortController()
  const post = (message: FromReader, transfer?: ArrayBuffer[]) => port.postMessage(message, transfer)
  const questions = new Questions(post)
  const sealKeys = new SealKeyCache(
    async (topic, people) => (await questions.ask((id) => ({ kind: 'seal-keys', id, topic, people }))).keys
  )
  const outbox = new Outbox(post, stop.signal, topics, sealKeys)

  const answerExtents = async (id: number, topic: string) => {
    try {
      post({ kind: 'extents', id, extents: await reader.extents(topic) })
    } catch (error) {
      post({ kind: 'extents-failed', id, reason: errorMessage(error) })
    }
  }
  const commit = async ({ topic, progress }: Extract<ToReader, { kind: 'stored' }>) => {
    try {
      for (const position of progress) await reader.commit(topic, position)
    } catch (error) {
      post({ kind: 'commit-failed', topic, reason: errorMessage(error) })
    }
  }
  port.on('message', (received) => {
    const message = received as ToReader
    if (message.kind === 'stored') {
      outbox.credit()
      void commit(message)
    } else if (message.kind === 'start-at' || message.kind === 'seal-keys') questions.answer(message)
    else if (message.kind === 'extents') void answerExtents(message.id, message.topic)
    else {
      stop.abort()
      questions.end(new Error('the loader was stopped'))
    }
  })

  const startAt = async (topic: string, epoch: number, partition: number) =>
    (await questions.ask((id) => ({ kind: 'start-at', id, topic, epoch, partition }))).next

  const onStall = (stalled: StalledPartition) => post({ kind: 'stalled', stalled })
  const onAssigned = (partitions: ReadonlyMap<string, number>) => post({ kind: 'assigned', partitions })

  for (let failures = 0; !stop.signal.aborted; ) {
    const deliver = async (batch: LogBatch) => {
      if (failures > 0) post({ kind: 'trouble', reason: null })
      failures = 0
      await outbox.deliver(batch)
    }
    try {
      const names = topics.map((topic) => topic.name)
      await reader.consume({ topics: names, startAt, deliver, onStall, onAssigned, signal: stop.signal })
      if (!stop.signal.aborted) throw new Error('reading the log ended by itself')
    } catch (error) {
      if (stop.signal.aborted) break
      failures += 1
      post({ kind: 'trouble', reason: errorMessage(error) })
      await pause(backoffMs(backoff, failures), stop.signal)
    }
  }
  outbox.close()
  post({ kind: 'stopped' })
}

type Question = Extract<FromReader, { kind: 'start-at' | 'seal-keys' }>
type Answer = Extract<ToReader, { kind: Question['kind'] }>

/** Requests to the storing side that are not answered yet. */
class Questions {
  readonly #post: (message: Question) => void
  readonly #waiting = new Map<number, { resolve: (answer: Answer) => void; reject: (error: Error) => void }>()
  #lastId = 0

  constructor(post: (message: Question) => void) {
    this.#post = post
  }

  /** Sends a request; its answer has the same kind. */
  ask<Query extends Question>(question: (id: number) => Query): Promise<Extract<Answer, { kind: Query['kind'] }>> {
    this.#lastId += 1
    const id = this.#lastId
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve: resolve as (answer: Answer) => void, reject })
      this.#post(question(id))
    })
  }

  answer(answer: Answer): void {
    this.#waiting.get(answer.id)?.resolve(answer)
    this.#waiting.delete(answer.id)
  }

  end(error: Error): void {
    for (const { reject } of this.#waiting.values()) reject(error)
  }
}

/**
 * Rows for the storing side. A full batch is sent as soon as there is a credit; a partial one only when nothing is
 * being stored and the log has nothing more at the moment. So a single event leaves after 5 ms, and a backlog leaves in
 * whole batches, which keeps the number of parts low.
 */
class Outbox {
  readonly #post: (message: FromReader, transfer: ArrayBuffer[]) => void
  readonly #signal: AbortSignal
  readonly #builders: ReadonlyMap<string, RowBuilder>
  readonly #sealKeys: SealKeyCache
  #inFlight = 0
  #waiting: (() => void)[] = []
  #timer: NodeJS.Timeout | undefined
  #isIdle = false

  constructor(
    post: (message: FromReader, transfer: ArrayBuffer[]) => void,
    signal: AbortSignal,
    topics: readonly Topic[],
    sealKeys: SealKeyCache
  ) {
    this.#post = post
    this.#signal = signal
    this.#sealKeys = sealKeys
    this.#builders = new Map(eventTablesOf(topics).map((table) => [table.topic.name, new RowBuilder(table)]))
    signal.addEventListener('abort', () => this.#wake(), { once: true })
  }

  async deliver(batch: LogBatch): Promise<void> {
    const builder = this.#builders.get(batch.topic)
    if (builder === undefined) throw new Error(`The log delivered topic ${batch.topic}, which was not requested.`)
    const keys = builder.isSealed ? await this.#sealKeys.of(batch.topic, peopleOf(batch.records)) : undefined
    const sealKeyOf = keys === undefined ? undefined : (person: number) => keys.get(person)
    clearTimeout(this.#timer)
    this.#isIdle = false
    for (const record of batch.records) {
      while (builder.isFull && !this.#signal.aborted) {
        this.#pump()
        if (builder.isFull) await new Promise<void>((resolve) => this.#waiting.push(resolve))
      }
      if (this.#signal.aborted) return
      builder.add(batch.epoch, batch.partition, record, sealKeyOf)
    }
    if (batch.next !== undefined) builder.reach(batch.epoch, batch.partition, batch.next)
    this.#pump()
    this.#timer = setTimeout(
      () => {
        // Records of a full batch that wait for a credit follow.
        this.#isIdle = this.#waiting.length === 0
        this.#pump()
      },
      // A backlog of another topic continues, even if it does so after a longer pause than a scrape has.
      IDLE_MS[[...this.#builders.values()].some(({ rows }) => rows >= BACKLOG_ROWS) ? 'backlog' : 'scrape']
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
    this.#post({ kind: 'batch', batch, isLast: this.#isIdle }, [
      batch.events.native.buffer,
      batch.deadLetters.native.buffer
    ])
    this.#wake()
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}
