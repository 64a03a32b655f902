import { z } from 'zod'
import { query } from './query.js'

/** Counts the users of each achievement. Reads one row per user and achievement. */
export const unlockCounts = query({
  params: z.object({}),
  row: z.object({ achievementId: z.int(), users: z.coerce.number().int() }),
  sql: `
    SELECT u.achievement_id AS achievementId, toFloat64(uniqExact(sipHash64(u.user_key))) AS users
    FROM {achievement_unlock: Identifier} AS u
    GROUP BY u.achievement_id`
})

/** Counts the users with any achievement. */
export const achieverCount = query({
  params: z.object({}),
  row: z.object({ users: z.coerce.number().int() }),
  sql: 'SELECT toFloat64(count()) AS users FROM {achievement_score: Identifier} AS s FINAL'
})
