import {
  backoffMs,
  type ConsumeRequest,
  Failure,
  isFailure,
  type LogRecord,
  type PartitionExtent,
  pause,
  type StalledPartition,
  stallOf,
  stallReason
} from '@gamenet/schemas'
import type { Consumer, ConsumerEndBatchProcessEvent, EachBatchPayload, Kafka } from 'kafkajs'
import { answeredWithin, disconnect } from './kafka-client.js'
import type { KafkaRecord } from './kafka-records.js'

/** A killed member keeps its partitions for this long. */
const SESSION_MS = 15_000
const REBALANCE_MS = 60_000
const HEARTBEAT_MS = 3000
/** Longest wait of a fetch at the head; also the longest delay of an abort or of a paused start. */
const FETCH_WAIT_MS = 250
const METADATA_MS = 30_000
const FETCH_BYTES_PER_PARTITION = 2 * 1024 * 1024
const PARTITIONS_AT_ONCE = 16
const WATCHES_IN_STALLED = 3
/** A partition with records to read and no delivery for this long is stuck; kafkajs does not notice. */
const STALLED_MS = 30_000
/** Joining takes until the slowest member notices the rebalance. */
const JOINED_MS = REBALANCE_MS + STALLED_MS
const EXTENTS_MS = 10_000
const LEAVE_MS = 5000
/** Interval of checks whether a stalled partition may continue. */
const STALL_CHECK_MS = 2000
const RESTART = { firstMs: 500, maxMs: 30_000 }

export type KafkaReaderOptions = {
  /** The consumer group whose members share the partitions. */
  readonly groupId: string
  /** Reads only the partitions whose number modulo `of` is `index`; the reader of the others has another group. */
  readonly share?: { readonly index: number; readonly of: number }
  /** The epoch of positions; incremented by the operator when topics are recreated or get partitions. */
  readonly epoch: number
  /** Prefix of every topic's name in Kafka. */
  readonly topicPrefix?: string
  /** Called when the consumer failed or was stuck and is replaced. */
  readonly onCrash?: (error: Error) => void
  /** After this long without a heartbeat a member's partitions are reassigned. Default: 15 s. */
  readonly sessionMs?: number
  /** A partition with more to read and no delivery for this long gets a new consumer. Default: 30 s. */
  readonly stalledMs?: number
  /** Maximum delay until added partitions are noticed. Default: 30 s. */
  readonly metadataMs?: number
}

/** One `consume` call on a Kafka log. */
export type KafkaReader = {
  /** Settles when the reader has ended. */
  readonly done: Promise<void>
  /** Commits for the group if this reader holds the partition. */
  commit(topic: string, partition: number, next: number): Promise<void>
}

type ReaderNeeds = {
  readonly kafka: Kafka
  readonly options: KafkaReaderOptions
  extents(topic: string): Promise<readonly PartitionExtent[]>
}

/** The state of one partition while this process holds it. */
type Holding = {
  readonly topic: string
  readonly partition: number
  /** The next offset to deliver; undefined until `startAt` has returned. */
  next: number | undefined
  /** The offset of the consumer's last seek. */
  sought: number | undefined
  committed: number
  progressAtMs: number
  isDelivering: boolean
  /** The offset at which it was paused. */
  stalledAt: number | undefined
}

const readingEnded = (cause: unknown) => new Failure('reading_ended', 'the reader was stopped', { cause })

/**
 * Starts to read. Consumers of kafkajs are replaced after failures, and each new one requests the start of its
 * partitions.
 */
export function openKafkaReader(needs: ReaderNeeds, request: ConsumeRequest): KafkaReader {
  let session: Session | undefined
  const read = async (): Promise<void> => {
    for (let restarts = 0; !request.signal.aborted; restarts += 1) {
      session = new Session(needs, request)
      const startedMs = Date.now()
      try {
        await session.run()
      } catch (error) {
        if (isFailure(error, 'reading_ended')) throw error.cause
        needs.options.onCrash?.(error instanceof Error ? error : new Error(String(error)))
      }
      if (Date.now() - startedMs > RESTART.maxMs) restarts = 0
      await pause(backoffMs(RESTART, restarts + 1), request.signal)
    }
  }
  return {
    done: read(),
    async commit(topic, partition, next) {
      await session?.commit(topic, partition, next)
    }
  }
}

