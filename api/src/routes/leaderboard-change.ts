import { BOARD_CHANGES, boardKey, LeaderboardChanges, nameKey, Refusal, shownInstant } from '@gamenet/schemas'
import { z } from 'zod'
import type { AnswerContext, Dependency, Endpoint, EndpointResult, ResolveContext } from '../answers/endpoint.js'
import { listOf } from '../answers/table.js'
import { type ChangeFilter, type ChangeRow, changeInstant, newestChanges } from '../queries/leaderboard-change.js'
import { rowsOf } from '../queries/query.js'
import { nextLink } from '../reply/next-link.js'
import { CURSOR_CHARACTERS_MAX, cursorText, type PartitionPlace, readCursor } from '../request/cursor.js'
import { cursor, instant, integer, oneOf, playerName, zoneOfDays } from '../request/parameters.js'
import { readFeed } from './change-feed.js'
import { boardParameter, gameParameter, knownGame } from './known-game.js'

const PATH = '/api/leaderboard-changes'
const OFFSET_MAX = 10_000
const START = 'start'
/** Growth of the range when it contained too few changes. */
const WIDER = 4

type ChangesRequest = {
  readonly filter: ChangeFilter
  /** As requested; its key is in the filter. */
  readonly player: string | null
  readonly limit: number
  /** Newest first from this row, or in order of recording from these places. */
  readonly from: { readonly offset: number } | { readonly places: readonly PartitionPlace[] }
}

const changesInput = z.object({
  limit: integer({ min: 1, max: 500 }).default(50).describe('Maximum number of changes.'),
  offset: integer({ min: 0, max: OFFSET_MAX }).optional().describe('Number of the newest ones to skip.'),
  after: cursor({ max: CURSOR_CHARACTERS_MAX }).optional().describe('`start`, or a cursor that a page gave.'),
  game: gameParameter.optional().describe('Only of this game: a title id or a name.'),
  leaderboardId: boardParameter.optional().describe('Only of this board; needs `game`.'),
  player: playerName().optional().describe('Only of players of this name, compared without case.'),
  changeType: oneOf(BOARD_CHANGES).optional().describe('Only such changes.'),
  since: instant().optional().describe('Only changes of this instant or later.'),
  until: instant({ example: '2026-03-15T20:00:00Z' }).optional().describe('Only changes before this instant.'),
  tz: zoneOfDays
})

/** `GET /api/leaderboard-changes`: changes of entries, newest first or from a cursor. */
export const leaderboardChanges: Endpoint<z.infer<typeof changesInput>, ChangesRequest> = {
  operationId: 'getLeaderboardChanges',
  path: PATH,
  tags: ['Leaderboards'],
  summary: 'Changes of leaderboard entries',
  description:
    'Entries that came, left, or whose rating changed; newest first; of one instant, the last recorded first. To ' +
    'follow them without a gap: begin with `after=start` and continue with the cursor in `Link: <…>; rel="next"`. ' +
    'That gives each change once, in the order of recording, whatever arrives meanwhile; at the end the list is ' +
    'empty and the link leads to later changes. Cursors are opaque, valid for one filter, and survive rebuilds.',
  input: changesInput,
  resolve,
  reads: ({ filter: { titleId, leaderboardId } }): Dependency[] => {
    const ofTitle = titleId === null ? {} : { key: titleId }
    const ofBoard = titleId === null || leaderboardId === null ? {} : { key: boardKey({ titleId, leaderboardId }) }
    return [
      { projection: 'leaderboard-entry', ...ofBoard },
      { projection: 'leaderboard', ...ofTitle },
      { projection: 'title', ...ofTitle }
    ]
  },
  answer: (request, context) =>
    'offset' in request.from
      ? answerNewest(request, request.from.offset, context)
      : answerAfter(request, request.from.places, context),
  table: listOf(LeaderboardChanges),
  response: LeaderboardChanges,
  responseHeaders: { Link: 'The next page, with `rel="next"`: with `after` always, else if there is one.' },
  refuses: ['game_unknown', 'window_invalid', 'cursor_invalid']
}

