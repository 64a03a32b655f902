import { achievementUnlockTopic } from '@gamenet/schemas'
import { INSTANT_MS } from '../store/projection.js'
import { rowPerEvent } from './sql-projection.js'

/** Unlocks by user: of several events of a user and achievement the first one in the log counts. */
export const achievementUnlock = rowPerEvent({
  name: 'achievement-unlock',
  from: achievementUnlockTopic,
  columns: ['user_key', 'achievement_id', 'username', 'points', 'ts', 'age'],
  touches: { key: 'e.user_key', bucketMs: INSTANT_MS }
})
