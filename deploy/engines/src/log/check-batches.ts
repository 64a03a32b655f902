import { setImmediate } from 'node:timers/promises'
import { errorMessage, type LogRecord } from '@gamenet/schemas'
import { checkBatch, frameOf, unpackBatch } from './batch-codec.js'
import type { Batches, BatchKey } from './copy-log.js'
import type { StoredRecords } from './stored-records.js'

/** Unreadable events of the log: offsets from `first` to below `next`. */
export type LogFault = {
  readonly topic: string
  readonly epoch: number
  readonly partition: number
  readonly first: number
  readonly next: number
  readonly reason: string
}

/** Readable events of one batch: offsets from `first` to below `next`. */
export type CheckedEvents = Omit<LogFault, 'reason'> & {
  /** Empty for topics that are only checked. */
  readonly records: readonly LogRecord[]
}

/** Records per turn of the event loop: a batch of 8,192 at once would delay other answers by 0.1 s. */
const TURN_RECORDS = 512
/** Batches that are inflated concurrently on other threads. */
const AHEAD = 4

/**
 * Verifies every batch by its checksum, and finds missing ones. `take` receives the readable events by parts of a
 * batch, and the stored bytes of the batch with its last part. Records are decoded only for topics in `reads`: decoding
 * takes ten times as long as the check.
 */
export async function checkBatches(
  batches: Batches,
  take: (events: CheckedEvents, bytes: number) => Promise<void>,
  reads: (topic: string) => boolean
): Promise<LogFault[]> {
  const faults: LogFault[] = []
  let [before, ended]: [string, number | undefined] = ['', undefined]
  for await (const { key, value, unpacked } of unpackedAhead(batches, reads)) {
    const [topic, epoch, partition, first] = key
    const place = { topic, epoch, partition }
    if (before !== JSON.stringify(place)) ended = undefined
    before = JSON.stringify(place)
    if (ended !== undefined && ended !== first)
      faults.push({ ...place, first: Math.min(ended, first), next: first, reason: 'they are missing' })
    try {
      ended = first + frameOf(value).records
      const stored = await unpacked
      const count = stored?.count ?? ended - first
      const step = stored === undefined ? count : TURN_RECORDS
      for (let from = 0; from < count; from += step) {
        const to = Math.min(from + step, count)
        const records = stored?.slice(from, to) ?? []
        await take({ ...place, first: first + from, next: first + to, records }, to === count ? value.length : 0)
        await setImmediate()
      }
    } catch (error) {
      const reason = errorMessage(error)
      faults.push({ ...place, first, next: ended ?? first + 1, reason })
    }
  }
  return faults
}

type Unpacking = {
  readonly key: BatchKey
  readonly value: Buffer
  /** Undefined for a topic that is only checked. */
  readonly unpacked: Promise<StoredRecords | undefined>
}

async function* unpackedAhead(batches: Batches, reads: (topic: string) => boolean): AsyncGenerator<Unpacking> {
  const ahead: Unpacking[] = []
  for (const { key, value: stored } of batches.getRange({ snapshot: false })) {
    const value = Buffer.from(stored)
    const unpacked = reads(key[0]) ? unpackBatch(value, key[3]) : checkBatch(value).then(() => undefined)
    // Its error is thrown when its turn comes.
    unpacked.catch(() => undefined)
    if (ahead.push({ key, value, unpacked }) > AHEAD) yield* ahead.splice(0, 1)
  }
  yield* ahead
}
