import { Sparklines, shownInstant } from '@gamenet/schemas'
import { z } from 'zod'
import type { Endpoint } from '../answers/endpoint.js'
import { listIn } from '../answers/table.js'
import { rowsCut } from '../queries/count-rows.js'
import { rowsOf } from '../queries/query.js'
import type { Window } from '../queries/series.js'
import { stepPeaks } from '../queries/sparkline.js'
import { integer } from '../request/parameters.js'
import { endOfMinute } from '../request/window.js'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** 5,000 titles have half a million numbers then, 2 MB. */
const DAYS_MAX = 90

type Request = Window & { readonly stepMs: number }

/** `GET /api/sparklines`: the trend lines of all titles. */
export const sparklines: Endpoint<{ days: number }, Request> = {
  operationId: 'getSparklines',
  path: '/api/sparklines',
  tags: ['Titles'],
  summary: 'Trend lines of all titles',
  description:
    'For each title with a sample in the window, the peak of each step: hours up to 2 days, 6 hours up to 14 days, ' +
    'else days in UTC. The last step contains now.',
  input: z.object({
    days: integer({ min: 1, max: DAYS_MAX }).default(30).describe('Length of the window, today included.')
  }),
  resolve: ({ days }, { nowMs }) => {
    const stepMs = days <= 2 ? HOUR_MS : days <= 14 ? 6 * HOUR_MS : DAY_MS
    const lastMs = Math.floor(nowMs / stepMs) * stepMs
    return { fromMs: Math.max(0, lastMs + stepMs - days * DAY_MS), toMs: endOfMinute(nowMs), stepMs }
  },
  reads: ({ fromMs, toMs, stepMs }) => [
    ...['title-count', rollupOf(stepMs).projection].map((projection) => ({ projection, fromMs, toMs })),
    { projection: 'title' }
  ],
  answer: async ({ fromMs, toMs, stepMs }, { tables, signal, catalog }) => {
    const { name } = rollupOf(stepMs)
    const params = { ...rowsCut({ fromMs, toMs }, name), keys: [], stepMs }
    const [rows, names] = await Promise.all([rowsOf(tables, stepPeaks(name), params, { signal }), catalog()])
    const titles = rows.map(({ titleId, steps, peaks }) => {
      const online: (number | null)[] = new Array(Math.ceil((toMs - fromMs) / stepMs)).fill(null)
      for (const [n, step] of steps.entries()) online[step] = peaks[n] ?? null
      return { titleId, name: names.named(titleId).shownName, online }
    })
    return { body: { from: shownInstant(fromMs), stepSeconds: stepMs / 1000, titles } }
  },
  table: listIn(Sparklines, 'titles'),
  response: Sparklines
}

function rollupOf(stepMs: number) {
  return stepMs === DAY_MS
    ? ({ name: 'day', projection: 'title-count-day' } as const)
    : ({ name: 'hour', projection: 'title-count-hour' } as const)
}
