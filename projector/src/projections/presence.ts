import { presenceTopic } from '@gamenet/schemas'
import { INSTANT_MS, type Projection } from '../store/projection.js'

/** One row per user and instant; of two sightings of one instant the later event counts. */
export const presence: Projection = {
  name: 'presence',
  from: presenceTopic,
  into: 'presence',
  columns: ['user_key', 'ts', 'is_online', 'game', 'period_s', 'position'],
  select: `
    SELECT e.user_key, e.observed_at, e.is_online, e.game, e.period_s, e.position
    FROM {event_presence: Identifier} AS e
    WHERE {range}`,
  touches: { key: 'e.user_key', bucketMs: INSTANT_MS }
}
