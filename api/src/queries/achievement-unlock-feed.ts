import { z } from 'zod'
import { query } from './query.js'

/** Selects the valid ones of the `rows` newest unlock events, newest first; of one instant, the last recorded first. */
export const newestUnlocks = query({
  params: z.object({ rows: z.int() }),
  row: z.object({
    username: z.string(),
    achievementId: z.int(),
    points: z.int(),
    unlockedMs: z.int().nonnegative()
  }),
  sql: `
    SELECT DISTINCT
      u.username AS username,
      u.achievement_id AS achievementId,
      u.points AS points,
      toFloat64(toUnixTimestamp64Milli(u.ts)) AS unlockedMs,
      u.age AS age
    FROM (
      SELECT f.ts, f.user_key, f.achievement_id, f.age
      FROM {achievement_unlock_feed: Identifier} AS f
      ORDER BY f.ts DESC, f.age
      LIMIT {rows: UInt32}
    ) AS n
    INNER JOIN (
      SELECT a.user_key, a.achievement_id, a.username, a.points, a.ts, a.age
      FROM {achievement_unlock: Identifier} AS a FINAL
      WHERE (a.user_key, a.achievement_id) IN (
        SELECT f.user_key, f.achievement_id FROM {achievement_unlock_feed: Identifier} AS f
        ORDER BY f.ts DESC, f.age
        LIMIT {rows: UInt32})
    ) AS u ON u.user_key = n.user_key AND u.achievement_id = n.achievement_id AND u.age = n.age
    ORDER BY u.ts DESC, u.age`
})

/** Counts all unlock events, including invalid ones. */
export const unlockEventCount = query({
  params: z.object({}),
  row: z.object({ events: z.coerce.number().int() }),
  sql: 'SELECT toFloat64(count()) AS events FROM {achievement_unlock_feed: Identifier} AS f'
})
