import { Count, LeaderboardId, TitleId } from '@gamenet/schemas'
import { z } from 'zod'
import { query } from './query.js'

const Ms = z.int().nonnegative()

const Measured = z.object({
  titleId: TitleId,
  leaderboardId: LeaderboardId,
  atMs: Ms,
  playerName: z.string(),
  rating: z.string(),
  timeMs: Count.nullable()
})

/**
 * Selects the records that a player set, on all boards of the player, past or present; `number` counts the reigns of a
 * board. A record that a removal restored was set before its reign began and is excluded.
 */
export const recordsOfPlayer = query({
  params: z.object({ playerKey: z.string() }),
  row: Measured.extend({ number: z.int() }),
  sql: `
    SELECT
      r.title_id AS titleId,
      r.leaderboard_id AS leaderboardId,
      toFloat64(toUnixTimestamp64Milli(g.5)) AS atMs,
      g.2 AS playerName,
      g.3 AS rating,
      g.4 AS timeMs,
      g.1 AS number
    FROM {record_history: Identifier} AS r FINAL
    ARRAY JOIN arrayFilter(
      each -> each.5 = each.6,
      arrayZip(arrayEnumerate(r.players), r.players, r.ratings, r.times_ms, r.set_at, r.from_at)
    ) AS g
    WHERE (r.title_id, r.leaderboard_id) IN (
        SELECT e.title_id, e.leaderboard_id FROM {player_entry: Identifier} AS e
          WHERE e.player_key = {playerKey: String})
      AND g.2 IN (SELECT n.player FROM {player: Identifier} AS n WHERE n.player_key = {playerKey: String})`
})

/** A place in the order of changes: newest first, then by board and position. */
export const ChangePlace = z.object({
  atMs: Ms,
  titleId: z.string(),
  leaderboardId: z.int(),
  epoch: z.int(),
  partition: z.int(),
  offset: z.int()
})
export type ChangePlace = z.infer<typeof ChangePlace>

/**
 * Selects rows about changes of a player after a place, newest change first, and of one change its newest row first.
 * `gained`: the change put the player on the board, or on a better rank. Reads from the end of the key and stops.
 * Includes replaced rows: excluding them with FINAL would read the changes of all other players in between.
 */
export const changeRows = query({
  params: ChangePlace.extend({ playerKey: z.string(), limit: z.int().positive() }),
  row: Measured.extend({
    epoch: z.int(),
    partition: z.int(),
    offset: z.int(),
    gained: z.coerce.boolean(),
    previousRank: z.int().nullable(),
    newRank: z.int().nullable()
  }),
  sql: `
    SELECT
      c.title_id AS titleId,
      c.leaderboard_id AS leaderboardId,
      toFloat64(toUnixTimestamp64Milli(c.ts)) AS changedMs,
      changedMs AS atMs,
      c.player AS playerName,
      ifNull(c.new_rating, '') AS rating,
      c.new_time_ms AS timeMs,
      c.epoch AS epoch,
      c.partition AS partition,
      toFloat64(c.offset) AS offset,
      c.is_change AND c.new_rank IS NOT NULL AND (c.previous_rank IS NULL OR c.new_rank < c.previous_rank) AS gained,
      toFloat64(c.previous_rank) AS previousRank,
      toFloat64(c.new_rank) AS newRank
    FROM {leaderboard_change: Identifier} AS c
    WHERE c.player_key = {playerKey: String}
      AND c.ts <= fromUnixTimestamp64Milli({atMs: Int64}, 'UTC')
      AND (
        c.ts < fromUnixTimestamp64Milli({atMs: Int64}, 'UTC')
        OR (c.title_id, c.leaderboard_id, c.epoch, c.partition, c.offset)
          > ({titleId: String}, {leaderboardId: UInt32}, {epoch: UInt16}, {partition: UInt16}, {offset: UInt64})
      )
    ORDER BY c.ts DESC, c.title_id, c.leaderboard_id, c.epoch, c.partition, c.offset, c.version DESC
    LIMIT {limit: UInt32}`
})
