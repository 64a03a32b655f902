import { boardKey, INSTANTS_END_MS, Leaderboard, ranked, shownInstant } from '@gamenet/schemas'
import { z } from 'zod'
import type { AnswerContext, Dependency, Endpoint } from '../answers/endpoint.js'
import { listIn } from '../answers/table.js'
import type { BoardId } from '../queries/board-descriptions.js'
import {
  type BoardEntry,
  currentEntries,
  currentTotal,
  entriesAsOf,
  knownEntriesAsOf
} from '../queries/leaderboard-entry.js'
import { rowsOf } from '../queries/query.js'
import { nextLink } from '../reply/next-link.js'
import { instant, integer, KNOWN_AT, knownAt, zoneOfDays } from '../request/parameters.js'
import { boardParameter, gameParameter, knownBoard, knownBoardAt, knownGame, requirePast } from './known-game.js'
import { measureShown } from './shown-measure.js'

const TAGS = ['Leaderboards']
const ENTRIES_MAX = 10_000
type BoardRequest = BoardId & { limit: number | null; offset: number; asOfMs: number | null; knownAtMs?: number }
type Page = { readonly total: number; readonly entries: readonly BoardEntry[] }

const boardInput = z.object({
  game: gameParameter,
  leaderboardId: boardParameter,
  limit: integer({ min: 1, max: ENTRIES_MAX }).optional().describe('Maximum number of entries; default: all.'),
  offset: integer({ min: 0, max: 1_000_000_000 }).default(0).describe('Number of entries to skip at the top.'),
  asOf: instant().optional().describe('An instant in the past; default: now.'),
  knownAt,
  tz: zoneOfDays
})

/** `GET /api/game/:game/leaderboards/:leaderboardId`: a board, now or as of any instant. */
export const leaderboard: Endpoint<z.infer<typeof boardInput>, BoardRequest> = {
  operationId: 'getLeaderboard',
  path: '/api/game/:game/leaderboards/:leaderboardId',
  tags: TAGS,
  summary: 'A leaderboard, now or as of any instant',
  description:
    'The entries in the order of the board, with its ranks; players may share a rank. All of them, at most 10,000, ' +
    'unless `limit` is given; if there are more, `Link` has the next page. With `asOf`, the board at that instant; ' +
    'with `knownAt`, from what was recorded by then.',
  input: boardInput,
  resolve: async ({ game, leaderboardId, limit, offset, asOf, knownAt }, context) => {
    if (asOf !== undefined) requirePast('asOf', asOf, context.nowMs)
    if (knownAt !== undefined) requirePast(KNOWN_AT, knownAt, context.nowMs)
    const titleId = await knownGame(game, context)
    const known = knownAt === undefined ? {} : { knownAtMs: knownAt }
    return { titleId, leaderboardId, limit: limit ?? null, offset, asOfMs: asOf ?? null, ...known }
  },
  reads: (request) =>
    request.knownAtMs === undefined ? readsOfBoard(request, request.asOfMs) : readsOfKnownBoard(request),
  isTaggedByContent: ({ knownAtMs }) => knownAtMs !== undefined,
  answer: async (request, context) => {
    const { titleId, leaderboardId, limit, offset, asOfMs, knownAtMs } = request
    const board = { titleId, leaderboardId }
    const known = knownAtMs === undefined ? undefined : { atMs: asOfMs ?? INSTANTS_END_MS - 1, knownAtMs }
    const atMs = known?.atMs ?? asOfMs
    const page = atMs === null ? currentPage(request, context) : pageAsOf(request, atMs, context)
    const [{ gameName, name, listed }, { total, entries }] = await Promise.all([
      known === undefined
        ? knownBoard(board, asOfMs, context, async () => (await page).total > 0)
        : knownBoardAt(board, known, context),
      page
    ])
    const body = {
      titleId,
      gameName,
      leaderboardId: String(leaderboardId),
      name,
      listed,
      ...(asOfMs === null ? {} : { asOf: shownInstant(asOfMs) }),
      ...(knownAtMs === undefined ? {} : { knownAt: shownInstant(knownAtMs) }),
      total,
      entries: entries.map(shownEntry)
    }
    const end = offset + entries.length
    if (entries.length === 0 || end >= total) return { body }
    const shown = (ms: number | null | undefined) => (typeof ms === 'number' ? shownInstant(ms) : null)
    const next = { limit, offset: end, asOf: shown(asOfMs), knownAt: shown(knownAtMs) }
    return { body, headers: nextLink(`/api/game/${titleId}/leaderboards/${leaderboardId}`, next) }
  },
  table: listIn(Leaderboard, 'entries'),
  response: Leaderboard,
  responseHeaders: { Link: 'The next page, with `rel="next"`, if there is one.' },
  refuses: [
    'game_unknown',
    'leaderboard_unknown',
    'leaderboard_not_yet_seen',
    'leaderboard_not_yet_known',
    'instant_in_future'
  ]
}

