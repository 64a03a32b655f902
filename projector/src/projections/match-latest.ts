import { matchListTopic } from '@gamenet/schemas'
import { INSTANT_MS, type Projection } from '../store/projection.js'

/** The newest list of each title: the newest instant wins, of equal instants the later event. */
export const matchLatest: Projection = {
  name: 'match-latest',
  from: matchListTopic,
  into: 'match_latest',
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
}
