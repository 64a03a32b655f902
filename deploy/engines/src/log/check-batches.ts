import { errorMessage, type PartitionExtent } from '@gamenet/schemas'
import { checkBatch, frameOf, unpackBatch } from './batch-codec.js'
import type { Batches, BatchKey } from './copy-log.js'
import type { StoredRecords } from './stored-records.js'

/** Unreadable events of the log: offsets from `first` to below `next`. */
export type LogFault = PartitionExtent & { readonly topic: string; readonly reason: string }

/** The place of one batch: offsets from `first` to below `next`. */
export type BatchExtent = Omit<LogFault, 'reason'>

/** Readable events of one batch. */
export type CheckedEvents = BatchExtent & {
  /** Stored bytes of the batch. */
  readonly bytes: number
  /** Undefined for batches that are only checked. */
  readonly stored: StoredRecords | undefined
}

/** Number of batches that are inflated on another thread while one is read. More would delay answers. */
const AHEAD = 1

/**
 * Verifies every batch by its checksum, and finds missing ones. `take` receives the readable batches. Batches are
 * unpacked only if `reads` returns true: unpacking takes fifty times as long as the check.
 */
export async function checkBatches(
  batches: Batches,
  take: (events: CheckedEvents) => Promise<void>,
  reads: (batch: BatchExtent) => boolean
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
    let stored: StoredRecords | undefined
    try {
      ended = first + frameOf(value).records
      stored = await unpacked
    } catch (error) {
      faults.push({ ...place, first, next: ended ?? first + 1, reason: errorMessage(error) })
      continue
    }
    await take({ ...place, first, next: ended, bytes: value.length, stored })
  }
  return faults
}

type Unpacking = {
  readonly key: BatchKey
  readonly value: Buffer
  readonly unpacked: Promise<StoredRecords | undefined>
}

async function* unpackedAhead(batches: Batches, reads: (batch: BatchExtent) => boolean): AsyncGenerator<Unpacking> {
  const ahead: Unpacking[] = []
  for (const { key, value: stored } of batches.getRange({ snapshot: false })) {
    const value = Buffer.from(stored)
    const unpacked = unpackedIf(reads, key, value)
    // Its error is thrown when it is awaited in its turn.
    unpacked.catch(() => undefined)
    if (ahead.push({ key, value, unpacked }) > AHEAD) yield* ahead.splice(0, 1)
  }
  yield* ahead
}

async function unpackedIf(
  reads: (batch: BatchExtent) => boolean,
  [topic, epoch, partition, first]: BatchKey,
  value: Buffer
): Promise<StoredRecords | undefined> {
  const next = first + frameOf(value).records
  if (reads({ topic, epoch, partition, first, next })) return await unpackBatch(value, first)
  checkBatch(value)
  return undefined
}
