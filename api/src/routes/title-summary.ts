import { shownInstant, TitleSummary } from '@gamenet/schemas'
import { z } from 'zod'
import type { AnswerContext, Endpoint } from '../answers/endpoint.js'
import { titleTotals } from '../queries/calendar.js'
import { rowsCut } from '../queries/count-rows.js'
import { rowsOf } from '../queries/query.js'
import { cutAtHours, type Window } from '../queries/series.js'
import { type LiveTitleCount, liveTitleCounts, nearSamples, titleSeriesQueries } from '../queries/title-count.js'
import { window } from '../request/window.js'
import { knownTitle, titleParameter } from './known-game.js'

const DAY_MS = 86_400_000
const HOUR_SECONDS = 3600
/**
 * Largest distance between the instant of a comparison and the sample: half of an hour, so that hourly samples suffice.
 */
const NEAR_MS_MAX = 30 * 60_000

type Request = Window & { readonly titleId: string }

/** `GET /api/title/:titleId`: the numbers of one title. */
export const titleSummary: Endpoint<{ titleId: string }, Request> = {
  operationId: 'getTitle',
  path: '/api/title/:titleId',
  tags: ['Titles'],
  summary: 'The numbers of one title',
  description:
    'Players of the newest scrape (or, if nothing was ever scraped, of the newest imported instant), their change ' +
    'against 24 hours, 7 and 30 days before `onlineAt`, peaks, the rank among all titles of that scrape, and open ' +
    'lobbies. A change is against the nearest sample, at most 30 minutes away. A number without data is null, never 0.',
  input: z.object({ titleId: titleParameter }),
  resolve: async ({ titleId }, context) => {
    const { fromMs, toMs } = window({}, { hours: 24 }, context.nowMs)
    return { titleId: (await knownTitle(titleId, context)).titleId, fromMs, toMs }
  },
  reads: ({ titleId, toMs }) => [
    { projection: 'title-latest' },
    ...['title-count', 'title-count-hour', 'title-count-day'].map((projection) => ({
      projection,
      key: titleId,
      toMs
    })),
    { projection: 'title' }
  ],
  answer: async ({ titleId, fromMs, toMs }, context) => {
    const { tables, signal } = context
    const lastDay = { titleId, ...cutAtHours({ fromMs, toMs }), width: HOUR_SECONDS }
    const [live, hours, [ever], names] = await Promise.all([
      rowsOf(tables, liveTitleCounts, { to: toMs }, { signal }),
      rowsOf(tables, titleSeriesQueries.shown.buckets, lastDay, { signal }),
      rowsOf(tables, titleTotals, { ...rowsCut({ fromMs: 0, toMs }, 'day'), keys: [titleId] }, { signal }),
      context.catalog()
    ])
    const now = live.find((count) => count.titleId === titleId)
    const [change24h = null, change7d = null, change30d = null] = await changesOf(now, context)
    return {
      body: {
        titleId,
        name: names.named(titleId).shownName,
        online: now?.online ?? null,
        onlineAt: now === undefined ? null : shownInstant(now.countedAtMs),
        change24h,
        change7d,
        change30d,
        peak24h: hours.length === 0 ? null : Math.max(...hours.map((hour) => hour.online_count)),
        peak: ever?.peak ?? null,
        peakAt: ever === undefined ? null : shownInstant(ever.peakAtMs),
        rank: now === undefined ? null : 1 + live.filter(({ online }) => online > now.online).length,
        titles: live.length,
        lobbies: now?.sessions ?? null,
        lobbyPlayers: now?.lobbyPlayers ?? null
      }
    }
  },
  response: TitleSummary,
  refuses: ['title_unknown']
}

/** Returns the change against 1, 7 and 30 days before; null where no sample is near. */
async function changesOf(now: LiveTitleCount | undefined, { tables, signal }: AnswerContext) {
  if (now === undefined) return [null, null, null]
  const before = (days: number) => Math.max(0, now.countedAtMs - days * DAY_MS)
  const instants = { first: before(1), second: before(7), third: before(30) }
  const near = { titleId: now.titleId, ...instants, nearMs: NEAR_MS_MAX }
  const samples = await rowsOf(tables, nearSamples, near, { signal })
  return Object.values(instants).map((atMs) => {
    const distance = ({ ms }: { ms: number }) => Math.abs(ms - atMs)
    // Of two samples at the same distance the earlier one.
    const [nearest] = samples.toSorted((a, b) => distance(a) - distance(b))
    return nearest === undefined || distance(nearest) > NEAR_MS_MAX ? null : now.online - nearest.online
  })
}
