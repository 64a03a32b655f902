import { LeaderboardId, TitleId } from '@gamenet/schemas'
import { z } from 'zod'
import { knownEvents } from './known-events.js'
import { query } from './query.js'

/*
 * Descriptions of boards by lists. The table has one row per instant at which a description changed, a few thousand in
 * all; the newest one of a board is valid. FINAL, because two events of one instant are two rows.
 */

const Ms = z.int().nonnegative()

/** One board. */
export const BoardParams = z.object({ titleId: TitleId, leaderboardId: LeaderboardId })

/** Selects the listed boards of a title, by id. */
export const listedBoards = query({
  params: z.object({ titleId: TitleId }),
  row: z.object({ id: LeaderboardId, name: z.string() }),
  sql: `
    SELECT l.leaderboard_id AS id, argMax(l.name, l.ts) AS board_name, board_name AS name
    FROM {leaderboard: Identifier} AS l FINAL
    WHERE l.title_id = {titleId: String}
    GROUP BY l.leaderboard_id
    HAVING argMax(l.listed, l.ts)
    ORDER BY l.leaderboard_id`
})

/** Counts the listed boards of a title and their entries. */
export const boardTotals = query({
  params: z.object({ titleId: TitleId }),
  row: z.object({ boards: z.int(), entries: z.int(), times: z.int() }),
  sql: `
    WITH listed AS (
      SELECT l.leaderboard_id
      FROM {leaderboard: Identifier} AS l FINAL
      WHERE l.title_id = {titleId: String}
      GROUP BY l.leaderboard_id
      HAVING argMax(l.listed, l.ts)
    )
    SELECT
      (SELECT toUInt32(count()) FROM listed) AS boards,
      toUInt32(count()) AS entries,
      toUInt32(countIf(e.time_ms IS NOT NULL)) AS times
    FROM {leaderboard_entry: Identifier} AS e FINAL
    WHERE e.title_id = {titleId: String}
      AND e.leaderboard_id IN (SELECT * FROM listed)
      AND NOT e.is_gone`
})

/** Selects the newest description of a board until `at`; there is one. */
export const boardDescription = query({
  params: BoardParams.extend({ at: Ms }),
  row: z.object({ name: z.string(), listed: z.coerce.boolean() }),
  sql: `
    SELECT
      argMax(l.name, l.ts) AS board_name,
      board_name AS name,
      argMax(l.listed, l.ts) AS is_listed,
      is_listed AS listed
    FROM {leaderboard: Identifier} AS l FINAL
    WHERE l.title_id = {titleId: String}
      AND l.leaderboard_id = {leaderboardId: UInt32}
      AND l.ts <= fromUnixTimestamp64Milli({at: Int64}, 'UTC')`
})

/** As {@link boardDescription}, from what was known at `knownAt`; no row without a known description. */
export const knownDescription = query({
  params: BoardParams.extend({ at: Ms, knownAt: Ms }),
  row: z.object({ name: z.string(), listed: z.coerce.boolean() }),
  sql: `
    SELECT argMax(k.name, k.age) AS name, argMax(k.listed, k.age) AS listed
    FROM (${knownEvents(
      'leaderboard',
      'e.name AS name, e.listed AS listed, (e.observed_at, e.position) AS age',
      `e.title_id = {titleId: String} AND e.leaderboard_id = {leaderboardId: UInt32}
          AND e.observed_at <= fromUnixTimestamp64Milli({at: Int64}, 'UTC')`
    )}
    ) AS k
    HAVING count() > 0`
})

/** Selects when a list or an entry first mentioned a board, in milliseconds since 1970; null for an unknown board. */
export const firstSight = query({
  params: BoardParams,
  row: z.object({ firstMs: Ms.nullable() }),
  sql: `
    SELECT toFloat64(minOrNull(s.ms)) AS firstMs
    FROM (
      SELECT toUnixTimestamp64Milli(l.ts) AS ms
      FROM {leaderboard: Identifier} AS l
      WHERE l.title_id = {titleId: String} AND l.leaderboard_id = {leaderboardId: UInt32}
      UNION ALL
      SELECT toUnixTimestamp64Milli(h.ts) AS ms
      FROM {leaderboard_history: Identifier} AS h
      WHERE h.title_id = {titleId: String} AND h.leaderboard_id = {leaderboardId: UInt32}
    ) AS s`
})

/**
 * Selects the current description of every board, its start, and the start of the board's first description, in
 * milliseconds since 1970. A few thousand rows.
 */
export const describedBoards = query({
  params: z.object({}),
  row: BoardParams.extend({ name: z.string(), listed: z.coerce.boolean(), firstMs: Ms, newestMs: Ms }),
  sql: `
    SELECT
      l.title_id AS titleId,
      l.leaderboard_id AS leaderboardId,
      argMax(l.name, l.ts) AS board_name,
      board_name AS name,
      argMax(l.listed, l.ts) AS is_listed,
      is_listed AS listed,
      toFloat64(toUnixTimestamp64Milli(min(l.ts))) AS firstMs,
      toFloat64(toUnixTimestamp64Milli(max(l.ts))) AS newestMs
    FROM {leaderboard: Identifier} AS l FINAL
    GROUP BY l.title_id, l.leaderboard_id`
})

/**
 * Selects titles known by a board, an entry or a list of matches; each of these tables has a row per board or title.
 */
export const titlesOfBoardsAndMatches = query({
  params: z.object({}),
  row: z.object({ titleId: TitleId }),
  sql: `
    SELECT DISTINCT t.title_id AS titleId
    FROM (
      SELECT DISTINCT l.title_id AS title_id FROM {leaderboard: Identifier} AS l
      UNION ALL
      SELECT DISTINCT r.title_id AS title_id FROM {record_history: Identifier} AS r
      UNION ALL
      SELECT DISTINCT m.title_id AS title_id FROM {match_latest: Identifier} AS m
    ) AS t`
})
