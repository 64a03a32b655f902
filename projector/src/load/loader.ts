import {
  type Backoff,
  backoffMs,
  DEFAULT_BACKOFF,
  errorMessage,
  isFailure,
  type Logger,
  loadCheckpoint,
  Mutex,
  type PartitionExtent,
  pause,
  type StalledPartition,
  type Topic
} from '@gamenet/schemas'
import type { EventTable } from '../events/event-table.js'
import { eventTables } from '../events/event-tables.js'
import { ownerOf } from '../generations/generations.js'
import { LOCAL_PASS_LOCK, type PassLock } from '../generations/pass-lock.js'
import { importRetraction } from '../projections/import-retraction.js'
import { type Checkpoint, Checkpoints, type Progress, storeCheckpoints } from '../store/checkpoint.js'
import { storeDeadLetters } from '../store/dead-letter.js'
import { deleteImports, PEOPLE_CHECKPOINT, storeEvents } from '../store/event-table.js'
import { eventOwner, namesOf, type Pointers } from '../store/generation.js'
import { readRetractedImports } from '../store/import.js'
import type { Store } from '../store/operation.js'
import type { FromReader, LoaderPort, RowBatch, ToReader } from './message.js'
import type { Metrics } from './projector-metrics.js'
import { SealKeyCache, type SealKeys } from './seal-key-cache.js'
import { describeStall } from './stalled-partitions.js'

/** A started reading side. */
export type ReadingSide = {
  readonly port: LoaderPort
  /** Resolves or rejects when it has ended, for any reason (a worker's `exit` and `error`). */
  readonly ended: Promise<void>
  /** Ends it at once; called after it reported that it stopped, or when it did not in time. */
  close(): Promise<void>
}

/** A share of the partitions: those whose number modulo `of` is `index`. */
export type Share = { readonly index: number; readonly of: number }

export type LoaderOptions = {
  readonly store: Store
  readonly topics: readonly Topic[]
  /** Starts a reading side: a worker thread. Called again when the previous one has died. */
  readonly startReading: (share: Share) => Promise<ReadingSide>
  /** Number of concurrent reading sides, each with its share of the partitions. Default: 1. */
  readonly readers?: number | undefined
  /** Returns the existing seal keys of these people. */
  readonly sealKeys: (people: readonly number[]) => Promise<SealKeys>
  readonly metrics: Metrics
  readonly logger: Logger
  /** Called after rows and their checkpoint are stored. */
  readonly onStored: () => void
  /**
   * Returns the pointers; event tables are those that steps write. Default: the tables of `store`, for a loader of a
   * rebuild.
   */
  readonly pointers?: () => Promise<Pointers>
  /** Wraps each store, so that others can wait for running ones. */
  readonly passLock?: Pick<PassLock, 'shared'>
  readonly backoff?: Backoff
  /** Milliseconds of a monotonic clock, for tests. */
  readonly now?: () => number
}

/** What is stalled, and why. */
export type LoaderTrouble = {
  readonly reading: string | null
  readonly storing: {
    readonly topic: string
    readonly reason: string
    /** True if a repetition fails again. */
    readonly isFinal: boolean
  } | null
}

export type Loader = {
  start(): void
  /** Ends reading and storing. Records that are not stored are read again at the next start. */
  stop(): Promise<void>
  /** Returns the current extents of the topic's partitions. */
  extents(topic: string): Promise<readonly PartitionExtent[]>
  trouble(): LoaderTrouble
  /**
   * Partitions that were stalled by a damaged batch, or because the log ended before their checkpoint. Those with a
   * checkpoint after `wanted` have resumed.
   */
  stalled(): readonly StalledPartition[]
  /** True while large batches keep coming: there is a backlog. */
  isBusy(): boolean
  /** Reads topics again from their checkpoints if these pointers name another generation of their event tables. */
  follow(pointers: Pointers): void
  /** Runs work while nothing is stored. */
  whilePaused<Result>(work: () => Promise<Result>): Promise<Result>
}

/**
 * The result of a batch. `outdated`: it may contain rows of a person erased since they were decrypted. `swapped`: a
 * swap has moved the pointer to another generation of the event table, which has been loaded to another position.
 */
