import { ComparedEntry, compareMeasures, INSTANTS_END_MS, LeaderboardComparison, shownInstant } from '@gamenet/schemas'
import { z } from 'zod'
import type { Endpoint } from '../answers/endpoint.js'
import type { BoardId } from '../queries/board-descriptions.js'
import { instant, integer, zoneOfDays } from '../request/parameters.js'
import { window } from '../request/window.js'
import { boardParameter, gameParameter, knownBoard, knownGame, requirePast } from './known-game.js'
import { readsOfBoard, standingsAsOf } from './leaderboard-entry.js'

const COMPARED_LIMIT = 1000
const COMPARED_MAX = 10_000

type ComparisonInput = { game: string; leaderboardId: number; from: number; to?: number | undefined; limit: number }
type ComparisonRequest = BoardId & { fromMs: number; toMs: number | null; limit: number }

/**
 * `GET /api/game/:game/leaderboards/:leaderboardId/compare`: a board at two instants: entries that came, left, rose,
 * fell, improved.
 */
export const leaderboardComparison: Endpoint<ComparisonInput, ComparisonRequest> = {
  operationId: 'compareLeaderboard',
  path: '/api/game/:game/leaderboards/:leaderboardId/compare',
  tags: ['Leaderboards'],
  summary: 'What changed on a leaderboard between two instants',
  description:
    'Compares the board at `from` with the board at `to`, or now. Several entries of one name are compared in their ' +
    'order. `counts` has the lengths of the complete lists.',
  input: z.object({
    game: gameParameter,
    leaderboardId: boardParameter,
    from: instant().describe('The earlier instant.'),
    to: instant({ example: '2026-03-15T20:00:00Z' }).optional().describe('The later instant; default: now.'),
    tz: zoneOfDays,
    limit: integer({ min: 1, max: COMPARED_MAX })
      .default(COMPARED_LIMIT)
      .describe('Maximum number of entries per list.')
  }),
  resolve: async ({ game, leaderboardId, from, to, limit }, context) => {
    requirePast('from', from, context.nowMs)
    if (to !== undefined) requirePast('to', to, context.nowMs)
    window({ from, to }, { days: 1 }, context.nowMs)
    return { titleId: await knownGame(game, context), leaderboardId, fromMs: from, toMs: to ?? null, limit }
  },
  reads: (request) => readsOfBoard(request, request.toMs ?? INSTANTS_END_MS),
  answer: async ({ titleId, leaderboardId, fromMs, toMs, limit }, context) => {
    const board = { titleId, leaderboardId }
    const [before, after] = [
      standingsAsOf(board, fromMs, context),
      standingsAsOf(board, toMs ?? INSTANTS_END_MS, context)
    ]
    const [{ gameName }, { name }, lists] = await Promise.all([
      knownBoard(board, fromMs, context, async () => (await before).length > 0),
      knownBoard(board, toMs, context, async () => (await after).length > 0),
      Promise.all([before, after]).then(([earlier, later]) => compared(earlier, later))
    ])
    const body = {
      titleId,
      gameName,
      leaderboardId: String(leaderboardId),
      name,
      from: shownInstant(fromMs),
      to: toMs === null ? null : shownInstant(toMs),
      counts: Object.fromEntries(Object.entries(lists).map(([list, entries]) => [list, entries.length])),
      ...Object.fromEntries(Object.entries(lists).map(([list, entries]) => [list, entries.slice(0, limit)]))
    }
    return { body }
  },
  table: {
    row: z.object({ list: z.string(), ...ComparedEntry.shape }),
    rows: (body) => {
      const lists = body as Record<List, object[]>
      return LISTS.flatMap((list) => lists[list].map((entry) => ({ list, ...entry })))
    }
  },
  response: LeaderboardComparison,
  refuses: ['game_unknown', 'leaderboard_unknown', 'leaderboard_not_yet_seen', 'window_invalid', 'instant_in_future']
}

type Standings = Awaited<ReturnType<typeof standingsAsOf>>
const LISTS = ['came', 'left', 'rose', 'fell', 'improved'] as const
type List = (typeof LISTS)[number]

function compared(before: Standings, after: Standings): Record<List, ComparedEntry[]> {
  const lists: Record<List, ComparedEntry[]> = { came: [], left: [], rose: [], fell: [], improved: [] }
  const former = new Map(before.map((standing) => [keyOf(standing), standing]))
  for (const standing of after) {
    const key = keyOf(standing)
    const earlier = former.get(key)
    former.delete(key)
    const pair = comparedEntry(earlier, standing)
    if (earlier === undefined) lists.came.push(pair)
    else {
      if (standing.rank < earlier.rank) lists.rose.push(pair)
      if (standing.rank > earlier.rank) lists.fell.push(pair)
      if (compareMeasures(standing.entry, earlier.entry) < 0) lists.improved.push(pair)
    }
  }
  for (const departed of former.values()) lists.left.push(comparedEntry(departed, undefined))
  return lists
}

const keyOf = ({ entry }: Standings[number]): string => `${entry.occurrence}/${entry.playerName}`

function comparedEntry(before: Standings[number] | undefined, after: Standings[number] | undefined): ComparedEntry {
  const newest = after ?? before
  return {
    name: newest?.entry.playerName ?? '',
    previousRank: before?.rank ?? null,
    newRank: after?.rank ?? null,
    previousRating: before?.entry.rating ?? null,
    newRating: after?.entry.rating ?? null,
    previousTimeMs: before?.entry.timeMs ?? null,
    newTimeMs: after?.entry.timeMs ?? null,
    isTime: (newest?.entry.timeMs ?? null) !== null
  }
}
