import { Count } from '@gamenet/schemas'
import { z } from 'zod'
import { BoardParams } from './leaderboard.js'
import { query } from './query.js'

/** Details as the tables have them: JSON text, "" for none. */
const Details = z.string()

/** An entry with the rank that its board shows. */
export const BoardEntry = z.object({
  rank: z.string(),
  name: z.string(),
  rating: z.string(),
  timeMs: Count.nullable(),
  details: Details
})
export type BoardEntry = z.infer<typeof BoardEntry>

/** A page of the entries of a board now, in its order, each with the number of all. */
export const currentEntries = query({
  params: BoardParams.extend({ limit: z.int().positive(), offset: z.int().nonnegative() }),
  row: BoardEntry.extend({ total: z.int() }),
  sql: `
    SELECT
      toString(e.rank) AS rank,
      e.player AS name,
      e.rating AS rating,
      e.time_ms AS timeMs,
      e.details AS details,
      toUInt32(count() OVER ()) AS total
    FROM leaderboard_entry AS e FINAL
    WHERE e.title_id = {titleId: String} AND e.leaderboard_id = {leaderboardId: UInt32} AND NOT e.is_gone
    ORDER BY e.place
    LIMIT {limit: UInt32} OFFSET {offset: UInt32}`
})

/** How many entries a board has now. */
export const currentTotal = query({
  params: BoardParams,
  row: z.object({ total: z.int() }),
  sql: `
    SELECT toUInt32(count()) AS total
    FROM leaderboard_entry AS e FINAL
    WHERE e.title_id = {titleId: String} AND e.leaderboard_id = {leaderboardId: UInt32} AND NOT e.is_gone`
})

/**
 * The entries of a board as they stood at an instant: of each the newest state up to it. Ranks follow from all of them
 * together (`ranked` of the schemas). FINAL, because a state that was published twice counts from its first position:
 * of two states of one instant the one that was recorded later holds.
 */
export const entriesAsOf = query({
  params: BoardParams.extend({ at: z.int().nonnegative() }),
  row: z.object({
    playerName: z.string(),
    occurrence: z.int(),
    rating: z.string(),
    timeMs: Count.nullable(),
    statedRank: z.int().nullable(),
    order: z.int().nullable(),
    step: z.int().nullable(),
    details: Details
  }),
  sql: `
    SELECT
      h.player AS playerName,
      h.occurrence AS occurrence,
      argMax(
        (h.is_gone, h.rating, h.time_ms, h.stated_rank, toFloat64(h.ord), toFloat64(h.step), h.details),
        (h.ts, h.epoch, h.offset)
      ) AS state,
      state.2 AS rating,
      state.3 AS timeMs,
      state.4 AS statedRank,
      state.5 AS order,
      state.6 AS step,
      state.7 AS details
    FROM leaderboard_history AS h FINAL
    WHERE h.title_id = {titleId: String}
      AND h.leaderboard_id = {leaderboardId: UInt32}
      AND h.ts <= fromUnixTimestamp64Milli({at: Int64}, 'UTC')
    GROUP BY h.player, h.occurrence
    HAVING NOT state.1`
})
