import {
  achievementUnlockTopic,
  Count,
  importRetractionTopic,
  leaderboardEntryTopic,
  loadCheckpoint,
  matchListTopic,
  networkCountTopic,
  projectionCheckpoint,
  TitleId,
  titleCountTopic
} from '@gamenet/schemas'
import { z } from 'zod'
import { query } from './query.js'

/*
 * Events in the order of recording, for the stream: event tables by position of the log, changes and records by the
 * position that recorded them. Neither order changes when tables are rebuilt, and later events have higher positions.
 */

/** The projections whose answers show an event: it is streamed once they have consumed it. */
const EXTENTS = {
  count: { topic: networkCountTopic.name, projection: 'network-count' },
  'title-count': { topic: titleCountTopic.name, projection: 'title-count' },
  match: { topic: matchListTopic.name, projection: 'match-latest' },
  achievement: { topic: achievementUnlockTopic.name, projection: 'achievement-unlock-feed' },
  change: { topic: leaderboardEntryTopic.name, projection: 'leaderboard-entry' },
  retracted: { topic: importRetractionTopic.name, projection: 'import-retraction' }
} as const
export type Source = keyof typeof EXTENTS

/** The readers of the log that a source depends on: readable up to the first, loaded up to the second. */
export function checkpointsOf(source: Source): { readonly readable: string; readonly loaded: string } {
  const { topic, projection } = EXTENTS[source]
  return { readable: projectionCheckpoint(projection), loaded: loadCheckpoint(topic) }
}

const Ms = z.int().nonnegative()

/** A part of one partition, and a filter; null means all. */
export const RangeParams = z.object({
  recordedEpoch: z.int(),
  recordedPartition: z.int(),
  firstOffset: z.int(),
  endOffset: z.int(),
  limit: z.int().positive(),
  titleId: TitleId.nullable(),
  playerKey: z.string().nullable(),
  achievementIds: z.array(z.int()),
  topics: z.array(z.string())
})
export type RangeParams = z.infer<typeof RangeParams>

const RANGE = `e.epoch = {recordedEpoch: UInt16} AND e.partition = {recordedPartition: UInt16}
  AND e.offset >= {firstOffset: UInt64} AND e.offset < {endOffset: UInt64}`
const AT = `toFloat64(e.offset) AS offset, toFloat64(toUnixTimestamp64Milli(e.observed_at)) AS atMs,
  toFloat64(toUnixTimestamp64Milli(e.recorded_at)) AS knownMs`
const at = { offset: z.int(), atMs: Ms, knownMs: Ms }
const OF_TITLE = 'AND ({titleId: Nullable(String)} IS NULL OR e.title_id = {titleId: Nullable(String)})'

/** Binds the selection of these columns and events of an event table, in the order of the log. */
function recorded<Row extends z.ZodRawShape>(table: string, row: Row, columns: string, condition = '') {
  return query({
    params: RangeParams,
    row: z.object({ ...at, ...row }),
    sql: `
      SELECT ${AT}, ${columns}
      FROM {${table}: Identifier} AS e
      WHERE ${RANGE} ${condition}
      ORDER BY e.offset
      LIMIT {limit: UInt32}`
  })
}

/** Selects counts of the network. */
export const recordedCounts = recorded(
  'event_network_count',
  { registered: Count.nullable(), online: Count.nullable(), lobbies: Count.nullable() },
  'e.registered AS registered, e.online AS online, e.lobbies AS lobbies'
)

/** Selects counts of titles. */
export const recordedTitleCounts = recorded(
  'event_title_count',
  { titleId: TitleId, online: Count, sessions: Count.nullable(), lobbyPlayers: Count.nullable() },
  'e.title_id AS titleId, e.online AS online, e.sessions AS sessions, e.lobby_players AS lobbyPlayers',
  OF_TITLE
)

/** Selects lists of matches. */
export const recordedLists = recorded(
  'event_match_list',
  { titleId: TitleId, hosts: z.array(z.string()), players: z.array(Count), maxPlayers: z.array(Count) },
  'e.title_id AS titleId, e.hosts AS hosts, e.players AS players, e.max_players AS maxPlayers',
  OF_TITLE
)

/** Selects unlocks; of several events of a user and achievement only the first one is an unlock. */
export const recordedUnlocks = recorded(
  'event_achievement_unlock',
  { username: z.string(), userKey: z.string(), achievementId: z.int(), points: z.int() },
  'e.username AS username, e.user_key AS userKey, e.achievement_id AS achievementId, e.points AS points',
  `AND ({playerKey: Nullable(String)} IS NULL OR e.user_key = {playerKey: Nullable(String)})
      AND ({titleId: Nullable(String)} IS NULL OR has({achievementIds: Array(UInt16)}, e.achievement_id))
      AND (e.user_key, e.achievement_id, bitNot(e.position)) IN (
        SELECT a.user_key, a.achievement_id, a.age FROM {achievement_unlock: Identifier} AS a FINAL
        WHERE a.user_key IN (SELECT e.user_key FROM {event_achievement_unlock: Identifier} AS e WHERE ${RANGE}))`
)

/** Selects undone imports of these topics. */
export const recordedRetractions = recorded(
  'event_import_retraction',
  { retractedImportId: z.string(), topic: z.string() },
  'e.retracted_import_id AS retractedImportId, e.topic AS topic',
  'AND has({topics: Array(String)}, toString(e.topic))'
)

/** Selects the instants of events of boards in one partition. */
export const recordingEvents = query({
  params: z.object({ epoch: z.int(), partition: z.int(), offsets: z.array(z.int()) }),
  row: z.object(at),
  sql: `
    SELECT ${AT}
    FROM {event_leaderboard_entry: Identifier} AS e
    WHERE e.epoch = {epoch: UInt16} AND e.partition = {partition: UInt16} AND e.offset IN {offsets: Array(UInt64)}`
})
