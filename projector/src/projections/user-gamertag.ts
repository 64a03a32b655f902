import { presenceTopic } from '@gamenet/schemas'
import { INSTANT_MS, type Projection } from '../store/projection.js'

/** All gamertags of each user. */
export const userGamertag: Projection = {
  name: 'user-gamertag',
  from: presenceTopic,
  into: 'user_gamertag',
  columns: ['gamertag_key', 'user_key'],
  select: `
    SELECT DISTINCT e.gamertag_key, e.user_key
    FROM {event_presence: Identifier} AS e
    WHERE {range} AND e.gamertag != ''`,
  touches: { key: 'e.user_key', bucketMs: INSTANT_MS }
}
