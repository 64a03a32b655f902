import { presenceTopic } from '@gamenet/schemas'
import { INSTANT_MS, type Projection } from '../store/projection.js'

/** One row per user and field, each from the newest sighting with that field. */
export const presenceLatest: Projection = {
  name: 'presence-latest',
  from: presenceTopic,
  into: 'presence_latest',
  columns: ['user_key', 'field', 'value', 'value_key', 'ts', 'version'],
  select: `
    SELECT f.user_key, f.field, f.newest.1, f.newest.2, f.newest.3, f.version
    FROM (
      SELECT e.user_key AS user_key, v.1 AS field, argMax((v.2, v.3, e.observed_at), e.version) AS newest,
        max(e.version) AS version
      FROM {event_presence: Identifier} AS e
      ARRAY JOIN arrayFilter(x -> x.4, [
        ('username', e.username, '', true),
        ('seen', if(e.is_online, 'online', 'offline'), '', true),
        ('period', toString(e.period_s), '', e.is_online),
        ('online', e.game, '', e.is_online),
        ('game', e.game, '', e.is_online AND e.game != ''),
        ('gamertag', e.gamertag, e.gamertag_key, e.gamertag != '')]) AS v
      WHERE {range}
      GROUP BY user_key, field) AS f`,
  touches: { key: 'e.user_key', bucketMs: INSTANT_MS }
}
