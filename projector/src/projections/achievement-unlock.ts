import { achievementUnlockTopic } from '@gamenet/schemas'
import { INSTANT_MS, type Projection } from '../store/projection.js'

/** Unlocks by user: of several events of a user and achievement the first one in the log counts. */
export const achievementUnlock: Projection = {
  name: 'achievement-unlock',
  from: achievementUnlockTopic,
  into: 'achievement_unlock',
  columns: ['user_key', 'achievement_id', 'username', 'points', 'ts', 'age'],
  select: `
    SELECT e.user_key, e.achievement_id, e.username, e.points, e.observed_at, bitNot(e.position)
    FROM {event_achievement_unlock: Identifier} AS e
    WHERE {range}`,
  touches: { key: 'e.user_key', bucketMs: INSTANT_MS }
}
