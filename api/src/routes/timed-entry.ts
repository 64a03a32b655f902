import { TimeMatches, timeText } from '@gamenet/schemas'
import { z } from 'zod'
import type { AnswerContext, Endpoint } from '../answers/endpoint.js'
import { listIn } from '../answers/table.js'
import { rowsOf } from '../queries/query.js'
import { type TimedRow, timesNear, titleTimesNear } from '../queries/timed-entry.js'
import { integer, time } from '../request/parameters.js'
import { entryMatches, readsNames, SEARCH_TAGS, titleFilter } from './entry-match.js'
import { titleParameter } from './known-game.js'

/**
 * The first tolerance, ms. With 20 million entries, 32 per millisecond, it covers the largest page a hundred times
 * over; 60,000 ms would be 4 million rows. A second read is necessary only if times are sparse.
 */
const NARROW_MS = 1000

type TimeSearch = {
  readonly time: number
  readonly tolerance: number
  readonly titleId: string
  readonly limit: number
}

/** `GET /api/datasearch/time`: entries with a time. */
export const searchByTime: Endpoint<
  { time: number; tolerance: number; titleId?: string | undefined; limit: number },
  TimeSearch
> = {
  operationId: 'searchByTime',
  path: '/api/datasearch/time',
  tags: SEARCH_TAGS,
  summary: 'Entries with a time',
  description:
    'Entries whose time is within `tolerance` milliseconds of the given one: nearest first, then faster, then by ' +
    'title, board and name.',
  input: z.object({
    time: time().describe('`M:SS.mmm` or `SS.mmm`; seconds above 59 in the second form only.'),
    tolerance: integer({ min: 0, max: 60_000 }).default(0).describe('Milliseconds.'),
    titleId: titleParameter.optional().describe('Only boards of this title: an id or a name.'),
    limit: integer({ min: 1, max: 500 }).default(100).describe('Maximum number of entries.')
  }),
  resolve: async ({ titleId, ...request }, context) => ({ ...request, titleId: await titleFilter(titleId, context) }),
  reads: ({ titleId }) => [{ projection: 'timed-entry' }, { projection: 'leaderboard-entry' }, ...readsNames(titleId)],
  answer: async (request, context) => {
    const rows = await nearest(request, context)
    const found = await entryMatches(rows, context)
    const results = found.map((entry) => ({ ...entry, difference_ms: Math.abs(entry.time_ms - request.time) }))
    const { time: searchTimeMs, tolerance } = request
    return { body: { searchTime: timeText(searchTimeMs), searchTimeMs, tolerance, results, count: results.length } }
  },
  table: listIn(TimeMatches, 'results'),
  response: TimeMatches,
  refuses: ['title_unknown']
}

/** Returns the entries in the order of the answer. */
async function nearest(request: TimeSearch, { tables, signal }: AnswerContext): Promise<TimedRow[]> {
  const { titleId, tolerance, limit } = request
  const narrow = Math.min(tolerance, NARROW_MS)
  const near = await rowsOf(tables, timesNear, { ...request, tolerance: narrow }, { signal })
  if (near.length === limit || narrow === tolerance) return near
  // Too few within the narrow range, so the title's boards are small.
  return await rowsOf(tables, titleId === '' ? timesNear : titleTimesNear, request, { signal })
}
