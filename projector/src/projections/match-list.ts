import { matchListTopic } from '@gamenet/schemas'
import { HOUR_MS, INSTANT_MS } from '../store/projection.js'
import { rowPerEvent, sqlProjection } from './sql-projection.js'

/** One row per title and instant; a later list of the same instant replaces the whole row. */
export const matchList = rowPerEvent({
  name: 'match-list',
  from: matchListTopic,
  columns: ['title_id', 'ts', 'hosts', 'players', 'max_players', 'position'],
  touches: { key: 'e.title_id', bucketMs: INSTANT_MS }
})

/** The newest list of each title: the newest instant wins, of equal instants the later event. */
export const matchLatest = sqlProjection({
  name: 'match-latest',
  from: matchListTopic,
  columns: ['title_id', 'ts', 'hosts', 'players', 'max_players', 'version'],
  select: `
    SELECT t.title_id, t.newest.1, t.newest.2, t.newest.3, t.newest.4, t.version
    FROM (
      SELECT e.title_id AS title_id,
        argMax((e.observed_at, e.hosts, e.players, e.max_players), e.version) AS newest, max(e.version) AS version
      FROM {event_match_list: Identifier} AS e
      WHERE {range}
      GROUP BY e.title_id) AS t`,
  touches: { key: 'e.title_id', bucketMs: INSTANT_MS }
})

/** The (title, hour) buckets that events touched: `lobbies_max_at` is the first instant of the most lobbies. */
export const matchListHour = sqlProjection({
  name: 'match-list-hour',
  from: matchListTopic,
  columns: ['title_id', 'hour', 'lists', 'lobbies', 'players', 'lobbies_max', 'lobbies_max_at', 'position'],
  after: matchList.name,
  select: `
    SELECT m.title_id, toStartOfHour(m.ts), count(), sum(length(m.hosts)), sum(arraySum(m.players)),
      max(length(m.hosts)), argMin(m.ts, (-toInt64(length(m.hosts)), m.ts)), max(m.position)
    FROM {match_list: Identifier} AS m FINAL
    WHERE (m.title_id, toStartOfHour(m.ts)) IN (
      SELECT e.title_id, toStartOfHour(e.observed_at) FROM {event_match_list: Identifier} AS e WHERE {range})
    GROUP BY m.title_id, toStartOfHour(m.ts)`,
  touches: { key: 'e.title_id', bucketMs: HOUR_MS }
})
