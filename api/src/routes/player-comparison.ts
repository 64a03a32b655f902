import { measureGap, nameKey, PlayerComparison, timeText } from '@gamenet/schemas'
import { z } from 'zod'
import type { AnswerContext, Endpoint, EndpointResult } from '../answers/endpoint.js'
import { listIn } from '../answers/table.js'
import { comparedTotals, sharedBoards } from '../queries/player-comparison.js'
import { rowsOf } from '../queries/query.js'
import { nextLink } from '../reply/next-link.js'
import { integer, twoNames } from '../request/parameters.js'
import { readsNames } from './entry-match.js'

const BOARDS_MAX = 1000
const OFFSET_MAX = 10_000
const PATH = '/api/players/compare'

type ComparisonRequest = { readonly names: readonly [string, string]; readonly limit: number; readonly offset: number }

/** `GET /api/players/compare`: the entries of two players on their common boards. */
export const playerComparison: Endpoint<ComparisonRequest, ComparisonRequest> = {
  operationId: 'comparePlayers',
  path: PATH,
  tags: ['Players'],
  summary: 'Two players, board by board',
  description:
    'The boards with entries of both, the leader on each, and totals. Names are complete names on boards, compared ' +
    'without case; every spelling counts, and of several entries on one board the best. A player without a board ' +
    'shares none: 200 and empty.',
  input: z.object({
    names: twoNames().describe('Two whole names, separated by a comma.'),
    limit: integer({ min: 1, max: BOARDS_MAX }).default(BOARDS_MAX).describe('Maximum number of boards.'),
    offset: integer({ min: 0, max: OFFSET_MAX }).default(0).describe('Number of the first ones to skip.')
  }),
  resolve: (input) => input,
  reads: () => [{ projection: 'player-entry' }, ...readsNames('')],
  answer: answerComparison,
  table: listIn(PlayerComparison, 'boards'),
  response: PlayerComparison,
  responseHeaders: { Link: 'The next page, with `rel="next"`, if there is one.' }
}

async function answerComparison(request: ComparisonRequest, context: AnswerContext): Promise<EndpointResult> {
  const { tables, signal } = context
  const { names, limit, offset } = request
  const [first, second] = names
  const keys = { first: nameKey(first), second: nameKey(second) }
  const [rows, [totals], boards, titles] = await Promise.all([
    rowsOf(tables, sharedBoards, { ...keys, limit, offset }, { signal }),
    rowsOf(tables, comparedTotals, keys, { signal }),
    context.boards(),
    context.catalog()
  ])
  const { one = 0, other = 0, both = 0, oneLeads = 0, otherLeads = 0 } = totals ?? {}
  const body: PlayerComparison = {
    players: [
      { playerName: first, leaderboardsOn: one, leads: oneLeads },
      { playerName: second, leaderboardsOn: other, leads: otherLeads }
    ],
    total: both,
    ties: both - oneLeads - otherLeads,
    boards: rows.map((row) => ({
      leaderboardId: row.leaderboardId,
      leaderboardName: boards.nameOf(row),
      titleId: row.titleId,
      gameName: titles.named(row.titleId).shownName,
      ...judged(entryOf(row.one), entryOf(row.other), names)
    }))
  }
  const next = offset + limit
  if (next >= both || next > OFFSET_MAX) return { body }
  return { body, headers: nextLink(PATH, { names: names.join(','), limit, offset: next }) }
}

type Entry = PlayerComparison['boards'][number]['entries'][number]
type EntryColumns = z.infer<(typeof sharedBoards)['row']>['one']

function entryOf([playerName, rank, rating, [timeMs]]: EntryColumns): Entry {
  const timeFormatted = timeMs === null ? '' : timeText(timeMs)
  return { playerName, rank, rating, timeMs: timeMs ?? 0, timeFormatted, isTime: timeMs !== null }
}

/** Returns which of two players leads by rank, and by how much. */
function judged(
  one: Entry,
  other: Entry,
  [first, second]: readonly [string, string]
): Pick<PlayerComparison['boards'][number], 'leader' | 'gap' | 'entries'> {
  const leader = one.rank === other.rank ? null : one.rank < other.rank ? first : second
  return { leader, gap: measureGap(readOf(one), readOf(other)), entries: [one, other] }
}

function readOf({ rating, timeMs, isTime }: Entry): { rating: string; timeMs: number | null } {
  return { rating, timeMs: isTime ? timeMs : null }
}
