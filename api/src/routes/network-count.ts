import {
  ActivitySummary,
  DailyOnline,
  LobbyHistory,
  OnlineHistory,
  Refusal,
  RegisteredUsers,
  shownInstant
} from '@gamenet/schemas'
import { z } from 'zod'
import type { Dependency, Endpoint } from '../answers/endpoint.js'
import { listOf } from '../answers/table.js'
import { compareNames } from '../queries/catalog.js'
import { rowsCut } from '../queries/count-rows.js'
import {
  type NetworkMetric,
  networkActivity,
  networkSeriesQueries,
  onlineByDay,
  registeredByDay
} from '../queries/network-count.js'
import { jsonOf, rowsOf } from '../queries/query.js'
import { cutAtDays, type Window } from '../queries/series.js'
import { titleActivity } from '../queries/title-count.js'
import { integer, oneOf } from '../request/parameters.js'
import { endOfMinute, type WindowInput, window } from '../request/window.js'
import {
  readsOf,
  type SeriesRequest,
  seriesAnswer,
  seriesDescription,
  seriesParameters,
  seriesReads,
  seriesRequest,
  windowParameters
} from './series.js'

const TAGS = ['Network']
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const PERIODS = { today: { hours: 24 }, '7d': { hours: 168 } } as const

/** `GET /api/network-stats/registered-users`: the last count of registered users of each UTC day. */
export const registeredUsers: Endpoint<{ days?: number | undefined }, Window> = {
  operationId: 'getRegisteredUsers',
  path: '/api/network-stats/registered-users',
  tags: TAGS,
  summary: 'Registered users by day',
  description:
    'One point per UTC day, today included, oldest first: the last count of that day. A day without a count has no ' +
    'point.',
  input: z.object({
    days: integer({ min: 1, max: 365 }).optional().describe('UTC days, today included; default: 30.')
  }),
  resolve: ({ days = 30 }, { nowMs }) => lastDays(days, nowMs),
  reads: readsOfDays,
  answer: async (window, { tables, signal }) => ({
    body: await jsonOf(tables, registeredByDay, { ...rowsCut(window, 'hour'), keys: ['registered'] }, { signal })
  }),
  table: listOf(RegisteredUsers),
  response: RegisteredUsers
}

/** `GET /api/network-stats/online-24h`: users online over time. */
export const onlineHistory = networkSeries({
  metric: 'online',
  count: 'online_count',
  operationId: 'getOnlineHistory',
  path: '/api/network-stats/online-24h',
  summary: 'Users online over time',
  response: OnlineHistory
})

/** `GET /api/network-stats/lobbies-24h`: open lobbies over time. */
export const lobbyHistory = networkSeries({
  metric: 'lobbies',
  count: 'lobby_count',
  operationId: 'getLobbyHistory',
  path: '/api/network-stats/lobbies-24h',
  summary: 'Open lobbies over time',
  response: LobbyHistory
})

/** `GET /api/network-stats/activity-summary`: the peaks of a day or a week. */
export const activitySummary: Endpoint<{ period?: keyof typeof PERIODS | undefined }, Window & { period: string }> = {
  operationId: 'getActivitySummary',
  path: '/api/network-stats/activity-summary',
  tags: TAGS,
  summary: 'Peaks of the last day or week',
  description:
    'The highest counts of the last 24 hours (`today`) or 168 hours (`7d`), each with its first instant, and the ' +
    'game with the highest count of players; of equal games the first by name. Without data the counts are 0, times ' +
    'and `mostPlayedGame` null; `onlineSampleCount` and `lobbySampleCount` say whether a peak of 0 was counted.',
  input: z.object({
    period: oneOf(['today', '7d']).optional().describe('The last 24 or 168 hours; default: `today`.')
  }),
  resolve: ({ period = 'today' }, { nowMs }) => {
    const { fromMs, toMs } = window({}, PERIODS[period], nowMs)
    return { period, fromMs, toMs }
  },
  reads: ({ fromMs, toMs }) => [
    { projection: 'network-count', fromMs, toMs },
    ...readsOf('title-count', cutAtDays({ fromMs, toMs })),
    { projection: 'title' }
  ],
  answer: async ({ period, fromMs, toMs }, { tables, signal, catalog }) => {
    const [[network], titles, names] = await Promise.all([
      rowsOf(tables, networkActivity, { from: fromMs, to: toMs }, { signal }),
      rowsOf(tables, titleActivity, cutAtDays({ fromMs, toMs }), { signal }),
      catalog()
    ])
    const active = titles.filter(({ peak }) => peak > 0)
    const [most] = active
      .map(({ titleId, peak }) => ({ name: names.named(titleId).name, titleId, peak }))
      .sort((a, b) => b.peak - a.peak || compareNames(a.name, b.name) || compareNames(a.titleId, b.titleId))
    const { onlineSamples = 0, lobbySamples = 0 } = network ?? {}
    return {
      body: {
        period,
        peakOnline: network?.peakOnline ?? 0,
        peakOnlineAt: onlineSamples > 0 ? shownInstant(network?.peakOnlineAtMs ?? 0) : null,
        peakLobbies: network?.peakLobbies ?? 0,
        peakLobbiesAt: lobbySamples > 0 ? shownInstant(network?.peakLobbiesAtMs ?? 0) : null,
        mostPlayedGame: most ?? null,
        onlineSampleCount: onlineSamples,
        lobbySampleCount: lobbySamples,
        gamesWithActivityCount: active.length,
        totalSnapshotCount: network?.instants ?? 0
      }
    }
  },
  response: ActivitySummary
}

