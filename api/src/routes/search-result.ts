import { SearchResults, titleKey } from '@gamenet/schemas'
import { z } from 'zod'
import type { AnswerContext, Endpoint } from '../answers/endpoint.js'
import { listOfKinds } from '../answers/table.js'
import { compareNames } from '../queries/catalog.js'
import { rowsOf } from '../queries/query.js'
import { usersByPrefix } from '../queries/search-result.js'
import { integer, text } from '../request/parameters.js'
import { SEARCH_TAGS } from './entry-match.js'
import { playersNamed, prefixesOf } from './player.js'

type Request = { readonly q: string; readonly limit: number }

/** `GET /api/search`: games, boards, players and users by name. */
export const search: Endpoint<Request, Request> = {
  operationId: 'search',
  path: '/api/search',
  tags: SEARCH_TAGS,
  summary: 'Games, boards, players and users by name',
  description:
    'Games whose name has every word of `q`; boards whose name has one and whose name or game has every one; names ' +
    'that begin with `q` come first. Players and users whose name begins with `q`. Compared without case.',
  input: z.object({
    q: text({ example: 'halo' }).describe('Words, or the beginning of a name.'),
    limit: integer({ min: 1, max: 50 }).default(10).describe('Maximum number of results of each kind.')
  }),
  resolve: (input) => input,
  reads: () => ['title', 'leaderboard', 'player', 'profile', 'presence-latest'].map((projection) => ({ projection })),
  answer: async ({ q, limit }, context) => {
    const [games, boards, players, users] = await Promise.all([
      gamesNamed(q, context),
      boardsNamed(q, context),
      playersNamed(q, limit, context),
      usersNamed(q, limit, context)
    ])
    return {
      body: [
        ...games.slice(0, limit).map(({ titleId, shownName }) => ({ kind: 'game', name: shownName, titleId })),
        ...boards.slice(0, limit).map((board) => ({ kind: 'board', ...board })),
        ...players.map((name) => ({ kind: 'player', name })),
        ...users.map((name) => ({ kind: 'user', name }))
      ]
    }
  },
  table: listOfKinds(SearchResults),
  response: SearchResults
}

async function gamesNamed(q: string, { catalog }: AnswerContext) {
  const found = (await catalog()).described().filter(({ shownName }) => hasWords(shownName, q))
  return beginningFirst(found, q, ({ shownName }) => shownName)
}

async function boardsNamed(q: string, context: AnswerContext) {
  const [titles, boards] = await Promise.all([context.catalog(), context.boards()])
  const words = wordsOf(q)
  const found = boards.all().flatMap(({ titleId, leaderboardId, name, listed }) => {
    const key = titleKey(name)
    if (!words.some((word) => key.includes(word))) return []
    const gameName = titles.named(titleId).shownName
    return hasWords(`${name} ${gameName}`, q) ? [{ name, titleId, gameName, leaderboardId, listed }] : []
  })
  return beginningFirst(found, q, ({ name }) => name)
}

async function usersNamed(q: string, limit: number, { tables, signal }: AnswerContext): Promise<string[]> {
  const found = await Promise.all(
    prefixesOf(q).map((prefix) => rowsOf(tables, usersByPrefix, { prefix, limit }, { signal }))
  )
  const names = found.flat().map(({ name }) => name)
  return names.slice(0, limit)
}

const wordsOf = (q: string): string[] => titleKey(q).split(' ')

function hasWords(name: string, q: string): boolean {
  const key = titleKey(name)
  return wordsOf(q).every((word) => key.includes(word))
}

/** Sorts by name, names that begin with the text first. */
function beginningFirst<Found>(found: readonly Found[], q: string, nameOf: (each: Found) => string): Found[] {
  const beginning = titleKey(q)
  const isLater = (each: Found) => Number(!titleKey(nameOf(each)).startsWith(beginning))
  return found.toSorted((a, b) => isLater(a) - isLater(b) || compareNames(nameOf(a), nameOf(b)))
}
