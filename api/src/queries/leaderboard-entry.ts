import { Count } from '@gamenet/schemas'
import { z } from 'zod'
import { BoardParams } from './leaderboard.js'
import { query } from './query.js'

/** Details in the tables: JSON text, "" for none. */
const Details = z.string()

/** An entry with its shown rank. */
export const BoardEntry = z.object({
  rank: z.string(),
  name: z.string(),
  rating: z.string(),
  timeMs: Count.nullable(),
  details: Details
})
export type BoardEntry = z.infer<typeof BoardEntry>

/** Selects a page of a board's current entries, in its order. */
export const currentEntries = query({
  params: BoardParams.extend({ limit: z.int().positive(), offset: z.int().nonnegative() }),
  row: BoardEntry,
  sql: `
    SELECT
      e.rank AS rank,
      e.player AS name,
      e.rating AS rating,
      e.time_ms AS timeMs,
      e.details AS details
    FROM {leaderboard_entry: Identifier} AS e FINAL
    WHERE e.title_id = {titleId: String} AND e.leaderboard_id = {leaderboardId: UInt32} AND NOT e.is_gone
    ORDER BY e.place
    LIMIT {limit: UInt32} OFFSET {offset: UInt32}`
})

/** Counts a board's current entries. */
export const currentTotal = query({
  params: BoardParams,
  row: z.object({ total: z.int() }),
  sql: `
    SELECT toUInt32(count()) AS total
    FROM {leaderboard_entry: Identifier} AS e FINAL
    WHERE e.title_id = {titleId: String} AND e.leaderboard_id = {leaderboardId: UInt32} AND NOT e.is_gone`
})

/**
 * Selects the entries of a board at an instant: of each entry the newest state until then (gone, rating, time, stated
 * rank, order, step, details). Ranks follow from all of them together (`ranked` of the schemas). FINAL, because a state
 * that was published twice counts at its first position: of two states of one instant the later recorded one is valid.
 * FINAL costs nothing compared with the grouping (22 ms with and without, 1,000 entries in 20 M states).
 */
export const entriesAsOf = query({
  params: BoardParams.extend({ at: z.int().nonnegative() }),
  row: z.object({
    playerName: z.string(),
    occurrence: z.int(),
    state: z.tuple([
      z.unknown(),
      z.string(),
      Count.nullable(),
      z.int().nullable(),
      z.int().nullable(),
      z.int().nullable(),
      Details
    ])
  }),
  sql: `
    SELECT
      h.player AS playerName,
      h.occurrence AS occurrence,
      argMax(
        (h.is_gone, h.rating, h.time_ms, h.stated_rank, toFloat64(h.ord), toFloat64(h.step), h.details),
        (h.ts, h.epoch, h.offset)
      ) AS state
    FROM {leaderboard_history: Identifier} AS h FINAL
    WHERE h.title_id = {titleId: String}
      AND h.leaderboard_id = {leaderboardId: UInt32}
      AND h.ts <= fromUnixTimestamp64Milli({at: Int64}, 'UTC')
    GROUP BY h.player, h.occurrence
    HAVING NOT state.1`
})
