import { AchievementLeaderboard } from '@gamenet/schemas'
import { z } from 'zod'
import type { Endpoint } from '../answers/endpoint.js'
import { listIn } from '../answers/table.js'
import { highestScores } from '../queries/achievement-score.js'
import { rowsOf } from '../queries/query.js'
import { integer } from '../request/parameters.js'
import { ACHIEVEMENT_TAGS } from './achievement.js'

/** `GET /api/achievements/leaderboard`: users by achievement score. */
export const achievementLeaderboard: Endpoint<{ limit: number }, { limit: number }> = {
  operationId: 'getAchievementLeaderboard',
  path: '/api/achievements/leaderboard',
  tags: ACHIEVEMENT_TAGS,
  summary: 'The highest achievement scores',
  description: 'Equal scores share a rank (1, 1, 3) and are ordered by name without case.',
  input: z.object({ limit: integer({ min: 1, max: 100 }).default(25).describe('Maximum number of users.') }),
  resolve: (input) => input,
  reads: () => [{ projection: 'achievement-score' }],
  answer: async ({ limit }, { tables, signal }) => ({
    body: { leaderboard: await rowsOf(tables, highestScores, { limit }, { signal }) }
  }),
  table: listIn(AchievementLeaderboard, 'leaderboard'),
  response: AchievementLeaderboard
}