/**
 * Returns the dependencies of a board. Changes of other boards do not affect them, nor do later changes of the same
 * board if an instant is requested.
 */
export function readsOfBoard({ titleId, leaderboardId }: BoardId, asOfMs: number | null): Dependency[] {
  const key = boardKey({ titleId, leaderboardId })
  const until = asOfMs === null || asOfMs >= INSTANTS_END_MS ? {} : { fromMs: 0, toMs: asOfMs + 1 }
  return [
    { projection: asOfMs === null ? 'leaderboard-entry' : 'leaderboard-history', key, ...until },
    { projection: 'leaderboard', key: titleId, ...until },
    { projection: 'title', key: titleId }
  ]
}

/** Returns the dependencies of a board as it was known at an instant. */
export function readsOfKnownBoard(board: BoardId): Dependency[] {
  return [...readsOfBoard(board, INSTANTS_END_MS), { projection: 'import-retraction' }]
}

async function currentPage(request: BoardRequest, { tables, signal }: AnswerContext): Promise<Page> {
  const { titleId, leaderboardId, offset } = request
  const board = { titleId, leaderboardId }
  const limit = request.limit ?? ENTRIES_MAX
  const entries = await rowsOf(tables, currentEntries, { ...board, limit, offset }, { signal })
  // A page that contains the end of the board determines its length; most boards fit on one page.
  const hasEnd = entries.length < limit && (entries.length > 0 || offset === 0)
  if (hasEnd) return { total: offset + entries.length, entries }
  const [counted] = await rowsOf(tables, currentTotal, board, { signal })
  return { total: counted?.total ?? 0, entries }
}

async function pageAsOf(request: BoardRequest, asOfMs: number, context: AnswerContext): Promise<Page> {
  const { titleId, leaderboardId, limit, offset, knownAtMs } = request
  const standings = await standingsAsOf({ titleId, leaderboardId }, asOfMs, context, knownAtMs)
  const entries = standings.slice(offset, offset + (limit ?? ENTRIES_MAX)).map(({ entry, rank }) => ({
    rank: String(rank),
    name: entry.playerName,
    rating: entry.rating,
    timeMs: entry.timeMs,
    details: entry.details
  }))
  return { total: standings.length, entries }
}

/** Returns the entries of a board with their ranks at an instant, in the board's order. */
export async function standingsAsOf(board: BoardId, at: number, { tables, signal }: AnswerContext, knownAt?: number) {
  const rows =
    knownAt === undefined
      ? await rowsOf(tables, entriesAsOf, { ...board, at }, { signal })
      : await rowsOf(tables, knownEntriesAsOf, { ...board, at, knownAt }, { signal })
  return ranked(
    rows.map(
      ({ playerName, occurrence, state: [, rating, timeMs, isAscending, statedRank, order, step, details] }) => ({
        playerName,
        occurrence,
        rating,
        timeMs,
        isAscending,
        statedRank,
        order,
        step,
        details
      })
    )
  )
}

function shownEntry({ rank, name, details, ...measure }: BoardEntry) {
  return {
    rank,
    name,
    ...measureShown(measure),
    ...(details === '' ? {} : { details: JSON.parse(details) as Record<string, string> })
  }
}
