import { achievementUnlockTopic } from '@gamenet/schemas'
import { INSTANT_MS, type Projection } from '../store/projection.js'
import { achievementUnlock } from './achievement-unlock.js'

/** The events of unlocks by time. */
export const achievementUnlockFeed: Projection = {
  name: 'achievement-unlock-feed',
  from: achievementUnlockTopic,
  into: 'achievement_unlock_feed',
  columns: ['ts', 'user_key', 'achievement_id', 'age'],
  after: achievementUnlock.name,
  select: `
    SELECT e.observed_at, e.user_key, e.achievement_id, bitNot(e.position)
    FROM {event_achievement_unlock: Identifier} AS e
    WHERE {range}`,
  touches: { key: 'e.user_key', bucketMs: INSTANT_MS }
}
