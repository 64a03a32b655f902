import { Game, GameListed, Games } from '@gamenet/schemas'
import { z } from 'zod'
import type { Endpoint } from '../answers/endpoint.js'
import { oneOf } from '../request/parameters.js'
import { gameParameter, unknownGame } from './known-game.js'

const FIELDS = ['names', 'all'] as const

/** `GET /api/game/:game`: title, publisher, release date and image of a game. */
export const gameInfo: Endpoint<{ game: string }, { titleId: string }> = {
  operationId: 'getGame',
  path: '/api/game/:game',
  tags: ['Titles'],
  summary: 'Description of a game',
  description:
    'By title id (8 hexadecimal digits) or by name, compared without case; blanks count once. ' +
    "Names contain `/ # & ' : +`. Of several games with one name, the others are requested as " +
    '`Name [titleid]`. Unknown values are `""`.',
  input: z.object({ game: gameParameter }),
  resolve: async ({ game }, { catalog }) => {
    const titles = await catalog()
    const title = titles.byGame(game)
    if (title === undefined || !title.isDescribed) throw unknownGame(game, titles)
    return { titleId: title.titleId }
  },
  reads: ({ titleId }) => [{ projection: 'title', key: titleId }],
  answer: async ({ titleId }, { catalog }) => {
    const { name, title, image, publisher, releaseDate } = (await catalog()).named(titleId)
    return { body: { titleId, name, title, image, publisher, releaseDate } }
  },
  response: Game,
  refuses: ['game_unknown']
}

/** `GET /api/games`: the names of all games. */
export const gameNames: Endpoint<{ fields: (typeof FIELDS)[number] }, { fields: (typeof FIELDS)[number] }> = {
  operationId: 'getGames',
  path: '/api/games',
  tags: ['Titles'],
  summary: 'Names of all games',
  description:
    'Every described game by its name, in alphabetical order. Each name finds its game: of several games with one ' +
    'name all but one are listed as `Name [titleid]`.',
  input: z.object({
    fields: oneOf(FIELDS)
      .default('names')
      .describe('`names` lists names, `all` objects with the id, the name and the publisher of each game.')
  }),
  resolve: (input) => input,
  reads: () => [{ projection: 'title' }],
  answer: async ({ fields }, { catalog }) => {
    const games = (await catalog()).described()
    if (fields === 'names') return { body: games.map(({ shownName }) => shownName) }
    return { body: games.map(({ titleId, shownName, publisher }) => ({ titleId, name: shownName, publisher })) }
  },
  table: {
    row: GameListed,
    columns: ({ fields }) => (fields === 'names' ? ['name'] : undefined),
    rows: (body) => (body as (string | object)[]).map((each) => (typeof each === 'string' ? { name: each } : each))
  },
  response: Games
}
