import { Count } from '@gamenet/schemas'
import { z } from 'zod'
import { firstUnknown, knownEvents } from './known-events.js'
import { BoardParams } from './leaderboard.js'
import { query } from './query.js'

const Ms = z.int().nonnegative()
/** Details in the tables: JSON text, "" for none. */
const Details = z.string()

/** An entry with its shown rank. */
export const BoardEntry = z.object({
  rank: z.string(),
  name: z.string(),
  rating: z.string(),
  timeMs: Count.nullable(),
  details: Details
})
export type BoardEntry = z.infer<typeof BoardEntry>

/** Selects a page of a board's current entries, in its order. */
export const currentEntries = query({
  params: BoardParams.extend({ limit: z.int().positive(), offset: z.int().nonnegative() }),
  row: BoardEntry,
  sql: `
    SELECT
      e.rank AS rank,
      e.player AS name,
      e.rating AS rating,
      e.time_ms AS timeMs,
      e.details AS details
    FROM {leaderboard_entry: Identifier} AS e FINAL
    WHERE e.title_id = {titleId: String} AND e.leaderboard_id = {leaderboardId: UInt32} AND NOT e.is_gone
    ORDER BY e.place
    LIMIT {limit: UInt32} OFFSET {offset: UInt32}`
})

/** Counts a board's current entries. */
export const currentTotal = query({
  params: BoardParams,
  row: z.object({ total: z.int() }),
  sql: `
    SELECT toUInt32(count()) AS total
    FROM {leaderboard_entry: Identifier} AS e FINAL
    WHERE e.title_id = {titleId: String} AND e.leaderboard_id = {leaderboardId: UInt32} AND NOT e.is_gone`
})

/**
 * The order of an entry's states, whose last one is its state, as in `compareStates` of the projector: at one instant
 * a removal first, then values from the worst to the best. Positions decide only between states without a difference.
 */
export const STATE_ORDER = `(
        h.ts, NOT h.is_gone, h.time_ms IS NOT NULL, -ifNull(toInt64(h.time_ms), 0),
        if(h.time_ms IS NULL,
          ifNull(
            toDecimal256OrNull(replaceAll(h.rating, ',', ''), 9) * if(h.is_ascending, -1, 1), toDecimal256('-1e60', 9)),
          toDecimal256(0, 9)),
        h.rating, -ifNull(toInt64(h.stated_rank), 2147483648), ifNull(h.ord, -9223372036854775807),
        ifNull(h.step, -9223372036854775807), h.details, h.epoch, h.offset)`

const StatesRow = z.object({
  playerName: z.string(),
  occurrence: z.int(),
  state: z.tuple([
    z.unknown(),
    z.string(),
    Count.nullable(),
    z.boolean(),
    z.int().nullable(),
    z.int().nullable(),
    z.int().nullable(),
    Details
  ])
})

/**
 * Selects the entries of a board at an instant: of each entry the newest state until then (gone, rating, time,
 * ascending, stated rank, order, step, details). Ranks follow from all of them together (`ranked` of the schemas). Only
 * the states of each entry's last instant are compared by value: comparing those of all states takes longer.
 */
export const entriesAsOf = query({
  params: BoardParams.extend({ at: Ms }),
  row: StatesRow,
  sql: entriesSql('{leaderboard_history: Identifier}')
})

/** The condition on events `e` of a board. */
const OF_BOARD = 'e.title_id = {titleId: String} AND e.leaderboard_id = {leaderboardId: UInt32}'

/**
 * The states of a board as they were known: those of its events before the first unknown one, which the history has,
 * and those of later events.
 */
export const KNOWN_STATES = `(
        WITH ${firstUnknown('leaderboard_entry', OF_BOARD)} AS unknown
        SELECT k.title_id, k.leaderboard_id, k.player, k.occurrence, k.player_key, k.ts, k.is_gone, k.rating, k.time_ms,
          k.is_ascending, k.stated_rank, k.ord, k.step, k.details, k.epoch, k.partition, k.offset
        FROM {leaderboard_history: Identifier} AS k
        WHERE k.title_id = {titleId: String} AND k.leaderboard_id = {leaderboardId: UInt32}
          AND bitOr(bitShiftLeft(toUInt64(k.epoch), 48), k.offset) < unknown
        UNION ALL${knownEvents(
          'leaderboard_entry',
          `e.title_id, e.leaderboard_id, e.player, e.occurrence, e.player_key, e.observed_at, e.change = 'removed',
          e.rating, e.time_ms, e.is_ascending, e.stated_rank, e.ord, e.step, e.details, e.epoch, e.partition, e.offset`,
          OF_BOARD,
          'unknown'
        )}
      )`

/** As {@link entriesAsOf}, from what was known at `knownAt`. */
export const knownEntriesAsOf = query({
  params: BoardParams.extend({ at: Ms, knownAt: Ms }),
  row: StatesRow,
  sql: entriesSql(KNOWN_STATES)
})

/** Counts the known events of a board at an instant or before. */
export const knownSights = query({
  params: BoardParams.extend({ at: Ms, knownAt: Ms }),
  row: z.object({ events: z.coerce.number() }),
  sql: `SELECT count() AS events FROM (${knownEvents(
    'leaderboard_entry',
    'e.offset',
    `${OF_BOARD} AND e.observed_at <= fromUnixTimestamp64Milli({at: Int64}, 'UTC')`
  )}
      )`
})

function entriesSql(rows: string): string {
  return `
    SELECT
      h.player AS playerName,
      h.occurrence AS occurrence,
      argMax(
        (h.is_gone, h.rating, h.time_ms, h.is_ascending, h.stated_rank, toFloat64(h.ord), toFloat64(h.step), h.details),
        ${STATE_ORDER}
      ) AS state
    FROM ${rows} AS h
    WHERE h.title_id = {titleId: String}
      AND h.leaderboard_id = {leaderboardId: UInt32}
      AND (h.player, h.occurrence, h.ts) IN (
        SELECT n.player, n.occurrence, max(n.ts)
        FROM ${rows} AS n
        WHERE n.title_id = {titleId: String}
          AND n.leaderboard_id = {leaderboardId: UInt32}
          AND n.ts <= fromUnixTimestamp64Milli({at: Int64}, 'UTC')
        GROUP BY n.player, n.occurrence
      )
    GROUP BY h.player, h.occurrence
    HAVING NOT state.1`
}
