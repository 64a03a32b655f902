import { Count, TitleId } from '@gamenet/schemas'
import { z } from 'zod'
import { EntryRow, entryColumns, TitleFilter } from './player-entry.js'
import { query } from './query.js'

const Near = z.object({ time: z.int(), tolerance: z.int().nonnegative(), limit: z.int().positive() })

/** An entry with a time. */
const TimedRow = EntryRow.extend({ timeMs: Count })
export type TimedRow = z.infer<typeof TimedRow>

const NEAR = 'e.time_ms >= {time: Int64} - {tolerance: Int64} AND e.time_ms <= {time: Int64} + {tolerance: Int64}'
const NEAREST = 'abs(e.time_ms - {time: Int64}), e.time_ms, e.title_id, e.leaderboard_id, e.player, e.occurrence'

/**
 * Selects entries whose current time is within `tolerance` ms of `time`: nearest first, then faster, then by title,
 * board and name. The time leads the key, so the number of rows read grows with the tolerance: try a narrow one first.
 * While a step of the projections stores an entry's new time, the former one can still be live: one of them is shown.
 */
export const timesNear = query({
  params: Near.extend({ titleId: TitleFilter }),
  row: TimedRow,
  sql: `
    SELECT ${entryColumns('e')}
    FROM {timed_entry: Identifier} AS e FINAL
    WHERE ${NEAR}
      AND ({titleId: String} = '' OR e.title_id = {titleId: String})
      AND e.is_live
    ORDER BY ${NEAREST}
    LIMIT 1 BY e.title_id, e.leaderboard_id, e.player, e.occurrence
    LIMIT {limit: UInt32}`
})

/** The same for one title, with all shown columns. Reads its boards completely, whatever the tolerance. */
export const titleTimesNear = query({
  params: Near.extend({ titleId: TitleId }),
  row: TimedRow,
  sql: `
    SELECT ${entryColumns('e')}
    FROM {leaderboard_entry: Identifier} AS e FINAL
    WHERE e.title_id = {titleId: String}
      AND NOT e.is_gone
      AND ${NEAR}
    ORDER BY ${NEAREST}
    LIMIT {limit: UInt32}`
})
