import { titleCountTopic } from '@gamenet/schemas'
import { INSTANT_MS, type Projection } from '../store/projection.js'

/** One row per title and instant; a later event of the same instant replaces the whole row. */
export const titleCount: Projection = {
  name: 'title-count',
  from: titleCountTopic,
  into: 'title_count',
  columns: ['title_id', 'ts', 'online', 'sessions', 'lobby_players', 'position'],
  select: `
    SELECT e.title_id, e.observed_at, e.online, e.sessions, e.lobby_players, e.position
    FROM {event_title_count: Identifier} AS e
    WHERE {range}`,
  touches: { key: 'e.title_id', bucketMs: INSTANT_MS }
}
