import { titleCountTopic } from '@gamenet/schemas'
import { INSTANT_MS, type Projection } from '../store/projection.js'

/**
 * The newest counts of each title, imported ones separate from scraped ones: the newest instant wins, of equal instants
 * the later event.
 */
export const titleLatest: Projection = {
  name: 'title-latest',
  from: titleCountTopic,
  into: 'title_latest',
  columns: ['imported', 'title_id', 'ts', 'online', 'sessions', 'lobby_players', 'version'],
  select: `
    SELECT t.imported, t.title_id, t.newest.1, t.newest.2, t.newest.3, t.newest.4, t.version
    FROM (
      SELECT e.import_id != '' AS imported, e.title_id AS title_id,
        argMax((e.observed_at, e.online, e.sessions, e.lobby_players), e.version) AS newest, max(e.version) AS version
      FROM {event_title_count: Identifier} AS e
      WHERE {range}
      GROUP BY imported, e.title_id) AS t`,
  touches: { key: 'e.title_id', bucketMs: INSTANT_MS }
}
