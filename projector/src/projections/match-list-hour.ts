import { matchListTopic } from '@gamenet/schemas'
import { HOUR_MS, type Projection } from '../store/projection.js'
import { matchList } from './match-list.js'

/** The (title, hour) buckets that events touched: `lobbies_max_at` is the first instant of the most lobbies. */
export const matchListHour: Projection = {
  name: 'match-list-hour',
  from: matchListTopic,
  into: 'match_list_hour',
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
}
