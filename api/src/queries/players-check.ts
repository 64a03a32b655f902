import { type ServingTables, withServing } from '@gamenet/schemas'
import { z } from 'zod'
import type { ReadTables } from '../read-tables.js'
import { query, rowsOf } from './query.js'
import { servingCache, versionedCache } from './versioned-cache.js'

const MINUTE_MS = 60_000

/** The instant of the last complete scrape of the page of players before `to`. */
export const newestPlayersCheck = query({
  params: z.object({ to: z.int().nonnegative() }),
  row: z.object({ atMs: z.int().nonnegative() }),
  sql: `
    SELECT toFloat64(toUnixTimestamp64Milli(s.ts)) AS atMs
    FROM {scrape: Identifier} AS s
    WHERE s.source = 'players' AND s.outcome = 'succeeded'
      AND s.ts < fromUnixTimestamp64Milli({to: Int64}, 'UTC')
    ORDER BY s.ts DESC
    LIMIT 1`
})

/**
 * Caches the instant of the last complete scrape of the page of players; null if there was none. Every profile contains
 * it: a query for each would be a fifth of a profile's cost.
 */
export function playersCheckCache(needs: {
  readonly tables: ReadTables
  versionOf(dependency: { projection: string; key: string; toMs: number }): number
  now(): number
}): (serving: ServingTables) => Promise<number | null> {
  // A run behind the minute's end (a clock was ahead) counts when its time has come.
  const toMs = () => (Math.floor(needs.now() / MINUTE_MS) + 1) * MINUTE_MS
  const caches = servingCache((serving) =>
    versionedCache(
      () => needs.versionOf({ projection: 'scrape', key: 'players', toMs: toMs() }),
      async () => {
        const [row] = await rowsOf(withServing(needs.tables, serving), newestPlayersCheck, { to: toMs() })
        return row?.atMs ?? null
      }
    )
  )
  return (serving) => caches(serving)()
}
