import { z } from 'zod'
import { query } from './query.js'

/** What a user has unlocked, newest first; a few dozen rows at most. */
export const unlocksOfUser = query({
  params: z.object({ userKey: z.string() }),
  row: z.object({ achievementId: z.int(), points: z.int(), unlockedMs: z.int().nonnegative() }),
  sql: `
    SELECT
      u.achievement_id AS achievementId,
      u.points AS points,
      toFloat64(toUnixTimestamp64Milli(u.ts)) AS unlockedMs
    FROM achievement_unlock AS u FINAL
    WHERE u.user_key = {userKey: String}
    ORDER BY u.ts DESC, u.achievement_id`
})
