import { newUnlock, RecentUnlocks } from '@gamenet/schemas'
import { z } from 'zod'
import type { AnswerContext, Endpoint } from '../answers/endpoint.js'
import { listIn } from '../answers/table.js'
import { newestUnlocks, unlockEventCount } from '../queries/achievement-unlock-feed.js'
import { rowsOf } from '../queries/query.js'
import { integer } from '../request/parameters.js'
import { ACHIEVEMENT_TAGS } from './achievement.js'

/** Events read per requested unlock; nearly all events are valid. */
const READ_AHEAD = 2

/** `GET /api/achievements/recent`: the newest unlocks of all users. */
export const recentUnlocks: Endpoint<{ limit: number }, { limit: number }> = {
  operationId: 'getRecentUnlocks',
  path: '/api/achievements/recent',
  tags: ACHIEVEMENT_TAGS,
  summary: 'The newest unlocks',
  description: 'Of all users, newest first. A hidden achievement shows only its number and points.',
  input: z.object({ limit: integer({ min: 1, max: 100 }).default(10).describe('Maximum number of unlocks.') }),
  resolve: (input) => input,
  reads: () => [{ projection: 'achievement-unlock-feed' }, { projection: 'achievement-unlock' }],
  answer: async ({ limit }, context) => ({
    body: {
      recent: (await newest(limit, context)).flatMap(({ username, ...unlock }) => {
        const shown = newUnlock(unlock)
        return shown === undefined ? [] : { username, ...shown }
      })
    }
  }),
  table: listIn(RecentUnlocks, 'recent'),
  response: RecentUnlocks
}

/** Returns the newest valid unlocks: reads more events until there are enough, or no more. */
async function newest(limit: number, { tables, signal }: AnswerContext) {
  const [count] = await rowsOf(tables, unlockEventCount, {}, { signal })
  for (let rows = limit * READ_AHEAD; ; rows *= 8) {
    const found = await rowsOf(tables, newestUnlocks, { rows }, { signal })
    if (found.length >= limit || rows >= (count?.events ?? 0)) return found.slice(0, limit)
  }
}
