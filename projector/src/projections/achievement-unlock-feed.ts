import { achievementUnlockTopic } from '@gamenet/schemas'
import { INSTANT_MS } from '../store/projection.js'
import { achievementUnlock } from './achievement-unlock.js'
import { rowPerEvent } from './sql-projection.js'

/** The events of unlocks by time. */
export const achievementUnlockFeed = rowPerEvent({
  name: 'achievement-unlock-feed',
  from: achievementUnlockTopic,
  columns: ['ts', 'user_key', 'achievement_id', 'age'],
  after: achievementUnlock.name,
  touches: { key: 'e.user_key', bucketMs: INSTANT_MS }
})
