import { setImmediate } from 'node:timers/promises'
import { errorMessage, type LogBatch } from '@gamenet/schemas'
import { frameOf, unpackBatch } from './batch-codec.js'
import type { Batches } from './copy-log.js'

/** Events of the log that cannot be read: offsets from `first` to below `next`. */
export type LogFault = {
  readonly topic: string
  readonly epoch: number
  readonly partition: number
  readonly first: number
  readonly next: number
  readonly reason: string
}

/** Records between two turns of the event loop: a batch of 8,192 at once would delay other answers by 0.1 s. */
const TURN_RECORDS = 512

/**
 * Reads every batch by its checksum, and finds those that are missing between others. `take` gets what can be read, by parts of a
 * batch, and the stored bytes of the batch with its last part.
 */
export async function checkBatches(
  batches: Batches,
  take: (batch: LogBatch, bytes: number) => Promise<void>
): Promise<LogFault[]> {
  const faults: LogFault[] = []
  let [before, ended]: [string, number | undefined] = ['', undefined]
  for (const { key, value } of batches.getRange({ snapshot: false })) {
    const [topic, epoch, partition, first] = key
    const place = { topic, epoch, partition }
    if (before !== JSON.stringify(place)) ended = undefined
    before = JSON.stringify(place)
    if (ended !== undefined && ended !== first)
      faults.push({ ...place, first: Math.min(ended, first), next: first, reason: 'they are missing' })
    try {
      const { records } = frameOf(value)
      ended = first + records
      const unpacked = await unpackBatch(Buffer.from(value), first)
      for (let from = 0; from < unpacked.count; from += TURN_RECORDS) {
        const to = Math.min(from + TURN_RECORDS, unpacked.count)
        await take({ ...place, records: unpacked.slice(from, to) }, to === unpacked.count ? value.length : 0)
        await setImmediate()
      }
    } catch (error) {
      const reason = errorMessage(error)
      faults.push({ ...place, first, next: ended ?? first + 1, reason })
    }
  }
  return faults
}
