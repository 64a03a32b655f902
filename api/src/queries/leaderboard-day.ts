import { z } from 'zod'
import { BoardParams } from './leaderboard.js'
import { STATE_ORDER } from './leaderboard-entry.js'
import { query } from './query.js'

/**
 * Selects the UTC days on which entries of a board came, left or got another rating, oldest first. Reads the states of
 * the board: the table of changes has no key for it. Values are compared as in `isSameMeasure` of the projector.
 */
export const boardDays = query({
  params: BoardParams,
  row: z.object({ date: z.iso.date(), new: z.int(), updated: z.int(), removed: z.int() }),
  sql: `
    SELECT
      toString(toDate(s.ts)) AS date,
      toUInt32(countIf(NOT s.is_gone AND NOT s.was_there)) AS new,
      toUInt32(countIf(NOT s.is_gone AND s.was_there AND s.measure != s.former)) AS updated,
      toUInt32(countIf(s.is_gone AND s.was_there)) AS removed
    FROM (
      SELECT
        h.ts AS ts,
        h.is_gone AS is_gone,
        (h.time_ms IS NULL, ifNull(h.time_ms, 0), if(h.time_ms IS NULL, h.rating, '')) AS measure,
        lagInFrame(measure) OVER (
          PARTITION BY h.player, h.occurrence ORDER BY ${STATE_ORDER} ROWS BETWEEN 1 PRECEDING AND 1 PRECEDING
        ) AS former,
        lagInFrame(NOT h.is_gone) OVER (
          PARTITION BY h.player, h.occurrence ORDER BY ${STATE_ORDER} ROWS BETWEEN 1 PRECEDING AND 1 PRECEDING
        ) AS was_there
      FROM {leaderboard_history: Identifier} AS h FINAL
      WHERE h.title_id = {titleId: String} AND h.leaderboard_id = {leaderboardId: UInt32}
    ) AS s
    GROUP BY date
    HAVING new + updated + removed > 0
    ORDER BY date`
})
