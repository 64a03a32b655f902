import { mkdirSync } from 'node:fs'
import type { Heads } from '@gamenet/schemas'
import { type Database, open, type RootDatabase } from 'lmdb'
import { frameOf } from './batch-codec.js'

/** The end of a partition: the first unused offset. */
export type LogHead = Heads[number] & { readonly topic: string }

export type BatchKey = [topic: string, epoch: number, partition: number, first: number]
export type Batches = Database<Buffer, BatchKey>

const REMOVED_AT_ONCE = 1000

/** Returns the ends of all partitions with records, of all topics. */
export function storedHeads(batches: Batches): LogHead[] {
  const heads: LogHead[] = []
  for (let after: BatchKey | undefined; ; ) {
    const [some] = batches.getRange({ ...(after === undefined ? {} : { start: after }), limit: 1 })
    if (some === undefined) return heads
    const [topic, epoch, partition] = some.key
    after = [topic, epoch, partition, Number.MAX_SAFE_INTEGER]
    const newest = { start: after, end: [topic, epoch, partition], reverse: true, limit: 1 }
    for (const { key, value } of batches.getRange(newest))
      heads.push({ topic, epoch, partition, next: key[3] + frameOf(value).records })
  }
}

/**
 * Copies the file as of some instant of the call, without the free pages of deleted batches, and removes from the copy
 * the records appended after `heads`.
 */
export async function copyLog(root: RootDatabase, directory: string, heads: readonly LogHead[]): Promise<void> {
  mkdirSync(directory, { recursive: true })
  await root.backup(directory, true)
  const copy = open({ path: directory, noSubdir: false, maxDbs: 4, overlappingSync: false, eventTurnBatching: false })
  try {
    const batches = copy.openDB<Buffer, BatchKey>({ name: 'batches', encoding: 'binary' })
    const ends = new Map(heads.map(({ topic, epoch, partition, next }) => [`${topic}/${epoch}/${partition}`, next]))
    for (const { topic, epoch, partition } of storedHeads(batches)) {
      const start = [topic, epoch, partition, ends.get(`${topic}/${epoch}/${partition}`) ?? 0]
      const end = [topic, epoch, partition, Number.MAX_SAFE_INTEGER]
      for (;;) {
        const keys = [...batches.getKeys({ start, end, limit: REMOVED_AT_ONCE })]
        if (keys.length === 0) break
        await batches.transaction(() => {
          for (const key of keys) void batches.remove(key)
        })
      }
    }
  } finally {
    await copy.close()
  }
}
