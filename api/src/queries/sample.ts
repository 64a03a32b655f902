import { TitleId } from '@gamenet/schemas'
import { z } from 'zod'
import { query } from './query.js'

/**
 * Selects a board of the twenty titles with most users online, for samples of requests: one with times if there is one,
 * its first two players in the order of the board, the best time, and the first sighting of its oldest entry.
 * Parameters separate names by commas.
 */
export const sampleBoard = query({
  params: z.object({}),
  row: z.object({
    titleId: TitleId,
    leaderboardId: z.int(),
    players: z.array(z.string()).length(2),
    timeMs: z.int().nullable(),
    sinceMs: z.number()
  }),
  sql: `
    SELECT b.title_id AS titleId, b.leaderboard_id AS leaderboardId, arrayMap(each -> each.2, b.best) AS players,
      b.time_ms AS timeMs, toFloat64(toUnixTimestamp64Milli(b.since)) AS sinceMs
    FROM (
      SELECT e.title_id AS title_id, e.leaderboard_id AS leaderboard_id, min(e.time_ms) AS time_ms,
        min(e.first_at) AS since, arraySlice(arraySort(groupArray((e.place, e.player))), 1, 2) AS best
      FROM {leaderboard_entry: Identifier} AS e FINAL
      WHERE NOT e.is_gone AND e.occurrence = 1 AND position(e.player, ',') = 0 AND e.title_id IN (
        SELECT c.title_id FROM {title_latest: Identifier} AS c FINAL ORDER BY c.online DESC, c.title_id LIMIT 20
      )
      GROUP BY e.title_id, e.leaderboard_id
      HAVING count() > 1
    ) AS b
    ORDER BY b.time_ms IS NULL, b.title_id, b.leaderboard_id
    LIMIT 1`
})
