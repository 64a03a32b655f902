import { boardKey, EntryMatch, EntryMatches, lineText, nameKey, RosterMatches } from '@gamenet/schemas'
import { z } from 'zod'
import type { AnswerContext, Endpoint } from '../answers/endpoint.js'
import { listIn } from '../answers/table.js'
import { type EntryRow, entriesOfPlayers, rosterEntries } from '../queries/player-entry.js'
import { rowsOf } from '../queries/query.js'
import { bodyInteger, bodyObjects, bodyText } from '../request/body.js'
import { nameKeys, playerName } from '../request/parameters.js'
import { entryMatches, readsNames, SEARCH_TAGS, titleFilter } from './entry-match.js'
import { titleParameter } from './known-game.js'

const NAMES_MAX = 20
const NAME_CHARACTERS_MAX = 500
const RANKS = { min: 1, max: 2_147_483_647 }
const TOLERANCE_MAX = 60_000
const ROSTERS_MAX = 500

/** `titleId` is "" for every title. */
type PlayersRequest = { readonly keys: readonly string[]; readonly titleId: string }

const byNames: Pick<Endpoint<unknown, PlayersRequest>, 'tags' | 'reads' | 'answer' | 'table' | 'response'> = {
  tags: SEARCH_TAGS,
  reads: ({ titleId }) => [{ projection: 'player-entry' }, ...readsNames(titleId)],
  answer: async ({ keys, titleId }, context) => {
    const { tables, signal } = context
    const rows = await rowsOf(tables, entriesOfPlayers, { keys: [...keys], titleId }, { signal })
    return { body: { results: await entryMatches(rows, context), count: rows.length } }
  },
  table: listIn(EntryMatches, 'results'),
  response: EntryMatches
}

/** `GET /api/datasearch/player/:playerName`: a player's entries on all boards. */
export const searchPlayer: Endpoint<{ playerName: string }, PlayersRequest> = {
  ...byNames,
  operationId: 'searchPlayer',
  path: '/api/datasearch/player/:playerName',
  summary: 'Entries of a player on all boards',
  description:
    'Best rank first. The whole name is compared without case, and every spelling counts. Without a match the list ' +
    'is empty. At most 10,000 entries.',
  input: z.object({ playerName: playerName().describe('The whole name, percent-encoded.') }),
  resolve: ({ playerName }) => ({ keys: [nameKey(playerName)], titleId: '' })
}

/** `GET /api/datasearch/players`: the entries of several players. */
export const searchPlayers: Endpoint<{ names: string[]; titleId?: string | undefined }, PlayersRequest> = {
  ...byNames,
  operationId: 'searchPlayers',
  path: '/api/datasearch/players',
  summary: 'Entries of several players on all boards',
  description:
    'Best rank first. Whole names are compared without case, and every spelling counts; names that differ only by ' +
    'case count once. Without a match the list is empty. At most 10,000 entries.',
  input: z.object({
    names: nameKeys({ max: NAMES_MAX }).describe('1 to 20 whole names, separated by commas.'),
    titleId: titleParameter.optional().describe('Only boards of this title: an id or a name.')
  }),
  resolve: async ({ names, titleId }, context) => ({ keys: names, titleId: await titleFilter(titleId, context) }),
  refuses: ['title_unknown']
}

type RosterRequest = PlayersRequest & { readonly ranks: readonly number[]; readonly tolerance: number }

const rosterInput = z.object({
  players: bodyObjects(
    'players',
    { min: 1, max: NAMES_MAX },
    {
      playerName: bodyText({ max: NAME_CHARACTERS_MAX }).describe('The whole name, compared without case.'),
      rank: bodyInteger(RANKS)
    }
  ),
  tolerance: bodyInteger({ min: 0, max: TOLERANCE_MAX }).default(0).describe('Ranks.'),
  titleId: bodyText({ max: NAME_CHARACTERS_MAX }).optional().describe('Only boards of this title: an id or a name.')
})

/** `POST /api/datasearch/roster`: the boards with entries of players at given ranks. */
export const searchRoster: Endpoint<z.infer<typeof rosterInput>, RosterRequest> = {
  operationId: 'searchRoster',
  path: '/api/datasearch/roster',
  method: 'POST',
  tags: SEARCH_TAGS,
  summary: 'Boards on which players have given ranks',
  description:
    'Boards on which every player has the given rank, within `tolerance` ranks, closest first: by the sum of all ' +
    'differences, then by title and board. `players` of a result are in the order of the request; of a player’s ' +
    'several entries the nearest counts. At most 500 boards.',
  input: rosterInput,
  bodyExample: {
    players: [
      { playerName: 'ann', rank: 1 },
      { playerName: 'bob', rank: 2 }
    ],
    tolerance: 1
  },
  resolve: async ({ players, tolerance, titleId }, context) => ({
    keys: players.map(({ playerName }) => nameKey(lineText(playerName))),
    ranks: players.map(({ rank }) => rank),
    tolerance,
    titleId: await titleFilter(titleId, context)
  }),
  reads: ({ titleId }) => [{ projection: 'player-entry' }, ...readsNames(titleId)],
  answer: answerRoster,
  table: {
    row: EntryMatch,
    rows: (body) => (body as RosterMatches).results.flatMap(({ players }) => players)
  },
  response: RosterMatches,
  refuses: ['title_unknown']
}

type RosterRow = z.infer<(typeof rosterEntries)['row']>

async function answerRoster(request: RosterRequest, context: AnswerContext): Promise<{ body: RosterMatches }> {
  const { keys, ranks, tolerance, titleId } = request
  const params = { keys: [...keys], ranks: [...ranks], tolerance, titleId }
  const rows = await rowsOf(context.tables, rosterEntries, params, { signal: context.signal })
  const rosters = rostersOf(rows, ranks)
  const entries = await entryMatches(
    rosters.flatMap(({ players }) => players),
    context
  )
  const results = rosters.flatMap((_, n) => {
    const players = entries.slice(n * ranks.length, (n + 1) * ranks.length)
    const [first] = players
    if (first === undefined) return []
    const { leaderboard_id, leaderboard_name, title_id, game_name } = first
    return [{ leaderboard_id, leaderboard_name, title_id, game_name, players }]
  })
  return { body: { results, count: results.length } }
}

/** Returns for each board the nearest entry per requested rank; boards in the order of their distance. */
function rostersOf(rows: readonly RosterRow[], ranks: readonly number[]): { players: EntryRow[]; distance: number }[] {
  const boards = new Map<string, RosterRow[]>()
  for (const row of rows) {
    const key = boardKey(row)
    boards.set(key, [...(boards.get(key) ?? []), row])
  }
  return (
    [...boards.values()]
      .map((ofBoard) => {
        const players = ranks.flatMap((rank, place) => {
          const fitting = ofBoard.filter(({ answers }) => answers.includes(place))
          // The sort is stable: equally near entries stay in order of name.
          return fitting.sort((a, b) => Math.abs(a.rank - rank) - Math.abs(b.rank - rank)).slice(0, 1)
        })
        const distance = players.reduce((sum, { rank }, place) => sum + Math.abs(rank - (ranks[place] ?? rank)), 0)
        return { players, distance }
      })
      // The row limit may truncate the last board.
      .filter(({ players }) => players.length === ranks.length)
      .sort((a, b) => a.distance - b.distance)
      .slice(0, ROSTERS_MAX)
  )
}
