import type { LogBatch, LogMessage, LogRecord, PartitionExtent } from '@gamenet/schemas'
import type { LogReader } from '../src/load/log.js'

type Partition = { topic: string; epoch: number; partition: number; first: number; records: LogRecord[] }

/** A log in memory, with the same guarantees as the engines'. */
export class MemoryLog implements LogReader {
  readonly committed = new Map<string, number>()
  readonly #partitions: Partition[] = []
  readonly #batchRecords: () => number
  #changed: (() => void)[] = []

  /** `batchRecords` returns the maximum number of records of the next delivered batch. */
  constructor(batchRecords: () => number = () => 1000) {
    this.#batchRecords = batchRecords
  }

  append(
    topic: string,
    messages: readonly (LogMessage | Omit<LogRecord, 'offset'>)[],
    at = { epoch: 0, partition: 0 }
  ) {
    const partition = this.#partition(topic, at.epoch, at.partition)
    for (const message of messages) {
      partition.records.push({ offset: partition.first + partition.records.length, ...message })
    }
    for (const wake of this.#changed.splice(0)) wake()
  }

  /** Returns the records, by partition, in order. */
  get partitions(): readonly Partition[] {
    return this.#partitions
  }

  async extents(topic: string): Promise<readonly PartitionExtent[]> {
    return this.#partitions
      .filter((each) => each.topic === topic)
      .map(({ epoch, partition, first, records }) => ({ epoch, partition, first, next: first + records.length }))
  }

  async consume({ topics, startAt, deliver, signal }: Parameters<LogReader['consume']>[0]): Promise<void> {
    const readers = new Map<Partition, Promise<void>>()
    let failure: unknown
    while (!signal.aborted && failure === undefined) {
      for (const each of this.#partitions) {
        if (!topics.includes(each.topic) || readers.has(each)) continue
        const read = this.#read(each, startAt, deliver, () => signal.aborted || failure !== undefined)
        readers.set(
          each,
          read.catch((error: unknown) => {
            failure = error
            for (const wake of this.#changed.splice(0)) wake()
          })
        )
      }
      await this.#change(signal)
    }
    await Promise.all(readers.values())
    if (failure !== undefined) throw failure
  }

  async commit(topic: string, { epoch, partition, next }: { epoch: number; partition: number; next: number }) {
    this.committed.set(`${topic}/${epoch}/${partition}`, next)
  }

  async #read(
    { topic, epoch, partition, first, records }: Partition,
    startAt: (topic: string, epoch: number, partition: number) => Promise<number>,
    deliver: (batch: LogBatch) => Promise<void>,
    isOver: () => boolean
  ): Promise<void> {
    let next = (await startAt(topic, epoch, partition)) - first
    while (!isOver()) {
      const batch = records.slice(next, next + this.#batchRecords())
      if (batch.length > 0) await deliver({ topic, epoch, partition, records: batch })
      else await this.#change()
      next += batch.length
    }
  }

  #change(signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.#changed.push(resolve)
      signal?.addEventListener(
        'abort',
        () => {
          for (const wake of this.#changed.splice(0)) wake()
        },
        { once: true }
      )
    })
  }

  #partition(topic: string, epoch: number, partition: number): Partition {
    const found = this.#partitions.find(
      (each) => each.topic === topic && each.epoch === epoch && each.partition === partition
    )
    if (found !== undefined) return found
    const made: Partition = { topic, epoch, partition, first: 0, records: [] }
    this.#partitions.push(made)
    return made
  }
}
