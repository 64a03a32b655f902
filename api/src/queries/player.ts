import { z } from 'zod'
import { query } from './query.js'

/**
 * Selects names whose folded form begins with `prefix` and follows `after`, in the order of folded forms. Reads in key
 * order and stops at the limit: of a million names with "a" a few thousand are read. Rows that are not merged yet are
 * returned more than once.
 */
export const playersByPrefix = query({
  params: z.object({ prefix: z.string(), after: z.string(), limit: z.int().positive() }),
  row: z.object({ key: z.string(), player: z.string() }),
  sql: `
    SELECT p.player_key AS key, p.player AS player
    FROM {player: Identifier} AS p
    WHERE startsWith(p.player_key, {prefix: String}) AND p.player_key > {after: String}
    ORDER BY p.player_key, p.player
    LIMIT {limit: UInt32}`
})