type Outcome = 'stored' | 'stopped' | 'outdated' | 'swapped'

const STOP_MS = 3000
/** An offset that no log has: the partition stays stalled. */
const NOWHERE = Number.MAX_SAFE_INTEGER
const ENDED = {
  stopped: 'stopped',
  outdated: 'a key was deleted or is unavailable: rows are not stored, and are read again',
  swapped: 'a swap'
}
/**
 * A batch with this many rows that is not the last indicates a backlog, which is assumed to last this long after it.
 */
const BUSY_ROWS = 8192
const BUSY_MS = 1000

/**
 * The storing side of the loader. Order per batch: rows → dead letters → checkpoint → credit (and the log's commit).
 * After a crash in between the same records are read and stored again, which is idempotent: event tables and dead
 * letters are keyed by position. A failed store is retried forever with backoff; meanwhile no credit is returned, so
 * reading waits. When a seal key was deleted while its rows waited, nothing more of that reading is stored, and a new
 * one starts at the checkpoint.
 */
export function createLoader(options: LoaderOptions): Loader {
  const storing = new Storing(options)
  const stopping = new AbortController()
  const of = options.readers ?? 1
  const readers = Array.from({ length: of }, (_, index) => {
    return new Reader(options, { index, of }, storing, stopping.signal)
  })
  const trouble = () => readers.map((reader) => reader.trouble).find((reason) => reason !== null) ?? null
  return {
    start: () => {
      for (const reader of readers) reader.start()
    },
    stop: async () => {
      stopping.abort()
      await Promise.all(readers.map((reader) => reader.stop()))
      await storing.idle()
    },
    extents: async (topic) => {
      const session = readers.map((reader) => reader.session).find((each) => each !== undefined)
      if (session === undefined) throw new Error(trouble() ?? 'the loader has not started yet')
      return await session.extents(topic)
    },
    trouble: () => ({ reading: trouble(), storing: storing.trouble }),
    stalled: () => [...storing.stalled.values()],
    isBusy: () => storing.isBusy(),
    follow: (pointers) => {
      for (const reader of readers) reader.session?.follow(pointers)
    },
    whilePaused: (work) => storing.between(work)
  }
}

/** Runs one reading side after another, until the loader is stopped. */
class Reader {
  /** Undefined while none runs. */
  session: Session | undefined
  /** Why reading is stalled. */
  trouble: string | null = null
  readonly #options: LoaderOptions
  readonly #share: Share
  readonly #storing: Storing
  readonly #signal: AbortSignal
  #running: Promise<void> = Promise.resolve()

  constructor(options: LoaderOptions, share: Share, storing: Storing, signal: AbortSignal) {
    this.#options = options
    this.#share = share
    this.#storing = storing
    this.#signal = signal
  }

  start(): void {
    this.#running = this.#run()
  }

  /** To be called after the signal has aborted. */
  async stop(): Promise<void> {
    this.session?.stop()
    await this.#running
  }

