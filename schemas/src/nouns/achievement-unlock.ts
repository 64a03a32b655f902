import { z } from 'zod'
import { Instant } from '../values/instant.js'
import { Username } from '../values/username.js'
import { topic } from '../wire/topic.js'

/** A user fulfilled an achievement's rule. At most one unlock per user and achievement; the first event counts. */
export const AchievementUnlocked = z.object({
  username: Username,
  /** The achievement's number in the catalog; never reused. */
  achievementId: z.int().min(1).max(65_535),
  /** The achievement's points when it was reached. */
  points: z.int().min(0).max(1000),
  /** When its rule was fulfilled. */
  unlockedAt: Instant
})
export type AchievementUnlocked = z.infer<typeof AchievementUnlocked>

export const achievementUnlockTopic = topic({
  name: 'achievement-unlock',
  event: AchievementUnlocked,
  people: (event) => [event.username],
  identity: (event) => String(event.achievementId),
  instant: (event) => event.unlockedAt
})
