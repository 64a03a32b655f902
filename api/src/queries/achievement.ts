import { z } from 'zod'
import { query } from './query.js'

/** How many users have each achievement. A row a user and achievement is read. */
export const unlockCounts = query({
  params: z.object({}),
  row: z.object({ achievementId: z.int(), users: z.coerce.number().int() }),
  sql: `
    SELECT u.achievement_id AS achievementId, toFloat64(uniqExact(sipHash64(u.user_key))) AS users
    FROM achievement_unlock AS u
    GROUP BY u.achievement_id`
})

/** How many users have any achievement. */
export const achieverCount = query({
  params: z.object({}),
  row: z.object({ users: z.coerce.number().int() }),
  sql: 'SELECT toFloat64(count()) AS users FROM achievement_score AS s FINAL'
})
