import { matchListTopic } from '@gamenet/schemas'
import { INSTANT_MS, type Projection } from '../store/projection.js'

/** One row per title and instant; a later list of the same instant replaces the whole row. */
export const matchList: Projection = {
  name: 'match-list',
  from: matchListTopic,
  into: 'match_list',
  columns: ['title_id', 'ts', 'hosts', 'players', 'max_players', 'position'],
  select: `
    SELECT e.title_id, e.observed_at, e.hosts, e.players, e.max_players, e.position
    FROM {event_match_list: Identifier} AS e
    WHERE {range}`,
  touches: { key: 'e.title_id', bucketMs: INSTANT_MS }
}
