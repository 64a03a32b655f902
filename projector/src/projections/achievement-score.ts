import { achievementUnlockTopic } from '@gamenet/schemas'
import { INSTANT_MS, type Projection } from '../projection.js'
import { achievementUnlock } from './achievement-unlock.js'

/** What the unlocks of the touched users come to; the name is spelt as in the newest of them. */
export const achievementScore: Projection = {
  name: 'achievement-score',
  from: achievementUnlockTopic,
  into: 'achievement_score',
  columns: ['user_key', 'username', 'score', 'achievements', 'version'],
  after: achievementUnlock.name,
  select: `
    SELECT u.user_key, argMin(u.username, u.age), sum(u.points), count(), max(bitNot(u.age))
    FROM achievement_unlock AS u FINAL
    WHERE u.user_key IN (SELECT e.user_key FROM event_achievement_unlock AS e WHERE {range})
    GROUP BY u.user_key`,
  touches: { key: 'e.user_key', bucketMs: INSTANT_MS }
}
