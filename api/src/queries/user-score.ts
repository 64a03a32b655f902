import { Count, LeaderboardId, TitleId } from '@gamenet/schemas'
import { z } from 'zod'
import { query } from './query.js'

/** Selects the best entries of a player on all boards, best rank first. */
export const bestScores = query({
  params: z.object({ playerKey: z.string(), limit: z.int().positive() }),
  row: z.object({
    titleId: TitleId,
    leaderboardId: LeaderboardId,
    rank: z.int(),
    rating: z.string(),
    timeMs: Count.nullable(),
    changedMs: z.int().nonnegative()
  }),
  sql: `
    SELECT
      e.title_id AS titleId,
      e.leaderboard_id AS leaderboardId,
      toFloat64(e.rank) AS shown_rank,
      shown_rank AS rank,
      e.rating AS rating,
      e.time_ms AS timeMs,
      toFloat64(toUnixTimestamp64Milli(e.ts)) AS changedMs
    FROM {player_entry: Identifier} AS e FINAL
    WHERE e.player_key = {playerKey: String} AND NOT e.is_gone
    ORDER BY e.rank, e.title_id, e.leaderboard_id, e.player, e.occurrence
    LIMIT {limit: UInt32}`
})

/** Counts the boards of a player, and those with a rank among the first 10. */
export const boardStats = query({
  params: z.object({ playerKey: z.string() }),
  row: z.object({ boards: z.int(), top10: z.int() }),
  sql: `
    SELECT
      toUInt32(uniqExact(e.title_id, e.leaderboard_id)) AS boards,
      toUInt32(uniqExactIf((e.title_id, e.leaderboard_id), e.rank <= 10)) AS top10
    FROM {player_entry: Identifier} AS e FINAL
    WHERE e.player_key = {playerKey: String} AND NOT e.is_gone`
})
