import { Count, LeaderboardId, TitleId } from '@gamenet/schemas'
import { z } from 'zod'
import { query } from './query.js'

const Entry = z.tuple([z.string(), z.coerce.number().int(), z.string(), z.tuple([Count.nullable()])])

/**
 * Selects the boards with entries of both players, the best rank of either first, with each player's best entry: name,
 * rank, rating, time.
 */
export const sharedBoards = query({
  params: z.object({ first: z.string(), second: z.string(), limit: z.int().positive(), offset: z.int().nonnegative() }),
  row: z.object({ titleId: TitleId, leaderboardId: LeaderboardId, one: Entry, other: Entry }),
  sql: `
    SELECT
      e.title_id AS titleId,
      e.leaderboard_id AS leaderboardId,
      argMinIf((e.player, e.rank, e.rating, tuple(e.time_ms)), (e.rank, e.place),
      e.player_key = {first: String}) AS one,
      argMinIf((e.player, e.rank, e.rating, tuple(e.time_ms)), (e.rank, e.place),
      e.player_key = {second: String}) AS other
    FROM {player_entry: Identifier} AS e FINAL
    WHERE e.player_key IN ({first: String}, {second: String}) AND NOT e.is_gone
    GROUP BY e.title_id, e.leaderboard_id
    HAVING uniqExact(e.player_key) = 2
    ORDER BY min(e.rank), e.title_id, e.leaderboard_id
    LIMIT {limit: UInt32} OFFSET {offset: UInt32}`
})

/** Counts the boards with an entry of either player, of both, and those on which each is ahead. */
export const comparedTotals = query({
  params: z.object({ first: z.string(), second: z.string() }),
  row: z.object({ one: z.int(), other: z.int(), both: z.int(), oneLeads: z.int(), otherLeads: z.int() }),
  sql: `
    SELECT
      toUInt32(countIf(b.has_one)) AS one,
      toUInt32(countIf(b.has_other)) AS other,
      toUInt32(countIf(b.has_one AND b.has_other)) AS both,
      toUInt32(countIf(b.has_one AND b.has_other AND b.one_rank < b.other_rank)) AS oneLeads,
      toUInt32(countIf(b.has_one AND b.has_other AND b.one_rank > b.other_rank)) AS otherLeads
    FROM (
      SELECT
        countIf(e.player_key = {first: String}) > 0 AS has_one,
        countIf(e.player_key = {second: String}) > 0 AS has_other,
        minIf(e.rank, e.player_key = {first: String}) AS one_rank,
        minIf(e.rank, e.player_key = {second: String}) AS other_rank
      FROM {player_entry: Identifier} AS e FINAL
      WHERE e.player_key IN ({first: String}, {second: String}) AND NOT e.is_gone
      GROUP BY e.title_id, e.leaderboard_id
    ) AS b`
})
