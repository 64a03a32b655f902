import { z } from 'zod'
import type { ReadTables } from '../read-tables.js'
import { query, rowsOf } from './query.js'

/** When the page of players was last read whole. */
export const newestPlayersCheck = query({
  params: z.object({}),
  row: z.object({ atMs: z.int().nonnegative() }),
  sql: `
    SELECT toFloat64(toUnixTimestamp64Milli(s.ts)) AS atMs
    FROM scrape AS s
    WHERE s.source = 'players' AND s.outcome = 'succeeded'
    ORDER BY s.ts DESC
    LIMIT 1`
})

/**
 * Keeps in memory when the page of players was last read whole; null where it never was. Every profile says it, and it is the
 * same in all of them: asked for each time, it would be a fifth of what a profile costs.
 */
export function playersCheckCache(needs: {
  readonly tables: ReadTables
  versionOf(dependency: { projection: string; key: string }): number
}): () => Promise<number | null> {
  let kept: { readonly version: number; readonly atMs: Promise<number | null> } | undefined
  const load = async (): Promise<number | null> => {
    const [row] = await rowsOf(needs.tables, newestPlayersCheck, {})
    return row?.atMs ?? null
  }
  return () => {
    const version = needs.versionOf({ projection: 'scrape', key: 'players' })
    if (kept?.version === version) return kept.atMs
    const mine = { version, atMs: load() }
    kept = mine
    // What failed is asked again.
    mine.atMs.catch(() => {
      if (kept === mine) kept = undefined
    })
    return mine.atMs
  }
}
