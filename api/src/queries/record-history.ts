import { Count, LeaderboardId, TitleId } from '@gamenet/schemas'
import { z } from 'zod'
import { BoardParams } from './leaderboard.js'
import { KNOWN_STATES } from './leaderboard-entry.js'
import { query } from './query.js'

const Ms = z.int().nonnegative()

/** Selects the reigns of a board's record, oldest first, as parallel arrays. Instants in milliseconds since 1970. */
export const boardRecords = query({
  params: BoardParams,
  row: z.object({
    players: z.array(z.string()),
    ratings: z.array(z.string()),
    timesMs: z.array(Count.nullable()),
    setMs: z.array(Ms),
    fromMs: z.array(Ms),
    toMs: z.array(Ms.nullable())
  }),
  sql: `
    SELECT
      r.players AS players,
      r.ratings AS ratings,
      r.times_ms AS timesMs,
      arrayMap(t -> toFloat64(toUnixTimestamp64Milli(t)), r.set_at) AS setMs,
      arrayMap(t -> toFloat64(toUnixTimestamp64Milli(t)), r.from_at) AS fromMs,
      arrayMap(t -> toFloat64(toUnixTimestamp64Milli(t)), r.to_at) AS toMs
    FROM {record_history: Identifier} AS r FINAL
    WHERE r.title_id = {titleId: String} AND r.leaderboard_id = {leaderboardId: UInt32}`
})

/**
 * Selects all states of a board as known at `knownAt`, each fact once, in the columns of the projector's read
 * `entries`.
 */
export const knownStates = query({
  params: BoardParams.extend({ knownAt: Ms }),
  row: z.looseObject({ players: z.array(z.string()) }),
  sql: `
    SELECT {titleId: String} AS title_id, {leaderboardId: UInt32} AS leaderboard_id,
      groupArray(e.player) AS players, groupArray(e.occurrence) AS occurrences,
      groupArray(e.player_key) AS player_keys, groupArray(e.states) AS states, groupArray(e.first_ms) AS first_ms
    FROM (
      SELECT s.player AS player, s.occurrence AS occurrence, any(s.player_key) AS player_key,
        toFloat64(toUnixTimestamp64Milli(minIf(s.ts, NOT s.is_gone))) AS first_ms,
        groupArray((
          toFloat64(toUnixTimestamp64Milli(s.ts)), s.epoch, s.partition, toFloat64(s.offset), s.is_gone, s.rating,
          s.time_ms, s.stated_rank, toFloat64(s.ord), toFloat64(s.step), s.details, s.is_ascending)) AS states
      FROM (
        SELECT * FROM ${KNOWN_STATES} AS h
        ORDER BY h.epoch, h.offset
        LIMIT 1 BY h.player, h.occurrence, h.ts, h.is_gone, h.rating, h.time_ms, h.is_ascending, h.stated_rank, h.ord,
          h.step, h.details
      ) AS s
      GROUP BY s.player, s.occurrence
    ) AS e
    HAVING notEmpty(players)`
})

/** The reigns of a board as the projector's fold returns them, in the form of {@link boardRecords}. */
export const FoldedRecords = z
  .object({
    players: z.array(z.string()),
    ratings: z.array(z.string()),
    times_ms: z.array(Count.nullable()),
    set_at: z.array(Ms),
    from_at: z.array(Ms),
    to_at: z.array(Ms.nullable())
  })
  .transform(({ players, ratings, times_ms: timesMs, set_at: setMs, from_at: fromMs, to_at: toMs }) => {
    return { players, ratings, timesMs, setMs, fromMs, toMs }
  })

/** A record, and the reign that it ended. Instants in milliseconds since 1970. */
const record = z.object({
  titleId: TitleId,
  leaderboardId: LeaderboardId,
  player: z.string(),
  rating: z.string(),
  timeMs: Count.nullable(),
  setMs: Ms,
  isCurrent: z.coerce.boolean(),
  hasPrevious: z.coerce.boolean(),
  previousPlayer: z.string(),
  previousRating: z.string(),
  previousTimeMs: Count.nullable()
})

/**
 * Selects from the boards that `where` chooses. Excludes a record that a removal restored: it was set before its reign
 * began. Entries of a board's first instant beat none: the order in which they were set is not known.
 */
const records = (where: string) => `SELECT
      s.title_id AS titleId,
      s.leaderboard_id AS leaderboardId,
      s.reign.1 AS player,
      s.reign.2 AS rating,
      s.reign.3 AS timeMs,
      toFloat64(toUnixTimestamp64Milli(s.reign.5)) AS setMs,
      s.reign.6 IS NULL AS isCurrent,
      s.reign.5 > s.reigns[1].5 AND s.former.4 IS NOT NULL AND s.former.4 = s.reign.5 AS hasPrevious,
      s.former.1 AS previousPlayer,
      s.former.2 AS previousRating,
      s.former.3 AS previousTimeMs
    FROM (
      SELECT
        r.title_id AS title_id,
        r.leaderboard_id AS leaderboard_id,
        arrayZip(r.players, r.ratings, r.times_ms, r.set_at, r.from_at, r.to_at) AS reigns,
        arrayZip(r.players, r.ratings, r.times_ms, r.to_at) AS ends,
        arrayJoin(
          arrayFilter(
            each -> each.2.4 = each.2.5,
            arrayZip(arrayEnumerate(reigns), reigns, arrayPushFront(arrayPopBack(ends), ends[1]))
          )
        ) AS found,
        found.1 AS number,
        found.2 AS reign,
        found.3 AS former
      FROM {record_history: Identifier} AS r FINAL
      WHERE ${where} AND notEmpty(r.players)
    ) AS s`

/** Selects new records, newest first; of a player in every spelling. Reads one row per board: a few thousand. */
export const recentRecords = query({
  params: z.object({
    titleId: z.union([z.literal(''), TitleId]),
    playerKey: z.string(),
    contested: z.int(),
    limit: z.int(),
    offset: z.int()
  }),
  row: record,
  sql: `
    ${records(`({titleId: String} = '' OR r.title_id = {titleId: String})`)}
    WHERE ({contested: UInt8} = 0 OR hasPrevious)
      AND (
        {playerKey: String} = ''
        OR s.reign.1 IN (SELECT p.player FROM {player: Identifier} AS p WHERE p.player_key = {playerKey: String})
      )
    ORDER BY s.reign.5 DESC, s.title_id, s.leaderboard_id, s.number DESC
    LIMIT {limit: UInt32} OFFSET {offset: UInt32}`
})

/** Selects the records of these boards: pairs of a title and a board. */
export const recordsOfBoards = query({
  params: z.object({ titleIds: z.array(TitleId), leaderboardIds: z.array(LeaderboardId) }),
  row: record,
  sql: records(
    'has(arrayZip({titleIds: Array(String)}, {leaderboardIds: Array(UInt32)}), (toString(r.title_id), ' +
      'r.leaderboard_id))'
  )
})
