import {
  achievementUnlockTopic,
  conditionOf,
  type Heads,
  headsOf,
  importRunTopic,
  type LogExtents,
  type OffsetRange,
  type Parameters,
  projectionCheckpoint,
  type ReadTables
} from '@gamenet/schemas'
import { hasCaughtUp, tableProgress } from '../caught-up.js'
import type { ServedTables } from '../ports/served-tables.js'
import { USER_PLAYERS } from './user-players.js'

/** The projections whose tables represent a topic's events for achievements. */
const PROJECTIONS_BY_TOPIC = {
  presence: ['presence-day', 'presence-latest', 'user-gamertag'],
  profile: ['profile'],
  rating: ['rating', 'rating-given'],
  'leaderboard-entry': ['leaderboard-entry', 'player-entry', 'player']
} as const

/** A topic whose events affect achievements of users. */
export type EvaluatedTopic = keyof typeof PROJECTIONS_BY_TOPIC
export const EVALUATED_TOPICS = Object.keys(PROJECTIONS_BY_TOPIC) as readonly EvaluatedTopic[]

const UNLOCK_PROJECTIONS = ['achievement-unlock']

/**
 * Positions of the log or of the tables: per topic the position that all its projections have reached, and that of the
 * table of unlocks.
 */
export type TopicPositions = {
  readonly byTopic: Readonly<Record<EvaluatedTopic, Heads>>
  readonly unlocks: Heads
}

/** Returns the current ends of the log. */
export async function logPositions(log: LogExtents): Promise<TopicPositions> {
  const [unlocks, ...heads] = await Promise.all(
    [achievementUnlockTopic.name, ...EVALUATED_TOPICS].map((topic) => headsOf(log, topic))
  )
  const byTopic = Object.fromEntries(EVALUATED_TOPICS.map((topic, n) => [topic, heads[n] ?? []]))
  return { byTopic: byTopic as Record<EvaluatedTopic, Heads>, unlocks: unlocks ?? [] }
}

/** Returns whether `reached` is at or beyond `held` in all topics. */
export function includes(reached: TopicPositions, held: TopicPositions): boolean {
  return (
    EVALUATED_TOPICS.every((topic) => hasCaughtUp(reached.byTopic[topic], held.byTopic[topic])) &&
    hasCaughtUp(reached.unlocks, held.unlocks)
  )
}

/** Reads the positions of the tables in one query. */
export async function tablePositions({ positions }: ServedTables): Promise<TopicPositions> {
  const projections = [...Object.values(PROJECTIONS_BY_TOPIC).flat(), ...UNLOCK_PROJECTIONS]
  const found = await positions(projections.map(projectionCheckpoint))
  const least = (projections: readonly string[]): Heads => {
    const names = projections.map(projectionCheckpoint)
    const heads = new Map<string, { epoch: number; partition: number; next: number; seen: number }>()
    for (const { name, epoch, partition, next } of found) {
      if (!names.includes(name)) continue
      const key = `${epoch}/${partition}`
      const before = heads.get(key) ?? { epoch, partition, next, seen: 0 }
      heads.set(key, { ...before, next: Math.min(before.next, next), seen: before.seen + 1 })
    }
    // A projection without a checkpoint has not started.
    return [...heads.values()]
      .filter(({ seen }) => seen === names.length)
      .map(({ epoch, partition, next }) => ({ epoch, partition, next }))
  }
  const byTopic = Object.fromEntries(EVALUATED_TOPICS.map((topic) => [topic, least(PROJECTIONS_BY_TOPIC[topic])]))
  return { byTopic: byTopic as Record<EvaluatedTopic, Heads>, unlocks: least(UNLOCK_PROJECTIONS) }
}

/**
 * An import announces itself before its first event, every few seconds and at its end. This pause bridges the gap
 * between two files.
 */
const QUIET_MS = 60_000

/**
 * Returns whether a history of users is being imported, or was until a minute ago. Half a history looks like a pause of
 * a year, or like a board without its best entries. An import that died is awaited no longer than one that ended.
 */
export async function isImporting(
  needs: { readonly log: LogExtents; readonly now: () => number; readonly signal?: AbortSignal },
  served: ServedTables
): Promise<boolean> {
  const { log, signal } = needs
  const heads = await headsOf(log, importRunTopic.name)
  const reached = await tableProgress(served, 'import-run')
  if (!reached.has(heads)) return true
  const nowMs = needs.now()
  const rows = await served.tables.rows(
    `SELECT 1 AS is_recent FROM {import_run: Identifier} AS i
     WHERE i.topic IN {topics: Array(String)}
       AND i.ts > fromUnixTimestamp64Milli({from_ms: Int64}, 'UTC')
       AND i.ts < fromUnixTimestamp64Milli({to_ms: Int64}, 'UTC')
     LIMIT 1`,
    { topics: [...EVALUATED_TOPICS], from_ms: nowMs - QUIET_MS, to_ms: nowMs + QUIET_MS },
    signal === undefined ? {} : { signal }
  )
  return rows.length > 0
}

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
