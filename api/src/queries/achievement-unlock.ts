import { z } from 'zod'
import { query } from './query.js'

/** Selects the unlocks of a user, newest first; at most a few dozen rows. */
export const unlocksOfUser = query({
  params: z.object({ userKey: z.string() }),
  row: z.object({ achievementId: z.int(), points: z.int(), unlockedMs: z.int().nonnegative() }),
  sql: `
    SELECT
      u.achievement_id AS achievementId,
      u.points AS points,
      toFloat64(toUnixTimestamp64Milli(u.ts)) AS unlockedMs
    FROM {achievement_unlock: Identifier} AS u FINAL
    WHERE u.user_key = {userKey: String}
    ORDER BY u.ts DESC, u.achievement_id`
})
