import { DailyPlayTime } from '@gamenet/schemas'
import { z } from 'zod'
import type { AnswerContext, Endpoint } from '../answers/endpoint.js'
import { listIn } from '../answers/table.js'
import { type Catalog, compareNames } from '../queries/catalog.js'
import { playDays } from '../queries/play-time.js'
import { rowsOf } from '../queries/query.js'
import { integer } from '../request/parameters.js'
import { knownUser, readsUser, type UserRequest, usernameParameter, userRequest } from './known-user.js'
import { PROFILE_TAGS } from './profile.js'
import { titledGame } from './user-game.js'

const DAY_MS = 86_400_000

type PlayTimeInput = { username: string; days: number }
/** `names`: the names of titles, because the answer finds titles by the names in presence. */
type DaysRequest = UserRequest & { readonly fromMs: number; readonly toMs: number }

/** `GET /api/profile/:username/play-time`: the play time of a user by day and game. */
export const playTime: Endpoint<PlayTimeInput, DaysRequest> = {
  operationId: 'getPlayTime',
  path: '/api/profile/:username/play-time',
  tags: PROFILE_TAGS,
  summary: 'Play time of a user by day and game',
  description:
    'UTC days, today included, oldest first. An interval between two sightings in the same game counts when it is ' +
    'no longer than three periods of the later one; it is cut at midnight.',
  input: z.object({
    username: usernameParameter,
    days: integer({ min: 1, max: 365 }).default(30).describe('UTC days, today included.')
  }),
  resolve: ({ username, days }, { nowMs }) => {
    const toMs = Math.floor(nowMs / DAY_MS) * DAY_MS + DAY_MS
    return { ...userRequest(username), fromMs: toMs - days * DAY_MS, toMs }
  },
  reads: ({ userKey, fromMs, toMs }) => [
    ...readsUser(userKey),
    { projection: 'presence-day', key: userKey, fromMs, toMs },
    { projection: 'title' }
  ],
  answer: async (request, context) => ({ body: await answerDays(request, context) }),
  table: listIn(DailyPlayTime, 'days'),
  response: DailyPlayTime,
  refuses: ['user_unknown']
}

type DayRow = z.infer<(typeof playDays)['row']>

async function answerDays(request: DaysRequest, context: AnswerContext): Promise<DailyPlayTime> {
  const { tables, signal } = context
  const params = { userKey: request.userKey, fromDay: dateOf(request.fromMs), toDay: dateOf(request.toMs) }
  const [{ username }, rows, titles] = await Promise.all([
    knownUser(request, context),
    rowsOf(tables, playDays, params, { signal }),
    context.catalog()
  ])
  return {
    username,
    totalMinutes: Math.floor(sum(rows.flatMap(({ seconds }) => seconds)) / 60),
    daysSeen: rows.filter(({ isSeen }) => isSeen).length,
    days: rows.map((row) => ({
      date: row.day,
      totalMinutes: Math.floor(sum(row.seconds) / 60),
      isSeen: row.isSeen,
      games: gamesOf(row, titles)
    }))
  }
}

/** Returns the games of a day, longest played first; two spellings of one title are one game. */
function gamesOf(row: DayRow, titles: Catalog): DailyPlayTime['days'][number]['games'] {
  const games = new Map<string, { gameName: string; titleId: string | null; seconds: number }>()
  for (const [n, game] of row.games.entries()) {
    const { key, gameName, titleId } = titledGame(game, titles)
    const seconds = (games.get(key)?.seconds ?? 0) + (row.seconds[n] ?? 0)
    games.set(key, { gameName, titleId, seconds })
  }
  return [...games.values()]
    .sort((a, b) => b.seconds - a.seconds || compareNames(a.gameName, b.gameName))
    .map(({ gameName, titleId, seconds }) => ({ gameName, titleId, totalMinutes: Math.floor(seconds / 60), seconds }))
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

const dateOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10)
