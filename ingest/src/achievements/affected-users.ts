import type { Parameters, ReadTables } from '@gamenet/schemas'
import type { EvaluatedTopic } from './topic-positions.js'

/** A stretch of one partition's events, half-open. */
export type OffsetRange = {
  readonly epoch: number
  readonly partition: number
  readonly first: number
  readonly next: number
  /** These of the stretch alone; all of them unless given. */
  readonly offsets?: readonly number[]
}

/**
 * Who may have reached something by events `e` of a topic, as user_keys. Of a board everybody whose name ever stood on it:
 * a new entry moves all others.
 */
const AFFECTED_BY_TOPIC: Readonly<Record<EvaluatedTopic, string>> = {
  presence: 'SELECT DISTINCT e.user_key AS user_key FROM event_presence AS e WHERE {range}',
  profile: 'SELECT DISTINCT e.user_key AS user_key FROM event_profile AS e WHERE {range}',
  rating: 'SELECT DISTINCT arrayJoin([e.user_key, e.rater_key]) AS user_key FROM event_rating AS e WHERE {range}',
  'leaderboard-entry': `
    SELECT DISTINCT u.user_key AS user_key FROM user_player AS u
    WHERE u.player_key IN (
      SELECT l.player_key FROM leaderboard_entry AS l
      WHERE (l.title_id, l.leaderboard_id) IN (
        SELECT e.title_id, e.leaderboard_id FROM event_leaderboard_entry AS e WHERE {range}))`
}

/** Who holds the record of a board now: a reign grows longer without events. */
const AFFECTED_BY_TIME = `
  SELECT DISTINCT u.user_key AS user_key FROM user_player AS u
  WHERE u.player_key IN (
    SELECT n.player_key FROM player AS n
    WHERE n.player IN (
      SELECT arrayElement(h.players, -1) FROM record_history AS h FINAL
      WHERE notEmpty(h.players) AND arrayElement(h.to_at, -1) IS NULL))`

/** The users that events of a range touched. */
export async function usersAffectedBy(
  tables: ReadTables,
  topic: EvaluatedTopic,
  range: readonly OffsetRange[],
  signal?: AbortSignal
): Promise<string[]> {
  const { sql, parameters } = rangeCondition(range)
  return await userKeys(tables, AFFECTED_BY_TOPIC[topic].replaceAll('{range}', sql), parameters, signal)
}

/** The users who may have reached something because time has passed. */
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

/** The condition that an event `e` lies in one of the stretches, with its values bound. */
function rangeCondition(range: readonly OffsetRange[]): { readonly sql: string; readonly parameters: Parameters } {
  const parameters: Record<string, unknown> = {}
  const conditions = range.map(({ epoch, partition, first, next, offsets }, n) => {
    parameters[`epoch_${n}`] = epoch
    parameters[`partition_${n}`] = partition
    parameters[`first_${n}`] = first
    parameters[`next_${n}`] = next
    if (offsets !== undefined) parameters[`offsets_${n}`] = offsets
    return (
      `(e.epoch = {epoch_${n}: UInt16} AND e.partition = {partition_${n}: UInt16}` +
      ` AND e.offset >= {first_${n}: UInt64} AND e.offset < {next_${n}: UInt64}` +
      `${offsets === undefined ? '' : ` AND e.offset IN {offsets_${n}: Array(UInt64)}`})`
    )
  })
  return { sql: `(${conditions.join(' OR ')})`, parameters }
}
