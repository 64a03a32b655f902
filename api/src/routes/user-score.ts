import { shownInstant, timeText, UserScores } from '@gamenet/schemas'
import { z } from 'zod'
import type { AnswerContext, Endpoint } from '../answers/endpoint.js'
import { listIn } from '../answers/table.js'
import { rowsOf } from '../queries/query.js'
import { bestScores } from '../queries/user-score.js'
import { integer } from '../request/parameters.js'
import { readsNames } from './entry-match.js'
import { knownUser, readsUser, type UserRequest, usernameParameter, userRequest } from './known-user.js'
import { PROFILE_TAGS } from './profile.js'

type ScoresInput = { username: string; limit: number }
type ScoresRequest = UserRequest & { readonly limit: number }

/** `GET /api/profile/:username/leaderboard-scores`: the best entries of a user on leaderboards. */
export const userScores: Endpoint<ScoresInput, ScoresRequest> = {
  operationId: 'getUserScores',
  path: '/api/profile/:username/leaderboard-scores',
  tags: PROFILE_TAGS,
  summary: 'Best leaderboard entries of a user',
  description:
    'Best rank first. The name on boards is the linked gamertag, else the newest one that presence saw, else the ' +
    'username; compared without case, every spelling counts.',
  input: z.object({
    username: usernameParameter,
    limit: integer({ min: 1, max: 50 }).default(10).describe('Maximum number of entries.')
  }),
  resolve: ({ username, limit }) => ({ ...userRequest(username), limit }),
  reads: ({ userKey }) => [...readsUser(userKey), { projection: 'player-entry' }, ...readsNames('')],
  answer: async (request, context) => ({ body: await answerScores(request, context) }),
  table: listIn(UserScores, 'scores'),
  response: UserScores,
  example: {
    playerName: 'Lucky Badger',
    explicitConsoleGamertag: 'Lucky Badger',
    usingSiteUsernameFallback: false,
    scores: [
      {
        leaderboardId: 1,
        leaderboardName: 'Best laps',
        titleId: '4d5307e6',
        gameName: 'Halo 3',
        rank: 2,
        rating: '01:02.345',
        timeMs: 62_345,
        timeFormatted: '1:02.345',
        isTime: true,
        observedAt: '2026-03-14T20:00:00.000Z'
      }
    ]
  },
  refuses: ['user_unknown']
}

async function answerScores(request: ScoresRequest, context: AnswerContext): Promise<UserScores> {
  const { tables, signal } = context
  const { player } = await knownUser(request, context)
  const [rows, boards, titles] = await Promise.all([
    rowsOf(tables, bestScores, { playerKey: player.key, limit: request.limit }, { signal }),
    context.boards(),
    context.catalog()
  ])
  return {
    playerName: player.name,
    explicitConsoleGamertag: player.from === 'linked' ? player.name : null,
    usingSiteUsernameFallback: player.from === 'username',
    scores: rows.map((row) => ({
      leaderboardId: row.leaderboardId,
      leaderboardName: boards.nameOf(row),
      titleId: row.titleId,
      gameName: titles.named(row.titleId).shownName,
      rank: row.rank,
      rating: row.rating,
      timeMs: row.timeMs ?? 0,
      timeFormatted: row.timeMs === null ? '' : timeText(row.timeMs),
      isTime: row.timeMs !== null,
      observedAt: shownInstant(row.changedMs)
    }))
  }
}
