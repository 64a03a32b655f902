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

/** Reads every batch by its checksum, and finds those that are missing between others. `take` gets what can be read. */
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
      await take({ ...place, records: unpacked.slice(0, unpacked.count) }, value.length)
    } catch (error) {
      const reason = errorMessage(error)
      faults.push({ ...place, first, next: ended ?? first + 1, reason })
    }
  }
  return faults
}
