import { UserGames } from '@gamenet/schemas'
import { z } from 'zod'
import type { AnswerContext, Endpoint } from '../answers/endpoint.js'
import { listIn } from '../answers/table.js'
import { type Catalog, compareNames } from '../queries/catalog.js'
import { rowsOf } from '../queries/query.js'
import { boardTitles, lastSightings, playedSeconds } from '../queries/user-game.js'
import { knownUser, readsUser, type UserRequest, usernameParameter, userRequest } from './known-user.js'
import { PROFILE_TAGS } from './profile.js'

/** The names of titles, because the answer finds titles by the names in presence. */

/** `GET /api/profile/:username/games-played`: the games of a user. */
export const userGames: Endpoint<{ username: string }, UserRequest> = {
  operationId: 'getUserGames',
  path: '/api/profile/:username/games-played',
  tags: PROFILE_TAGS,
  summary: 'Games of a user',
  description:
    'Games that the user was seen in, with the time played, and games with the user on a leaderboard. Last played ' +
    'first.',
  input: z.object({ username: usernameParameter }),
  resolve: ({ username }) => userRequest(username),
  reads: ({ userKey }) => [
    ...readsUser(userKey),
    { projection: 'presence', key: userKey },
    { projection: 'presence-day', key: userKey },
    { projection: 'player-entry' },
    { projection: 'title' }
  ],
  answer: async (request, context) => ({ body: await answerGames(request, context) }),
  table: listIn(UserGames, 'games'),
  response: UserGames,
  refuses: ['user_unknown']
}

async function answerGames(request: UserRequest, context: AnswerContext): Promise<UserGames> {
  const { tables, signal } = context
  const { userKey } = request
  const [{ hasPresence, boards }, played, sighted, titles] = await Promise.all([
    knownUser(request, context).then(async ({ hasPresence, player }) => ({
      hasPresence,
      boards: await rowsOf(tables, boardTitles, { playerKey: player.key }, { signal })
    })),
    rowsOf(tables, playedSeconds, { userKey }, { signal }),
    rowsOf(tables, lastSightings, { userKey }, { signal }),
    context.catalog()
  ])
  const games = new Map<string, UserGame>()
  for (const { game, lastMs } of sighted) add(games, titledGame(game, titles), 0, lastMs)
  for (const { game, seconds } of played) add(games, titledGame(game, titles), seconds, 0)
  const sightedCount = games.size
  for (const { titleId, changedMs } of boards) {
    const title = titles.named(titleId)
    if (!games.has(titleId))
      add(games, { key: titleId, gameName: title.shownName, titleId, image: title.image }, 0, changedMs)
  }
  return {
    games: [...games.values()].sort(byLastPlayed).map(({ gameName, titleId, image, seconds, lastMs }) => ({
      gameName,
      titleId,
      imageUrl: image === '' ? null : image,
      totalMinutes: Math.floor(seconds / 60),
      lastPlayedAt: lastMs
    })),
    leaderboardSupplement: games.size > sightedCount,
    hasPlayTimeTracking: hasPresence
  }
}

/** A game in presence; `key` is the same for all spellings of a title's name. */
export type TitledGame = {
  readonly key: string
  readonly gameName: string
  readonly titleId: string | null
  readonly image: string
}
type UserGame = Omit<TitledGame, 'key'> & { seconds: number; lastMs: number }

/** Returns the title of a presence name, or only the name. */
export function titledGame(game: string, titles: Catalog): TitledGame {
  const title = titles.byGame(game)
  if (title === undefined) return { key: `"${game}`, gameName: game, titleId: null, image: '' }
  const { titleId, shownName, image } = title
  return { key: titleId, gameName: shownName, titleId, image }
}

function add(games: Map<string, UserGame>, game: TitledGame, seconds: number, lastMs: number): void {
  const { key, ...shown } = game
  const known = games.get(key) ?? { ...shown, seconds: 0, lastMs: 0 }
  games.set(key, { ...known, seconds: known.seconds + seconds, lastMs: Math.max(known.lastMs, lastMs) })
}

function byLastPlayed(a: UserGame, b: UserGame): number {
  return b.lastMs - a.lastMs || b.seconds - a.seconds || compareNames(a.gameName, b.gameName)
}
