import {
  boardKey,
  LeaderboardChanges,
  measureGap,
  nameKey,
  Player,
  PlayerUsers,
  SuggestedPlayers,
  shownInstant
} from '@gamenet/schemas'
import { z } from 'zod'
import type { AnswerContext, Endpoint, EndpointResult } from '../answers/endpoint.js'
import { listIn, listOf } from '../answers/table.js'
import { newestChanges } from '../queries/leaderboard-change.js'
import { playersByPrefix } from '../queries/player.js'
import { entriesOfPlayers, standings } from '../queries/player-entry.js'
import { usersOfGamertag } from '../queries/profile.js'
import { rowsOf } from '../queries/query.js'
import { nextLink } from '../reply/next-link.js'
import { integer, playerName, text } from '../request/parameters.js'
import { readsNames, SEARCH_TAGS } from './entry-match.js'
import { changesOf } from './leaderboard-change.js'
import { measureShown } from './shown-measure.js'

const TAGS = ['Players']
const BOARDS_MAX = 1000
const OFFSET_MAX = 10_000
/** Rows of names per read for a search box. */
const ROWS_READ = 256

const playerParameter = playerName().describe('The whole name, percent-encoded, compared without case.')
const offsetParameter = integer({ min: 0, max: OFFSET_MAX }).default(0)

type PageRequest = { readonly playerName: string; readonly limit: number; readonly offset: number }
type EntryRow = z.infer<(typeof entriesOfPlayers)['row']>
type Standing = z.infer<(typeof standings)['row']>

/** `GET /api/player/:playerName`: a player's entry on every board. */
export const player: Endpoint<PageRequest, PageRequest> = {
  operationId: 'getPlayer',
  path: '/api/player/:playerName',
  tags: TAGS,
  summary: 'All boards of a player',
  description:
    'Every entry of the player, best rank first, with the size of its board, its percentile and the entry above. ' +
    'Every spelling of the name counts. A player without a board has none: 200 and empty.',
  input: z.object({
    playerName: playerParameter,
    limit: integer({ min: 1, max: BOARDS_MAX }).default(BOARDS_MAX).describe('Maximum number of entries.'),
    offset: offsetParameter.describe('Number of the best ones to skip.')
  }),
  resolve: (input) => input,
  reads: () => [{ projection: 'player-entry' }, { projection: 'leaderboard-entry' }, ...readsNames('')],
  answer: answerPlayer,
  table: listIn(Player, 'boards'),
  response: Player,
  responseHeaders: { Link: 'The next page, with `rel="next"`, if there is one.' }
}

/** `GET /api/player/:playerName/history`: the changes of a player's entries. */
export const playerHistory: Endpoint<PageRequest, PageRequest> = {
  operationId: 'getPlayerHistory',
  path: '/api/player/:playerName/history',
  tags: TAGS,
  summary: 'Changes of a player’s entries',
  description:
    'When the player entered a board, left it, or got another rating: newest first; of one instant, the last ' +
    'recorded first. Every spelling of the name counts.',
  input: z.object({
    playerName: playerParameter,
    limit: integer({ min: 1, max: 500 }).default(50).describe('Maximum number of changes.'),
    offset: offsetParameter.describe('Number of the newest ones to skip.')
  }),
  resolve: (input) => input,
  reads: () => [{ projection: 'leaderboard-entry' }, ...readsNames('')],
  answer: async (request, context) => {
    const { playerName, limit, offset } = request
    const filter = { ...EVERYTHING, playerKey: nameKey(playerName) }
    const page = { ...filter, fromMs: 0, limit: limit + 1, rowOffset: offset }
    const rows = await rowsOf(context.tables, newestChanges(filter), page, { signal: context.signal })
    const body = await changesOf(rows.slice(0, limit), context)
    return { body, headers: linkTo(`${pathOf(playerName)}/history`, request, offset + rows.length) }
  },
  table: listOf(LeaderboardChanges),
  response: LeaderboardChanges,
  responseHeaders: { Link: 'The next page, with `rel="next"`, if there is one.' }
}

/** The filter of changes that leaves out none. */
export const EVERYTHING = {
  titleId: null,
  leaderboardId: null,
  playerKey: null,
  changeType: null,
  sinceMs: null,
  untilMs: null
}

/** `GET /api/player/:playerName/users`: the users who have a gamertag. */
export const playerUsers: Endpoint<{ playerName: string }, { playerName: string }> = {
  operationId: 'getPlayerUsers',
  path: '/api/player/:playerName/users',
  tags: TAGS,
  summary: 'Users who have a gamertag',
  description:
    'Users who linked the gamertag and whose last verified session has it, compared without case. A gamertag without ' +
    'such a user has none: 200 and empty.',
  input: z.object({ playerName: playerParameter }),
  resolve: (input) => input,
  reads: () => [{ projection: 'profile' }],
  answer: async ({ playerName }, { tables, signal }) => {
    const users = await rowsOf(tables, usersOfGamertag, { gamertagKey: nameKey(playerName) }, { signal })
    return { body: { playerName, users } }
  },
  table: listIn(PlayerUsers, 'users'),
  response: PlayerUsers
}

