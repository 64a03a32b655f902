import { BOARD_CHANGES, LeaderboardId, RankedMeasures, TitleId } from '@gamenet/schemas'
import { z } from 'zod'
import { type Query, query } from './query.js'

/*
 * Changes of entries, in two orders: `leaderboard_change` by instant, `leaderboard_feed` by the position of recording.
 * Both have a row per event that is or was a change. A filter consists of fixed conditions; only requested ones are in
 * the statement, so that ClickHouse can use the index on players.
 */

const Ms = z.int().nonnegative()

/** The filter; null means all. `sinceMs` and `untilMs` limit the instant of the change, half-open. */
export const ChangeFilter = z.object({
  titleId: TitleId.nullable(),
  leaderboardId: LeaderboardId.nullable(),
  playerKey: z.string().nullable(),
  changeType: z.enum(BOARD_CHANGES).nullable(),
  sinceMs: Ms.nullable(),
  untilMs: Ms.nullable()
})
export type ChangeFilter = z.infer<typeof ChangeFilter>

const CONDITIONS: Readonly<Record<keyof ChangeFilter, string>> = {
  titleId: 'AND c.title_id = {titleId: String}',
  leaderboardId: 'AND c.leaderboard_id = {leaderboardId: UInt32}',
  playerKey: 'AND c.player_key = {playerKey: String}',
  changeType: 'AND c.change = {changeType: String}',
  sinceMs: "AND c.ts >= fromUnixTimestamp64Milli({sinceMs: Int64}, 'UTC')",
  untilMs: "AND c.ts < fromUnixTimestamp64Milli({untilMs: Int64}, 'UTC')"
}

const NAMES = Object.keys(CONDITIONS) as (keyof ChangeFilter)[]

function conditionsOf(filter: ChangeFilter): string {
  return NAMES.filter((name) => filter[name] !== null)
    .map((name) => CONDITIONS[name])
    .join(' ')
}

/** A change in the tables, with its place in the feed. */
export const ChangeRow = z.object({
  recordedOffset: z.int(),
  epoch: z.int(),
  partition: z.int(),
  offset: z.int(),
  atMs: Ms,
  titleId: TitleId,
  leaderboardId: LeaderboardId,
  changeType: z.enum(BOARD_CHANGES),
  playerName: z.string(),
  ...RankedMeasures.shape,
  isTime: z.coerce.boolean()
})
export type ChangeRow = z.infer<typeof ChangeRow>

const COLUMNS = `
  toFloat64(c.recorded_offset) AS recordedOffset,
  c.epoch AS epoch,
  c.partition AS partition,
  toFloat64(c.offset) AS offset,
  toFloat64(toUnixTimestamp64Milli(c.ts)) AS atMs,
  c.title_id AS titleId,
  c.leaderboard_id AS leaderboardId,
  c.change AS changeType,
  c.player AS playerName,
  toFloat64(c.previous_rank) AS previousRank,
  toFloat64(c.new_rank) AS newRank,
  c.previous_rating AS previousRating,
  c.new_rating AS newRating,
  c.previous_time_ms AS previousTimeMs,
  c.new_time_ms AS newTimeMs,
  c.is_time AS isTime`

/**
 * Selects the instant of the row `skip` rows before the newest one; no row if there are fewer. Replaced rows count, so
 * there may be fewer changes after it: the instant is where to start, not how many there are. Reads from the end of the
 * key and stops (5 ms at 10 M changes; a sort with FINAL takes seconds).
 */
export function changeInstant(filter: ChangeFilter): Query<ChangeFilter & { skip: number }, { atMs: number }> {
  return query({
    params: ChangeFilter.extend({ skip: z.int().nonnegative() }),
    row: z.object({ atMs: Ms }),
    sql: `
      SELECT toFloat64(toUnixTimestamp64Milli(c.ts)) AS atMs
      FROM {leaderboard_change: Identifier} AS c
      WHERE c.is_change ${conditionsOf(filter)}
      ORDER BY c.ts DESC
      LIMIT 1 OFFSET {skip: UInt32}`
  })
}

type NewestParams = ChangeFilter & { fromMs: number; limit: number; rowOffset: number }

/** Selects the changes since an instant, newest first; of one instant, the last recorded first. */
export function newestChanges(filter: ChangeFilter): Query<NewestParams, ChangeRow> {
  return query({
    params: ChangeFilter.extend({ fromMs: Ms, limit: z.int().positive(), rowOffset: z.int().nonnegative() }),
    row: ChangeRow,
    sql: `
      SELECT ${COLUMNS}
      FROM {leaderboard_change: Identifier} AS c FINAL
      WHERE c.ts >= fromUnixTimestamp64Milli({fromMs: Int64}, 'UTC') AND c.is_change ${conditionsOf(filter)}
      ORDER BY c.ts DESC, c.recorded_epoch DESC, c.recorded_partition DESC, c.recorded_offset DESC,
        c.epoch DESC, c.partition DESC, c.offset DESC
      LIMIT {limit: UInt32} OFFSET {rowOffset: UInt32}`
  })
}

/** A place in one partition of the feed: the position of a change and its event. */
export const FeedPlace = z.object({
  recordedOffset: z.int().nonnegative(),
  epoch: z.int().nonnegative(),
  partition: z.int().nonnegative(),
  offset: z.int().nonnegative()
})
export type FeedPlace = z.infer<typeof FeedPlace>

type RecordedParams = ChangeFilter &
  FeedPlace & { recordedEpoch: number; recordedPartition: number; endOffset: number; limit: number }

/** Selects the changes of one partition from a place to below an offset, in the order of recording. */
export function recordedChanges(filter: ChangeFilter): Query<RecordedParams, ChangeRow> {
  return query({
    params: ChangeFilter.extend(FeedPlace.shape).extend({
      recordedEpoch: z.int(),
      recordedPartition: z.int(),
      endOffset: z.int(),
      limit: z.int().positive()
    }),
    row: ChangeRow,
    sql: `
      SELECT ${COLUMNS}
      FROM {leaderboard_feed: Identifier} AS c FINAL
      WHERE c.recorded_epoch = {recordedEpoch: UInt16}
        AND c.recorded_partition = {recordedPartition: UInt16}
        AND c.recorded_offset >= {recordedOffset: UInt64}
        AND c.recorded_offset < {endOffset: UInt64}
        AND (c.recorded_offset, c.epoch, c.partition, c.offset)
          >= ({recordedOffset: UInt64}, {epoch: UInt16}, {partition: UInt16}, {offset: UInt64})
        AND c.is_change ${conditionsOf(filter)}
      ORDER BY c.recorded_offset, c.epoch, c.partition, c.offset
      LIMIT {limit: UInt32}`
  })
}
