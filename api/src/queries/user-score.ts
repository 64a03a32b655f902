import { z } from 'zod'
import { query } from './query.js'

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
