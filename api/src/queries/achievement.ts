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

/** Selects a page of the users with an achievement, newest unlock first. Reads one row per user and achievement. */
export const holdersOf = query({
  params: z.object({ achievementId: z.int(), limit: z.int().positive(), offset: z.int().nonnegative() }),
  row: z.object({ username: z.string(), unlockedMs: z.int().nonnegative() }),
  sql: `
    SELECT u.username AS username, toFloat64(toUnixTimestamp64Milli(u.ts)) AS unlockedMs
    FROM {achievement_unlock: Identifier} AS u FINAL
    WHERE u.achievement_id = {achievementId: UInt16}
    ORDER BY u.ts DESC, u.user_key
    LIMIT {limit: UInt32} OFFSET {offset: UInt32}`
})

/** Counts the users with any achievement. */
export const achieverCount = query({
  params: z.object({}),
  row: z.object({ users: z.coerce.number().int() }),
  sql: 'SELECT toFloat64(count()) AS users FROM {achievement_score: Identifier} AS s FINAL'
})
