import { z } from 'zod'
import { query } from './query.js'

/** Selects the names of users whose key begins with `prefix`, by key: those of profiles, else of presence. */
export const usersByPrefix = query({
  params: z.object({ prefix: z.string(), limit: z.int().positive() }),
  row: z.object({ name: z.string() }),
  sql: `
    SELECT argMax(u.username, u.is_profile) AS name
    FROM (
      SELECT p.user_key AS user_key, p.username AS username, true AS is_profile
      FROM {profile: Identifier} AS p FINAL
      WHERE startsWith(p.user_key, {prefix: String})
      UNION ALL
      SELECT l.user_key AS user_key, l.value AS username, false AS is_profile
      FROM {presence_latest: Identifier} AS l FINAL
      WHERE startsWith(l.user_key, {prefix: String}) AND l.field = 'username'
    ) AS u
    GROUP BY u.user_key
    ORDER BY u.user_key
    LIMIT {limit: UInt32}`
})
