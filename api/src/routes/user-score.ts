import { boardKey, measureGap, UserScores } from '@gamenet/schemas'
import { z } from 'zod'
import type { AnswerContext, Endpoint } from '../answers/endpoint.js'
import { listIn } from '../answers/table.js'
import { newestChanges } from '../queries/leaderboard-change.js'
import { entriesOfPlayers } from '../queries/player-entry.js'
import { rowsOf } from '../queries/query.js'
import { integer } from '../request/parameters.js'
import { readsNames } from './entry-match.js'
import { knownUser, readsUser, type UserRequest, usernameParameter, userRequest } from './known-user.js'
import { EVERYTHING, shownEntries } from './player.js'
import { PROFILE_TAGS } from './profile.js'

type ScoresInput = { username: string; limit: number }
type ScoresRequest = UserRequest & { readonly limit: number; readonly sinceMs: number }

const DAY_MS = 86_400_000
const CHANGES_MAX = 10_000

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
  resolve: ({ username, limit }, { nowMs }) => ({
    ...userRequest(username),
    limit,
    sinceMs: (Math.floor(nowMs / DAY_MS) - 30) * DAY_MS
  }),
  reads: ({ userKey }) => [
    ...readsUser(userKey),
    { projection: 'player-entry' },
    { projection: 'leaderboard-entry' },
    ...readsNames('')
  ],
  answer: async (request, context) => ({ body: await answerScores(request, context) }),
  table: listIn(UserScores, 'scores'),
  response: UserScores,
  refuses: ['user_unknown']
}

async function answerScores({ limit, sinceMs, ...user }: ScoresRequest, context: AnswerContext): Promise<UserScores> {
  const { tables, signal } = context
  const { player } = await knownUser(user, context)
  const filter = { ...EVERYTHING, playerKey: player.key, sinceMs }
  const page = { ...filter, fromMs: sinceMs, limit: CHANGES_MAX, rowOffset: 0 }
  const [entries, changes] = await Promise.all([
    rowsOf(tables, entriesOfPlayers, { keys: [player.key], titleId: '' }, { signal }),
    rowsOf(tables, newestChanges(filter), page, { signal })
  ])
  const rows = entries.slice(0, limit)
  const keyOf = (row: (typeof rows | typeof changes)[number]) => `${boardKey(row)}/${row.playerName}`
  // Newest first: the last one of an entry has its value of 30 days ago.
  const first = new Map(changes.map((change) => [keyOf(change), change]))
  const changeOf = (row: (typeof rows)[number]): number | null => {
    const { previousRating = row.rating, previousTimeMs = row.timeMs } = first.get(keyOf(row)) ?? {}
    return previousRating === null ? null : measureGap(row, { rating: previousRating, timeMs: previousTimeMs })
  }
  const scores = await shownEntries(rows, context)
  return {
    playerName: player.name,
    explicitConsoleGamertag: player.from === 'linked' ? player.name : null,
    usingSiteUsernameFallback: player.from === 'username',
    scores: rows.map((row, index) => ({ ...(scores[index] as (typeof scores)[number]), change30d: changeOf(row) }))
  }
}
