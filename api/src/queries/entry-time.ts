import { Count, LeaderboardId, TitleId } from '@gamenet/schemas'
import { z } from 'zod'
import { EntryRow, TitleFilter } from './player-entry.js'
import { query } from './query.js'

const Near = z.object({ time: z.int(), tolerance: z.int().nonnegative(), limit: z.int().positive() })

/** The key of an entry in `leaderboard_entry`, and its time. */
const TimedKey = z.object({
  titleId: TitleId,
  leaderboardId: LeaderboardId,
  playerName: z.string(),
  occurrence: z.int(),
  timeMs: Count
})
export type TimedKey = z.infer<typeof TimedKey>

/** An entry with a time. */
const TimedRow = EntryRow.extend({ timeMs: Count })

/**
 * Selects entries whose current time is within `tolerance` ms of `time`: nearest first, then faster, then by title,
 * board and name. The time leads the key, so the number of rows read grows with the tolerance: try a narrow one first.
 */
export const timesNear = query({
  params: Near.extend({ titleId: TitleFilter }),
  row: TimedKey,
  sql: `
    SELECT
      t.title_id AS titleId,
      t.leaderboard_id AS leaderboardId,
      t.player AS playerName,
      t.occurrence AS occurrence,
      t.time_ms AS timeMs
    FROM {entry_time: Identifier} AS t FINAL
    WHERE t.time_ms >= {time: Int64} - {tolerance: Int64}
      AND t.time_ms <= {time: Int64} + {tolerance: Int64}
      AND ({titleId: String} = '' OR t.title_id = {titleId: String})
      AND t.is_live
    ORDER BY abs(t.time_ms - {time: Int64}), t.time_ms, t.title_id, t.leaderboard_id, t.player, t.occurrence
    LIMIT {limit: UInt32}`
})

const COLUMNS = `
  e.title_id AS titleId,
  e.leaderboard_id AS leaderboardId,
  e.player AS playerName,
  e.occurrence AS occurrence,
  toFloat64(e.rank) AS shown_rank,
  shown_rank AS rank,
  e.rating AS rating,
  e.time_ms AS timeMs`

/** The same for one title, with all shown columns. Reads its boards completely, whatever the tolerance. */
export const titleTimesNear = query({
  params: Near.extend({ titleId: TitleId }),
  row: TimedRow,
  sql: `
    SELECT ${COLUMNS}
    FROM {leaderboard_entry: Identifier} AS e FINAL
    WHERE e.title_id = {titleId: String}
      AND NOT e.is_gone
      AND e.time_ms >= {time: Int64} - {tolerance: Int64}
      AND e.time_ms <= {time: Int64} + {tolerance: Int64}
    ORDER BY abs(e.time_ms - {time: Int64}), e.time_ms, e.title_id, e.leaderboard_id, e.player, e.occurrence
    LIMIT {limit: UInt32}`
})

/**
 * Selects the current state of timed entries by their keys, given as parallel arrays; entries that left are missing.
 * Comparing names first, and reading the other columns only for matching keys, takes half the time: a hundred keys are up to
 * 200,000 rows. With `identity` only the keys choose rows by the primary key, which takes a fifth of the time less.
 */
export const timedEntries = query({
  params: z.object({
    titleIds: z.array(TitleId),
    leaderboardIds: z.array(LeaderboardId),
    playerNames: z.array(z.string()),
    occurrences: z.array(z.int())
  }),
  row: TimedRow,
  sql: `
    SELECT ${COLUMNS}
    FROM {leaderboard_entry: Identifier} AS e FINAL
    PREWHERE identity(e.player) IN {playerNames: Array(String)}
      AND (e.title_id, e.leaderboard_id, e.player, e.occurrence) IN arrayZip(
        {titleIds: Array(String)}, {leaderboardIds: Array(UInt32)}, {playerNames: Array(String)}, {occurrences: Array(UInt16)}
      )
    WHERE NOT e.is_gone
      AND e.time_ms IS NOT NULL`
})
