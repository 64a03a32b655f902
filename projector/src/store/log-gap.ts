import type { PartitionExtent } from '@gamenet/schemas'
import { linesOf, operation } from './operation.js'

/** A part of the log that was accepted as missing: offsets `first` to below `next`. Instants in ms since 1970. */
export type LogGap = PartitionExtent & { readonly topic: string }

/**
 * Stores gaps, all or none; `loadedAt` is when the last event before the gap was loaded. Storing them again changes
 * nothing.
 */
export const storeGaps = operation(
  'stores gaps of the log',
  async (tables, gaps: readonly (LogGap & { readonly loadedAt: string | null })[]): Promise<void> => {
    const columns = ['topic', 'epoch', 'partition', 'first', 'next', 'loaded_at']
    const rows = gaps.map(({ topic, epoch, partition, first, next, loadedAt }) => {
      return [topic, epoch, partition, first, next, loadedAt?.replace('T', ' ').replace('Z', '') ?? null]
    })
    await tables.insert('log_gap', columns, linesOf(rows))
  }
)

/** Reads all gaps, by place. */
export const readGaps = operation('reads gaps of the log', async (tables) => {
  const rows = await tables.rows(
    `SELECT g.topic AS topic, g.epoch AS epoch, g.partition AS partition, g.first AS first, max(g.next) AS next,
       toUnixTimestamp64Milli(max(g.accepted_at)) AS acceptedAtMs
     FROM log_gap AS g GROUP BY g.topic, g.epoch, g.partition, g.first ORDER BY g.topic, g.epoch, g.partition,
       g.first`
  )
  return rows.map((row) => ({
    topic: String(row.topic),
    epoch: Number(row.epoch),
    partition: Number(row.partition),
    first: Number(row.first),
    next: Number(row.next),
    acceptedAtMs: Number(row.acceptedAtMs)
  }))
})