async function resolve(input: z.infer<typeof changesInput>, context: ResolveContext): Promise<ChangesRequest> {
  const { limit, offset, after, game, leaderboardId, player, changeType, since, until } = input
  if (leaderboardId !== undefined && game === undefined) {
    throw new Refusal('request_invalid', [
      'leaderboardId needs game, because ids of boards repeat across games; give both'
    ])
  }
  if (after !== undefined && offset !== undefined) {
    throw new Refusal('request_invalid', ['offset cannot be given together with after; follow the Link header instead'])
  }
  if (since !== undefined && until !== undefined && since >= until) {
    const given = `${new Date(since).toISOString()} and ${new Date(until).toISOString()}`
    throw new Refusal('window_invalid', [`since must be before until; got ${given}`])
  }
  const filter: ChangeFilter = {
    titleId: game === undefined ? null : await knownGame(game, context),
    leaderboardId: leaderboardId ?? null,
    playerKey: player === undefined ? null : nameKey(player),
    changeType: changeType ?? null,
    sinceMs: since ?? null,
    untilMs: until ?? null
  }
  const request = { filter, player: player ?? null, limit }
  if (after === undefined) return { ...request, from: { offset: offset ?? 0 } }
  return { ...request, from: { places: after === START ? [] : readCursor(filter, after) } }
}

/**
 * Returns the newest changes. They are at the end of the key, so the search starts there: first the instant after which
 * there are enough rows, then those rows without replaced ones. If too many were replaced it goes further back.
 */
async function answerNewest(request: ChangesRequest, offset: number, context: AnswerContext): Promise<EndpointResult> {
  const { filter, limit, player } = request
  const { tables, signal } = context
  let rows: ChangeRow[] = []
  let fromMs: number | undefined
  for (let reach = offset + limit; rows.length < limit && fromMs !== 0; reach *= WIDER) {
    const [found] = await rowsOf(tables, changeInstant(filter), { ...filter, skip: reach - 1 }, { signal })
    fromMs = found?.atMs ?? 0
    rows = await rowsOf(tables, newestChanges(filter), { ...filter, fromMs, limit, rowOffset: offset }, { signal })
  }
  const body = await changesOf(rows, context)
  const next = offset + limit
  if (rows.length < limit || next > OFFSET_MAX) return { body }
  return { body, headers: linkTo(filter, player, limit, { offset: next }) }
}

async function answerAfter(
  request: ChangesRequest,
  places: readonly PartitionPlace[],
  context: AnswerContext
): Promise<EndpointResult> {
  const { filter, limit, player } = request
  const { rows, next, isBehind } = await readFeed({ filter, limit, places }, context)
  const headers = linkTo(filter, player, limit, { after: cursorText(filter, next) })
  return { body: await changesOf(rows, context), headers, isProvisional: isBehind }
}

function linkTo(
  filter: ChangeFilter,
  player: string | null,
  limit: number,
  place: { readonly offset: number } | { readonly after: string }
): { readonly Link: string } {
  const { titleId, leaderboardId, changeType, sinceMs, untilMs } = filter
  return nextLink(PATH, {
    limit,
    game: titleId,
    leaderboardId,
    player,
    changeType,
    since: sinceMs === null ? null : shownInstant(sinceMs),
    until: untilMs === null ? null : shownInstant(untilMs),
    ...place
  })
}

/** Returns the records in rows of changes. */
export async function changesOf(
  rows: readonly ChangeRow[],
  context: Pick<AnswerContext, 'boards' | 'catalog'>
): Promise<LeaderboardChanges> {
  const [boards, titles] = await Promise.all([context.boards(), context.catalog()])
  return rows.map((row) => ({
    id: [row.epoch, row.partition, row.offset].map((part) => part.toString(36)).join('-'),
    titleId: row.titleId,
    gameName: titles.named(row.titleId).shownName,
    leaderboardId: row.leaderboardId,
    leaderboardName: boards.nameOf(row),
    playerName: row.playerName,
    changeType: row.changeType,
    previousRank: row.previousRank,
    newRank: row.newRank,
    previousRating: row.previousRating,
    newRating: row.newRating,
    previousTimeMs: row.previousTimeMs,
    newTimeMs: row.newTimeMs,
    isTime: row.isTime,
    changedAt: shownInstant(row.atMs)
  }))
}