  async #run(): Promise<void> {
    for (let failures = 1; !this.#signal.aborted; failures += 1) {
      const begun = performance.now()
      try {
        await this.#readOnce()
        // After a swap it continues at once: otherwise pauses would add up over successive swaps.
        failures = 0
      } catch (error) {
        if (this.#signal.aborted) return
        if (performance.now() - begun > 60_000) failures = 1
        this.trouble = errorMessage(error)
        this.#options.logger.error({ reason: this.trouble }, 'the loader is restarted')
        await pause(backoffMs(this.#options.backoff ?? DEFAULT_BACKOFF, failures), this.#signal)
      }
    }
  }

  async #readOnce(): Promise<void> {
    const side = await this.#options.startReading(this.#share)
    const session = new Session(side.port, this.#storing, this.#options, this.#signal, (reason) => {
      if (reason !== null) this.#options.logger.warn({ reason }, 'reading the log failed; retrying')
      this.trouble = reason
    })
    this.session = session
    if (this.#signal.aborted) session.stop()
    const ended = side.ended.then(
      () => 'the reader thread of the loader ended by itself',
      (error: unknown) => `the reader thread of the loader failed: ${errorMessage(error)}`
    )
    this.trouble = null
    const reason = await Promise.race([ended, session.stopped])
    session.end(reason)
    this.session = undefined
    await side.close()
    if (!this.#signal.aborted && reason !== ENDED.swapped) throw new Error(reason)
  }
}

type Sent = Omit<Extract<FromReader, { kind: 'batch' }>, 'kind'>

/** One run of a reading side. */
class Session {
  /** Resolves with the reason when reading has ended on request. */
  readonly stopped: Promise<string>
  readonly #port: LoaderPort
  readonly #options: Pick<LoaderOptions, 'topics' | 'metrics'>
  readonly #signal: AbortSignal
  readonly #extentRequests = new Map<
    number,
    { resolve: (extents: readonly PartitionExtent[]) => void; reject: (error: Error) => void }
  >()
  #lastId = 0
  #endReason: string | undefined
  #stopped: () => void = () => {}
  /** After the first batch that must not be stored, no later one is stored: their checkpoint would cover it. */
  #outdated: 'outdated' | 'swapped' | undefined
  /** Whether the log has groups: an embedded one assigns nothing. */
  #isAssigned = false
  /** The generation of each topic's event table at whose checkpoint this session began. */
  readonly #generations = new Map<string, number>()

  constructor(
    port: LoaderPort,
    storing: Storing,
    options: LoaderOptions,
    signal: AbortSignal,
    onTrouble: (reason: string | null) => void
  ) {
    const { logger, metrics } = options
    this.#port = port
    this.#options = options
    this.#signal = signal
    this.stopped = new Promise((resolve) => {
      this.#stopped = () => resolve(ENDED[this.#outdated ?? 'stopped'])
    })
    port.on('message', (received) => {
      const message = received as FromReader
      if (message.kind === 'batch') void this.#store(storing, message)
      else if (message.kind === 'start-at') void this.#startAt(storing, message)
      else if (message.kind === 'seal-keys') void this.#sealKeys(storing, message)
      else if (message.kind === 'extents') this.#extentRequests.get(message.id)?.resolve(message.extents)
      else if (message.kind === 'extents-failed')
        this.#extentRequests.get(message.id)?.reject(new Error(message.reason))
      else if (message.kind === 'trouble') onTrouble(message.reason)
      else if (message.kind === 'stalled') {
        const { topic, epoch, partition, damage, wanted, next } = message.stalled
        if (wanted === NOWHERE) return
        if (damage !== undefined || wanted > next)
          storing.stalled.set(`${topic}/${epoch}/${partition}`, message.stalled)
        logger.error({ reason: describeStall(message.stalled) }, 'a partition is stalled')
      } else if (message.kind === 'assigned') this.#showAssigned(message.partitions)
      else if (message.kind === 'replaced') {
        metrics.replacedReaders.inc()
        logger.warn(message, 'the reader of the log is replaced')
      } else if (message.kind === 'commit-failed') logger.warn(message, 'the log refused a commit')
      else this.#stopped()
    })
  }

  stop(): void {
    this.#post({ kind: 'stop' })
    setTimeout(this.#stopped, STOP_MS).unref()
  }

  /** Ends the session if steps now write another generation of a topic than the one that this session reads for. */
  follow(pointers: Pointers): void {
    const isOther = ([name, generation]: readonly [string, number]) =>
      pointers.of(eventOwner({ name })).writes !== generation
    if ([...this.#generations].some(isOther)) this.#endAs('swapped')
  }

  #showAssigned(partitions: ReadonlyMap<string, number>): void {
    this.#isAssigned = true
    const { topics, metrics } = this.#options
    for (const { name: topic } of topics) metrics.assignedPartitions.set({ topic }, partitions.get(topic) ?? 0)
  }

  #endAs(outdated: 'outdated' | 'swapped'): void {
    if (this.#outdated !== undefined) return
    this.#outdated = outdated
    this.stop()
  }

  end(reason: string): void {
    this.#endReason = reason
    // A reading side that died has not reported that it left the group.
    if (this.#isAssigned) this.#showAssigned(new Map())
    for (const { reject } of this.#extentRequests.values()) reject(new Error(reason))
  }

  async extents(topic: string): Promise<readonly PartitionExtent[]> {
    this.#lastId += 1
    const id = this.#lastId
    try {
      return await new Promise((resolve, reject) => {
        this.#extentRequests.set(id, { resolve, reject })
        this.#post({ kind: 'extents', id, topic })
      })
    } finally {
      this.#extentRequests.delete(id)
    }
  }

  async #store(storing: Storing, { batch, isLast }: Sent): Promise<void> {
    const generation = this.#generations.get(batch.topic) ?? 0
    const outcome = await storing.store({ batch, isLast, generation }, this.#signal, () => this.#outdated)
    if (outcome === 'outdated' || outcome === 'swapped') this.#endAs(outcome)
    else if (outcome === 'stored') this.#post({ kind: 'stored', topic: batch.topic, progress: batch.progress })
  }

  async #startAt(storing: Storing, request: { id: number; topic: string } & Omit<Progress, 'next'>): Promise<void> {
    const start = await storing.startAt(request.topic, request.epoch, request.partition, this.#signal)
    if (start === undefined) return
    const { next, generation } = start
    if ((this.#generations.get(request.topic) ?? generation) !== generation) {
      this.#endAs('swapped')
      return
    }
    this.#generations.set(request.topic, generation)
    this.#post({ kind: 'start-at', id: request.id, next })
  }

  async #sealKeys(storing: Storing, request: { id: number; topic: string; people: readonly number[] }): Promise<void> {
    const keys = await storing.sealKeys(request.topic, request.people, this.#signal)
    if (keys !== undefined) this.#post({ kind: 'seal-keys', id: request.id, keys })
  }

  #post(message: ToReader): void {
    if (this.#endReason === undefined) this.#port.postMessage(message)
  }
}

/** All work on the tables, in sequence. */
class Storing {
  trouble: LoaderTrouble['storing'] = null
  readonly stalled = new Map<string, StalledPartition>()
  readonly #options: LoaderOptions
  readonly #columns: ReadonlyMap<string, EventTable>
  readonly #sealKeys: SealKeyCache
  readonly #mutex = new Mutex()
  #waiting = 0
  #nextPerson = 0
  #fullAt = Number.NEGATIVE_INFINITY

  constructor(options: LoaderOptions) {
    this.#options = options
    this.#sealKeys = new SealKeyCache((_topic, people) => options.sealKeys(people), options.now)
    this.#columns = new Map(eventTables.map((each) => [each.topic.name, each]))
  }

  isBusy(): boolean {
    return this.#waiting > 1 || performance.now() - this.#fullAt < BUSY_MS
  }

  between<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#mutex.run(work)
  }

  async idle(): Promise<void> {
    await this.#mutex.idle()
  }

  async store(
    { batch, isLast, generation }: Sent & { readonly generation: number },
    signal: AbortSignal,
    outdated: () => Outcome | undefined
  ): Promise<Outcome> {
    const { passLock: passes = LOCAL_PASS_LOCK } = this.#options
    this.#waiting += 1
    const outcome = await this.#mutex.run(async () => {
      const before = outdated()
      if (before !== undefined) return before
      const stored = await this.#untilDone(batch.topic, signal, () =>
        passes.shared((check) => this.#storeOnce(batch, generation, check))
      )
      return stored ?? 'stopped'
    })
    this.#waiting -= 1
    if (outcome !== 'stored') return outcome
    if (isLast) this.#fullAt = Number.NEGATIVE_INFINITY
    else if (batch.events.rows >= BUSY_ROWS) this.#fullAt = performance.now()
    this.#options.onStored()
    return outcome
  }

  /**
   * Returns the first offset that is not stored yet, and in which generation; undefined if the loader was stopped
   * before.
   */
  startAt(
    topic: string,
    epoch: number,
    partition: number,
    signal: AbortSignal
  ): Promise<{ readonly next: number; readonly generation: number } | undefined> {
    return this.#untilDone(topic, signal, async () => {
      const { store, generation } = await this.#tablesOf(topic)
      const checkpoints = await Checkpoints.read(store)
      const next = checkpoints.next(loadCheckpoint(topic), epoch, partition)
      const stalled = this.stalled.get(`${topic}/${epoch}/${partition}`)
      // The log was recreated: its events below the checkpoint are not those that were loaded, also when it has grown
      // past it.
      const isRecreated = stalled !== undefined && stalled.damage === undefined && stalled.wanted >= next
      return { next: isRecreated ? NOWHERE : next, generation }
    })
  }

  /** The store with the generation of a topic's event table that steps write. */
  async #tablesOf(name: string): Promise<{ readonly store: Store; readonly generation: number }> {
    const { store, pointers: read } = this.#options
    if (read === undefined) return { store, generation: 0 }
    const pointers = await read()
    const owner = eventOwner({ name })
    const generation = pointers.of(owner).writes
    // Undone imports of the generation that answers read: the one that a swap has begun to write may lack some.
    const names = new Map([...pointers.names('reads', [ownerOf(importRetraction)]), ...namesOf(owner, generation)])
    return { store: store.with({ names }), generation }
  }

  /** Returns the seal keys; undefined if the loader was stopped before. */
  sealKeys(topic: string, people: readonly number[], signal: AbortSignal): Promise<SealKeys | undefined> {
    return this.#untilDone(topic, signal, () => this.#sealKeys.fetch(topic, people))
  }

  async #storeOnce(
    { topic, events, deadLetters, passedOver, imports, people, progress }: RowBatch,
    generation: number,
    check: () => Promise<void>
  ): Promise<Exclude<Outcome, 'stopped'>> {
    const { metrics } = this.#options
    const target = this.#columns.get(topic)
    if (target === undefined) throw new Error(`No event table is known for topic ${topic}.`)
    // While keys are unavailable, topics without people need not wait.
    const keys = await this.#sealKeys.of(topic, people).catch(() => undefined)
    if (keys === undefined || people.some((person) => !keys.has(person))) return 'outdated'
    const { store, generation: current } = await this.#tablesOf(topic)
    if (current !== generation) return 'swapped'
    if (events.rows > 0) {
      const done = metrics.insertSeconds.startTimer()
      await store.do(storeEvents, target, events)
      done()
      if (imports.length > 0) await this.#deleteRetracted(store, target, imports)
    }
    if (deadLetters.rows > 0) await store.do(storeDeadLetters, deadLetters)
    const name = loadCheckpoint(topic)
    // Rows that exclusive work of another process may have deleted meanwhile are read again.
    await check()
    await store.do(storeCheckpoints, [...progress.map((each) => ({ name, ...each })), ...this.#newestPerson(people)])
    metrics.loadedEvents.inc({ topic }, events.rows)
    metrics.passedOverEvents.inc({ topic }, passedOver)
    if (deadLetters.rows > 0)
      this.#options.logger.warn({ topic, messages: deadLetters.rows }, 'messages became dead letters')
    return 'stored'
  }

  /** Returns a checkpoint above all numbers of people, if one of these is the highest so far. */
  #newestPerson(people: readonly number[]): Checkpoint[] {
    const next = people.reduce((most, person) => Math.max(most, person + 1), 0)
    if (next <= this.#nextPerson) return []
    this.#nextPerson = next
    return [{ name: PEOPLE_CHECKPOINT, epoch: 0, partition: 0, next }]
  }

  /**
   * Deletes rows of undone imports. Rows may have waited while another process stored the same events and the import
   * was undone. An import that is undone from now on is deleted after these rows.
   */
  async #deleteRetracted(store: Store, { topic, table }: EventTable, imports: readonly string[]): Promise<void> {
    const retracted = (await store.do(readRetractedImports, topic.name)).filter((id) => imports.includes(id))
    if (retracted.length > 0) await store.do(deleteImports, table, retracted)
  }

  async #untilDone<Result>(
    topic: string,
    signal: AbortSignal,
    attempt: () => Promise<Result>
  ): Promise<Result | undefined> {
    for (let failures = 1; !signal.aborted; failures += 1) {
      try {
        const result = await attempt()
        this.trouble = null
        return result
      } catch (error) {
        if (signal.aborted) return undefined
        this.trouble = { topic, reason: errorMessage(error), isFinal: isFailure(error, 'keys_unknown') }
        this.#options.logger.error(this.trouble, 'loading failed; retrying')
        await pause(backoffMs(this.#options.backoff ?? DEFAULT_BACKOFF, failures), signal)
      }
    }
    return undefined
  }
}