/** One consumer of kafkajs, from its start until it is stopped, crashes or is stuck. */
class Session {
  readonly #needs: ReaderNeeds
  readonly #request: ConsumeRequest
  readonly #consumer: Consumer
  readonly #prefix: string
  readonly #heartbeatMs: number
  #holdings = new Map<string, Holding>()
  /** Running deliveries and starts, one at a time per partition, also across rebalances. */
  readonly #busy = new Map<string, Promise<void>>()
  #end: (error?: unknown) => void = () => {}
  #isEnding = false
  #isWatching = false
  /** The start of joining the group; undefined while this process is a member. */
  #joiningSinceMs: number | undefined = Date.now()

  constructor(needs: ReaderNeeds, request: ConsumeRequest) {
    this.#needs = needs
    this.#request = request
    this.#prefix = needs.options.topicPrefix ?? ''
    const { sessionMs = SESSION_MS } = needs.options
    this.#heartbeatMs = Math.min(HEARTBEAT_MS, sessionMs / 3)
    this.#consumer = needs.kafka.consumer({
      groupId: needs.options.groupId,
      sessionTimeout: sessionMs,
      rebalanceTimeout: REBALANCE_MS,
      heartbeatInterval: this.#heartbeatMs,
      metadataMaxAge: metadataMs(needs.options),
      maxWaitTimeInMs: FETCH_WAIT_MS,
      maxBytesPerPartition: FETCH_BYTES_PER_PARTITION,
      allowAutoTopicCreation: false,
      retry: { restartOnFailure: async () => false }
    })
  }

  async run(): Promise<void> {
    const { signal, topics } = this.#request
    const ended = new Promise<void>((resolve, reject) => {
      this.#end = (error) => {
        this.#isEnding = true
        if (error === undefined) resolve()
        else reject(error)
      }
    })
    ended.catch(() => {
      // Awaited below, after the consumer has started.
    })
    const onAbort = (): void => this.#end()
    signal.addEventListener('abort', onAbort)
    const watch = setInterval(() => void this.#watch(), this.#stalledMs / WATCHES_IN_STALLED).unref()
    const started = async (): Promise<void> => {
      await this.#consumer.connect()
      if (this.#isEnding) return
      await this.#consumer.subscribe({ topics: topics.map((topic) => this.#prefix + topic), fromBeginning: true })
      if (this.#isEnding) return
      await this.#consumer.run({
        autoCommit: false,
        eachBatchAutoResolve: false,
        partitionsConsumedConcurrently: PARTITIONS_AT_ONCE,
        eachBatch: (payload) => this.#take(payload)
      })
    }
    let starting = Promise.resolve()
    try {
      if (signal.aborted) return
      this.#consumer.on('consumer.crash', ({ payload }) => this.#end(payload.error))
      this.#consumer.on('consumer.rebalancing', () => {
        this.#joiningSinceMs ??= Date.now()
      })
      this.#consumer.on('consumer.group_join', ({ payload }) => this.#assigned(payload.memberAssignment))
      this.#consumer.on('consumer.end_batch_process', (processed) => this.#passOver(processed))
      starting = started()
      await Promise.race([ended, starting])
      await ended
    } finally {
      this.#isEnding = true
      this.#request.onAssigned?.(new Map())
      clearInterval(watch)
      signal.removeEventListener('abort', onAbort)
      await Promise.allSettled(this.#busy.values())
      await answeredWithin(LEAVE_MS, 'the consumer', disconnect(this.#consumer, [starting])).catch(() => {
        // A crashed consumer has disconnected itself. One that hangs is abandoned; it delivers nothing any more.
      })
    }
  }

  async commit(topic: string, partition: number, next: number): Promise<void> {
    const holding = this.#holdings.get(nameOf(topic, partition))
    if (holding === undefined || this.#isEnding || next <= holding.committed) return
    holding.committed = next
    try {
      await this.#consumer.commitOffsets([{ topic: this.#prefix + topic, partition, offset: String(next) }])
    } catch {
      // A rebalance, or a coordinator that is loading: only lag figures are stale, and the next commit is higher.
    }
  }

  /** The group assigned partitions to this process: each waits until its start offset is known. */
  #assigned(assignment: Readonly<Record<string, number[]>>): void {
    const before = this.#holdings
    this.#holdings = new Map()
    this.#joiningSinceMs = undefined
    const { index, of } = this.#needs.options.share ?? { index: 0, of: 1 }
    for (const [name, partitions] of Object.entries(assignment)) {
      const topic = name.slice(this.#prefix.length)
      this.#consumer.pause([{ topic: name, partitions }])
      for (const partition of partitions.filter((each) => each % of === index)) {
        const key = nameOf(topic, partition)
        const holding = before.get(key) ?? fresh(topic, partition)
        this.#holdings.set(key, holding)
        void this.#inOrder(key, () => this.#start(holding))
      }
    }
    const counts = new Map<string, number>()
    for (const { topic } of this.#holdings.values()) counts.set(topic, (counts.get(topic) ?? 0) + 1)
    this.#request.onAssigned?.(counts)
  }

  async #start(holding: Holding): Promise<void> {
    const { topic, partition } = holding
    if (!this.#holds(holding)) return
    if (holding.next === undefined) {
      const wanted = await this.#request
        .startAt(topic, this.#needs.options.epoch, partition)
        .catch((error: unknown) => Promise.reject(readingEnded(error)))
      const extent = await this.#extent(topic, partition)
      const stall = stallOf(topic, extent, wanted)
      if (stall !== undefined) return this.#stall(holding, stall)
      holding.next = Math.max(wanted, extent.first)
      holding.stalledAt = undefined
    }
    if (!this.#holds(holding)) return
    holding.progressAtMs = Date.now()
    this.#seek(holding, holding.next)
    this.#consumer.resume([{ topic: this.#prefix + topic, partitions: [partition] }])
  }

  /** Stalls until the checkpoint or the log changes; the other partitions continue. */
  #stall(holding: Holding, stall: StalledPartition): void {
    const { onStall } = this.#request
    if (onStall === undefined) throw readingEnded(new Error(stallReason(stall, 'Kafka')))
    const { topic, partition } = holding
    holding.next = undefined
    if (this.#holds(holding)) this.#consumer.pause([{ topic: this.#prefix + topic, partitions: [partition] }])
    if (holding.stalledAt !== stall.wanted) onStall(stall)
    holding.stalledAt = stall.wanted
    setTimeout(() => {
      if (this.#holds(holding)) void this.#inOrder(nameOf(topic, partition), () => this.#start(holding))
    }, STALL_CHECK_MS).unref()
  }

  async #extent(topic: string, partition: number): Promise<PartitionExtent> {
    const extents = await answeredWithin(EXTENTS_MS, 'Kafka', this.#needs.extents(topic))
    const extent = extents.find((held) => held.partition === partition)
    if (extent !== undefined) return extent
    throw new Error(`${topic}, epoch ${this.#needs.options.epoch}, partition ${partition} is not in Kafka`)
  }

  /** Takes one batch of one partition from kafkajs. Rejects only with errors that kafkajs handles. */
  async #take({ batch, resolveOffset, heartbeat }: EachBatchPayload): Promise<void> {
    const topic = batch.topic.slice(this.#prefix.length)
    const key = nameOf(topic, batch.partition)
    let beatFailure: unknown
    const beating = setInterval(() => {
      heartbeat().catch((error: unknown) => {
        beatFailure = error
      })
    }, this.#heartbeatMs)
    try {
      await this.#inOrder(key, async () => {
        const holding = this.#holdings.get(key)
        if (holding === undefined || holding.next === undefined || this.#isEnding) return
        // Our decoder made them.
        const isConsumed = await this.#deliver(
          holding,
          batch.messages as unknown as KafkaRecord[],
          Number(batch.lastOffset()) + 1
        )
        if (isConsumed) resolveOffset(batch.lastOffset())
      })
    } finally {
      clearInterval(beating)
    }
    if (beatFailure !== undefined) throw beatFailure
    if (!this.#isEnding) await heartbeat()
  }

  /**
   * Delivers the end of a fetch that has only control records and records of aborted transactions, which kafkajs leaves
   * out.
   */
  #passOver({
    payload: { topic: name, partition, batchSize, firstOffset, lastOffset }
  }: ConsumerEndBatchProcessEvent): void {
    if (batchSize > 0) return
    const key = nameOf(name.slice(this.#prefix.length), partition)
    void this.#inOrder(key, async () => {
      const holding = this.#holdings.get(key)
      if (holding !== undefined && !this.#isEnding && holding.next === Number(firstOffset ?? Number.NaN))
        await this.#hand(holding, [], Number(lastOffset) + 1)
    })
  }

  /**
   * Delivers the records before a damaged batch, then stalls. Returns false unless the whole fetch, up to `end`, was
   * delivered.
   */
  async #deliver(holding: Holding, fetched: readonly KafkaRecord[], end: number): Promise<boolean> {
    const damage = fetched.at(-1)?.damage
    const isWhole = damage === undefined
    if (!(await this.#deliverRecords(holding, isWhole ? fetched : fetched.slice(0, -1), isWhole ? end : 0)))
      return false
    if (damage === undefined) return true
    const { topic, partition, next = 0 } = holding
    this.#stall(holding, { topic, ...(await this.#extent(topic, partition)), wanted: next, damage })
    return false
  }

  /**
   * Returns false if the batch is not at the expected offset: then the consumer seeks there, or the partition stalls.
   * @param end the offset after the fetch
   */
  async #deliverRecords(holding: Holding, fetched: readonly LogRecord[], end: number): Promise<boolean> {
    const { topic, partition } = holding
    const next = holding.next ?? 0
    const records = fetched.filter(({ offset }) => offset >= next)
    const [first] = records
    if (first?.offset !== next) {
      if (first !== undefined && holding.sought !== next) {
        this.#seek(holding, next)
        return false
      }
      // Gaps come from transactions, compaction, or a retention that overtook the reading. Older records come from a
      // rebalance, or from a topic that was recreated.
      const stall = stallOf(topic, await this.#extent(topic, partition), next)
      if (stall !== undefined) {
        this.#stall(holding, stall)
        return false
      }
      if (first === undefined) return true
    }
    await this.#hand(holding, records, Math.max(end, (records.at(-1)?.offset ?? next) + 1))
    return true
  }

  async #hand(holding: Holding, records: readonly LogRecord[], next: number): Promise<void> {
    const { topic, partition } = holding
    holding.isDelivering = true
    try {
      await this.#request.deliver({ topic, epoch: this.#needs.options.epoch, partition, records, next })
    } catch (error) {
      throw readingEnded(error)
    } finally {
      holding.isDelivering = false
    }
    holding.next = next
    holding.progressAtMs = Date.now()
  }

  #seek(holding: Holding, offset: number): void {
    holding.sought = offset
    this.#consumer.seek({ topic: this.#prefix + holding.topic, partition: holding.partition, offset: String(offset) })
  }

  #holds(holding: Holding): boolean {
    return !this.#isEnding && this.#holdings.get(nameOf(holding.topic, holding.partition)) === holding
  }

  /** Runs after the current work of the same partition. A failure ends the session. */
  async #inOrder(key: string, work: () => Promise<void>): Promise<void> {
    const queued = (this.#busy.get(key) ?? Promise.resolve()).then(work).catch((error: unknown) => this.#end(error))
    this.#busy.set(key, queued)
    await queued
    if (this.#busy.get(key) === queued) this.#busy.delete(key)
  }

  get #stalledMs(): number {
    return this.#needs.options.stalledMs ?? STALLED_MS
  }

  /** Ends the session when joining takes too long, or when a partition with more to read is stuck. */
  async #watch(): Promise<void> {
    if (this.#isWatching) return
    this.#isWatching = true
    try {
      if (this.#joiningSinceMs !== undefined && Date.now() - this.#joiningSinceMs >= JOINED_MS)
        this.#end(new Error(`the group ${this.#needs.options.groupId} could not be joined within ${JOINED_MS} ms`))
      for (const holding of this.#holdings.values()) await this.#watchOne(holding)
    } catch {
      // Kafka is unavailable; the consumer notices that itself.
    } finally {
      this.#isWatching = false
    }
  }

  async #watchOne(holding: Holding): Promise<void> {
    const { topic, partition, next } = holding
    const isQuiet = (): boolean =>
      !holding.isDelivering && holding.next !== undefined && Date.now() - holding.progressAtMs >= this.#stalledMs
    if (next === undefined || !isQuiet()) return
    const extent = await this.#extent(topic, partition)
    if (!this.#holds(holding) || holding.next !== next || !isQuiet()) return
    if (extent.next === next) holding.progressAtMs = Date.now()
    else if (extent.next < next) this.#stall(holding, { topic, ...extent, wanted: next })
    else {
      const stood = `was stuck at offset ${next} of ${extent.next} for ${this.#stalledMs} ms`
      this.#end(new Error(`${topic}, partition ${partition} ${stood}`))
    }
  }
}

/** Returns the age of metadata at which new partitions are noticed. */
export const metadataMs = ({ metadataMs = METADATA_MS }: KafkaReaderOptions): number => metadataMs

function fresh(topic: string, partition: number): Holding {
  return {
    topic,
    partition,
    next: undefined,
    sought: undefined,
    committed: 0,
    progressAtMs: Date.now(),
    isDelivering: false,
    stalledAt: undefined
  }
}

const nameOf = (topic: string, partition: number): string => `${topic}/${partition}`
