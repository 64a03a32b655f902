import { Count, TitleId } from '@gamenet/schemas'
import { z } from 'zod'
import { type Rollup, RowsCut, rowsSql, TITLE_COUNTS } from './count-rows.js'
import { query } from './query.js'

/** Returns the query of the peak of each step of a window with a sample, numbered from 0, by title. */
export function stepPeaks(rollup: Rollup) {
  return query({
    params: RowsCut.extend({ stepMs: z.int().positive() }),
    row: z.object({ titleId: TitleId, steps: z.array(z.int()), peaks: z.array(Count) }),
    sql: `
    SELECT p.key AS titleId, groupArray(p.step) AS steps, groupArray(p.peak) AS peaks
    FROM (
      SELECT
        s.key AS key,
        toUInt32(intDiv(toUnixTimestamp(s.at) * 1000 - {fromMs: Int64}, {stepMs: Int64})) AS step,
        max(s.highest) AS peak
      FROM (${rowsSql(TITLE_COUNTS, rollup)}
      ) AS s
      GROUP BY key, step
    ) AS p
    GROUP BY p.key
    ORDER BY p.key`
  })
}
