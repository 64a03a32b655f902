import { z } from 'zod'
import { query } from './query.js'

/** Selects the highest scores; equal ones in order of names without case. */
export const highestScores = query({
  params: z.object({ limit: z.int() }),
  row: z.object({
    rank: z.coerce.number().int(),
    username: z.string(),
    totalScore: z.int(),
    achievementCount: z.int()
  }),
  sql: `
    SELECT toFloat64(r.rank) AS rank, r.username AS username, r.score AS totalScore, r.achievements AS achievementCount
    FROM (
      SELECT s.user_key, s.username, s.score, s.achievements, rank() OVER (ORDER BY s.score DESC) AS rank
      FROM {achievement_score: Identifier} AS s FINAL
    ) AS r
    ORDER BY r.score DESC, r.user_key
    LIMIT {limit: UInt32}`
})
