import { conditionOf, type OffsetRange, type Parameters, type ReadTables } from '@gamenet/schemas'
import type { EvaluatedTopic } from './topic-positions.js'
import { USER_PLAYERS } from './user-players.js'

/**
 * Selects the user_keys that events `e` of a topic affect. An event of a board affects every user whose name was ever
 * on it, because a new entry moves all others.
 */
const AFFECTED_BY_TOPIC: Readonly<Record<EvaluatedTopic, string>> = {
  presence: 'SELECT DISTINCT e.user_key AS user_key FROM {event_presence: Identifier} AS e WHERE {range}',
  profile: 'SELECT DISTINCT e.user_key AS user_key FROM {event_profile: Identifier} AS e WHERE {range}',
  rating:
    'SELECT DISTINCT arrayJoin([e.user_key, e.rater_key]) AS user_key FROM {event_rating: Identifier} AS e WHERE ' +
    '{range}',
  'leaderboard-entry': `
    SELECT DISTINCT u.user_key AS user_key FROM (${USER_PLAYERS}) AS u
    WHERE u.player_key IN (
      SELECT l.player_key FROM {leaderboard_entry: Identifier} AS l
      WHERE (l.title_id, l.leaderboard_id) IN (
        SELECT e.title_id, e.leaderboard_id FROM {event_leaderboard_entry: Identifier} AS e WHERE {range}))`
}

/** The current record holders: a reign grows longer without events. */
const AFFECTED_BY_TIME = `
  SELECT DISTINCT u.user_key AS user_key FROM (${USER_PLAYERS}) AS u
  WHERE u.player_key IN (
    SELECT n.player_key FROM {player: Identifier} AS n
    WHERE n.player IN (
      SELECT arrayElement(h.players, -1) FROM {record_history: Identifier} AS h FINAL
      WHERE notEmpty(h.players) AND arrayElement(h.to_at, -1) IS NULL))`

/** Returns the users that events of a range affect. */
export async function usersAffectedBy(
  tables: ReadTables,
  topic: EvaluatedTopic,
  range: readonly OffsetRange[],
  signal?: AbortSignal
): Promise<string[]> {
  const { sql, parameters } = conditionOf(range)
  return await userKeys(tables, AFFECTED_BY_TOPIC[topic].replaceAll('{range}', sql), parameters, signal)
}

/** Returns the users whose achievements depend on elapsed time. */
export async function usersAffectedByTime(tables: ReadTables, signal?: AbortSignal): Promise<string[]> {
  return await userKeys(tables, AFFECTED_BY_TIME, {}, signal)
}

async function userKeys(
  tables: ReadTables,
  sql: string,
  parameters: Parameters,
  signal: AbortSignal | undefined
): Promise<string[]> {
  const rows = await tables.rows(sql, parameters, signal === undefined ? {} : { signal })
  return rows.map((row) => String(row.user_key))
}