/** `GET /api/datasearch/suggest`: names for a search box. */
export const suggestPlayers: Endpoint<{ q: string; limit: number }, { q: string; limit: number }> = {
  operationId: 'suggestPlayers',
  path: '/api/datasearch/suggest',
  tags: SEARCH_TAGS,
  summary: 'Names of players that begin with a text',
  description:
    'Compared without case, one spelling of each name, in the order of the names without case. Includes every name ' +
    'that a board ever showed.',
  input: z.object({
    q: text({ example: 'an' }).describe('Beginning of the name.'),
    limit: integer({ min: 1, max: 50 }).default(10).describe('Maximum number of names.')
  }),
  resolve: (input) => input,
  reads: () => [{ projection: 'player' }],
  answer: async ({ q, limit }, context) => {
    const results = await playersNamed(q, limit, context)
    return { body: { results, count: results.length } }
  },
  table: {
    row: z.object({ name: z.string() }),
    rows: (body) => (body as SuggestedPlayers).results.map((name) => ({ name }))
  },
  response: SuggestedPlayers
}

/** Returns one spelling of each player's name that begins with a text. */
export async function playersNamed(q: string, limit: number, context: AnswerContext): Promise<string[]> {
  const found = await Promise.all(prefixesOf(q).map((prefix) => namesFrom(prefix, limit, context)))
  return found.flat().slice(0, limit)
}

async function answerPlayer(request: PageRequest, context: AnswerContext): Promise<EndpointResult> {
  const { tables, signal } = context
  const { playerName, limit, offset } = request
  const all = await rowsOf(tables, entriesOfPlayers, { keys: [nameKey(playerName)], titleId: '' }, { signal })
  const boards = await shownEntries(all.slice(offset, offset + limit), context)
  const spellings = [...new Set(all.map((row) => row.playerName))].sort()
  const body: Player = { playerName, spellings, total: all.length, boards }
  return { body, headers: linkTo(pathOf(playerName), request, all.length) }
}

/** Returns entries of players, each with its place on its board. */
export async function shownEntries(rows: readonly EntryRow[], context: AnswerContext): Promise<Player['boards']> {
  const [standingOf, names, titles] = await Promise.all([
    standingsOf(rows, context),
    context.boards(),
    context.catalog()
  ])
  return rows.map((row) => ({
    leaderboardId: row.leaderboardId,
    leaderboardName: names.nameOf(row),
    titleId: row.titleId,
    gameName: titles.named(row.titleId).shownName,
    playerName: row.playerName,
    rank: row.rank,
    ...placeOf(row, standingOf(row)),
    ...measureShown(row),
    observedAt: shownInstant(row.changedAtMs)
  }))
}

/** Returns the neighbourhood of entries' ranks on their boards. */
async function standingsOf(
  page: readonly EntryRow[],
  { tables, signal }: AnswerContext
): Promise<(row: EntryRow) => Standing | undefined> {
  if (page.length === 0) return () => undefined
  const params = {
    titleIds: page.map(({ titleId }) => titleId),
    leaderboardIds: page.map(({ leaderboardId }) => leaderboardId),
    ranks: page.map(({ rank }) => rank)
  }
  const rows = await rowsOf(tables, standings, params, { signal })
  const byRank = new Map(rows.map((row) => [`${boardKey(row)}/${row.rank}`, row]))
  return (row) => byRank.get(`${boardKey(row)}/${row.rank}`)
}

/**
 * Returns the size of the board, the percentile and the entry above. During a step of the projections a board can lack
 * the entry, which then counts as the only one; the answer is computed again after the step.
 */
function placeOf(
  own: EntryRow,
  standing: Standing | undefined
): Pick<Player['boards'][number], 'entries' | 'percentile' | 'next'> {
  if (standing === undefined) return { entries: 1, percentile: 100, next: null }
  const { entries, noBetter, nextRank, nextName, nextRating, nextTimeMs } = standing
  const nextMeasure = { rating: nextRating, timeMs: nextTimeMs }
  const above = {
    rank: nextRank,
    playerName: nextName,
    ...measureShown(nextMeasure),
    gap: measureGap(own, nextMeasure)
  }
  return {
    entries,
    percentile: Math.round((noBetter * 1000) / entries) / 10,
    next: noBetter < entries ? above : null
  }
}

const pathOf = (playerName: string): string => `/api/player/${encodeURIComponent(playerName)}`

/** Returns the link to the next page if there are `count` rows and the page may be requested. */
function linkTo(path: string, { limit, offset }: PageRequest, count: number): Readonly<Record<string, string>> {
  const next = offset + limit
  return next < count && next <= OFFSET_MAX ? nextLink(path, { limit, offset: next }) : {}
}

/**
 * Returns the folded forms of a name's beginning. A sigma at the end of a word is folded differently from one inside,
 * so a beginning that ends with a sigma has two forms.
 */
export function prefixesOf(beginning: string): string[] {
  const within = nameKey(`${beginning}a`).slice(0, -1)
  return [...new Set([nameKey(beginning), within])].sort()
}

/**
 * Returns one spelling of each name with a prefix. Reads a few more rows than names, because a name can have several
 * spellings.
 */
async function namesFrom(prefix: string, limit: number, { tables, signal }: AnswerContext): Promise<string[]> {
  const names = new Map<string, string>()
  let rowCount = ROWS_READ
  for (let after = ''; names.size < limit && rowCount === ROWS_READ; ) {
    const rows = await rowsOf(tables, playersByPrefix, { prefix, after, limit: ROWS_READ }, { signal })
    for (const { key, player: name } of rows) if (!names.has(key)) names.set(key, name)
    rowCount = rows.length
    after = rows.at(-1)?.key ?? after
  }
  return [...names.values()].slice(0, limit)
}