/** `GET /api/network-stats/daily-online`: the online counts of each UTC day. */
export const dailyOnline: Endpoint<WindowInput, Window> = {
  operationId: 'getDailyOnline',
  path: '/api/network-stats/daily-online',
  tags: TAGS,
  summary: 'Users online by day',
  description:
    'Lowest, highest and mean online count of each UTC day, oldest first. `coverage` is the share of the day’s 24 ' +
    'hours (today: of the hours begun) that hold a sample; a day without a sample has no row.',
  input: z.object({
    days: integer({ min: 1, max: 365 }).optional().describe('UTC days, today included; default: 30.'),
    from: windowParameters.from.describe('First day, such as 2026-03-01, or its start. Without `to`: up to today.'),
    to: windowParameters.to.describe('The day after the last one, or its start; needs `from`.')
  }),
  resolve: (input, { nowMs }) => wholeDays(input, nowMs),
  reads: readsOfDays,
  answer: async (window, { tables, signal }) => ({
    body: await jsonOf(tables, onlineByDay, { ...rowsCut(window, 'hour'), keys: ['online'] }, { signal })
  }),
  table: listOf(DailyOnline),
  response: DailyOnline,
  refuses: ['window_invalid']
}

function networkSeries(
  given: {
    readonly metric: 'online' | 'lobbies'
    readonly count: string
    readonly response: typeof OnlineHistory | typeof LobbyHistory
  } & Pick<Endpoint, 'operationId' | 'path' | 'summary'>
): Endpoint<WindowInput & { resolution?: 'raw' | number | undefined }, SeriesRequest> {
  const { metric, count, response, ...described } = given
  return {
    ...described,
    tags: TAGS,
    description: `The last \`days\` days up to now, or any window by \`from\` and \`to\`. ${seriesDescription}`,
    input: z.object({
      days: integer({ min: 1, max: 30 }).optional().describe('Length of the window that ends now; default: 1.'),
      ...seriesParameters
    }),
    resolve: (input, { nowMs }) => seriesRequest(input, { days: 1 }, nowMs),
    reads: (series) => seriesReads('network-count', series),
    ...seriesAnswer({
      queries: networkSeriesQueries[metric],
      count,
      response,
      keyOf: (): { metric: z.infer<typeof NetworkMetric> } => ({ metric })
    }),
    refuses: ['window_invalid', 'answer_too_large']
  }
}

function lastDays(days: number, nowMs: number): Window {
  const today = Math.floor(nowMs / DAY_MS) * DAY_MS
  return { fromMs: Math.max(0, today - (days - 1) * DAY_MS), toMs: endOfMinute(nowMs) }
}

function readsOfDays(window: Window): Dependency[] {
  return ['network-count-hour', 'network-count'].map((projection) => ({ projection, ...window }))
}

function wholeDays(input: WindowInput, nowMs: number): Window {
  const { from, to, days = 30 } = input
  const period = window(input, { days }, nowMs)
  for (const [name, ms] of Object.entries({ from, to })) {
    if (ms !== undefined && ms % DAY_MS !== 0) {
      throw new Refusal('window_invalid', [
        `${name} must be a UTC day or its start, such as 2026-03-01; got ${shownInstant(ms)}`
      ])
    }
  }
  if (from === undefined) return lastDays(days, nowMs)
  return { fromMs: from, toMs: Math.min(period.toMs, endOfMinute(nowMs)) }
}
