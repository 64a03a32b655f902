import { CollectorStatus, Coverage, SCRAPE_SOURCES, shownInstant } from '@gamenet/schemas'
import { z } from 'zod'
import type { Dependency, Endpoint, ResolveContext } from '../answers/endpoint.js'
import { listIn, listOf } from '../answers/table.js'
import { gaps, newestRuns } from '../queries/coverage.js'
import { rowsOf } from '../queries/query.js'
import type { Window } from '../queries/series.js'
import { integer } from '../request/parameters.js'
import { endOfMinute, type WindowInput, window } from '../request/window.js'
import { windowParameters } from './series.js'

const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000
const PERIODS_USUAL = 3

/** `stepsMs` are the longest usual steps of `sources`. */
type Usual = { readonly nowEnd: number; readonly sources: readonly string[]; readonly stepsMs: readonly number[] }

type StatusRequest = Usual & { readonly historyPercent: number | null }

/** Reads without a span, because a success after the window can end a gap in it. */
const reads = (): Dependency[] => [
  { projection: 'scrape' },
  { projection: 'network-count' },
  { projection: 'network-count-hour' }
]

/** `GET /api/coverage`: when the collector did not work. */
export const coverage: Endpoint<WindowInput, Window & Usual> = {
  operationId: 'getCoverage',
  path: '/api/coverage',
  tags: ['Service'],
  summary: 'Gaps of the collector',
  description:
    'The gaps that touch the window: times between two successes of a source that are longer than three times the ' +
    'usual step of that source, than three of its configured periods, and than 10 minutes; for `boards`, which rest ' +
    'for up to a day, than a day. Before its first success a source did not run, so there is no gap. `counts` has ' +
    'the hours with a count of users online, so that gaps of imported history are found too. What is missing in an ' +
    'answer about counts is explained here, not by a count of 0.',
  input: z.object({
    days: integer({ min: 1, max: 365 }).optional().describe('Length of the window that ends now; default: 7.'),
    ...windowParameters
  }),
  resolve: (input, context) => {
    const { fromMs, toMs } = window(input, { days: 7 }, context.nowMs)
    const usual = usualOf(context)
    return { fromMs, toMs: Math.min(toMs, usual.nowEnd), ...usual }
  },
  reads,
  answer: async ({ fromMs, toMs, ...usual }, { tables, signal }) => {
    const rows = await rowsOf(tables, gaps, { from: fromMs, to: toMs, ...usual }, { signal })
    return {
      body: rows.map((gap) => ({
        source: gap.source,
        from: shownInstant(gap.fromMs),
        to: gap.toMs === null ? null : shownInstant(gap.toMs),
        seconds: Math.floor(((gap.toMs ?? toMs) - gap.fromMs) / 1000)
      }))
    }
  },
  table: listOf(Coverage),
  response: Coverage,
  refuses: ['window_invalid']
}

/** `GET /api/status`: how old the data of each source is. */
export const collectorStatus: Endpoint<Record<string, never>, StatusRequest> = {
  operationId: 'getStatus',
  path: '/api/status',
  tags: ['Service'],
  summary: 'Age of the data',
  description:
    'Each source that has ever run, with the age of its last success and its gaps in the last 24 hours, as ' +
    '`/api/coverage` has them, and the progress of a history that is being loaded (an import, the demo’s). ' +
    '`ageSeconds` counts to the end of the current minute.',
  input: z.object({}),
  resolve: (_input, context) => ({ ...usualOf(context), historyPercent: context.historyPercent ?? null }),
  reads,
  answer: async ({ historyPercent, ...usual }, { tables, signal }) => {
    const toMs = usual.nowEnd
    const fromMs = toMs - DAY_MS
    const [runs, found] = await Promise.all([
      rowsOf(tables, newestRuns, { to: toMs }, { signal }),
      rowsOf(tables, gaps, { from: fromMs, to: toMs, ...usual }, { signal })
    ])
    const sources = runs
      .sort((a, b) => (a.source < b.source ? -1 : 1))
      .map(({ source, successMs, outcome }) => {
        const ofSource = found.filter((gap) => gap.source === source)
        const ms = ofSource.reduce((sum, gap) => sum + (gap.toMs ?? toMs) - Math.max(gap.fromMs, fromMs), 0)
        return {
          source,
          lastSuccessAt: successMs === null ? null : shownInstant(successMs),
          ageSeconds: successMs === null ? null : Math.floor((toMs - successMs) / 1000),
          lastOutcome: outcome,
          gaps: ofSource.length,
          gapSeconds: Math.floor(ms / 1000)
        }
      })
    return { body: { history: historyPercent === null ? null : { percent: historyPercent }, sources } }
  },
  table: listIn(CollectorStatus, 'sources'),
  response: CollectorStatus
}

/** Counts are compared by their hours, and a quiet board rests for up to a day. */
const STEP_MS_MIN: Readonly<Record<string, number>> = { counts: PERIODS_USUAL * HOUR_MS, boards: DAY_MS + HOUR_MS }

function usualOf({ nowMs, periodSeconds = {} }: ResolveContext): Usual {
  const sources = [...SCRAPE_SOURCES, 'counts'] as const
  const periods: Readonly<Record<string, number | undefined>> = periodSeconds
  const stepsMs = sources.map((source) =>
    Math.max(STEP_MS_MIN[source] ?? 0, PERIODS_USUAL * 1000 * (periods[source === 'counts' ? 'network' : source] ?? 0))
  )
  return { nowEnd: endOfMinute(nowMs), sources, stepsMs }
}
