import {
  Calendar,
  errorMessage,
  HourMatrix,
  PERIODS,
  Peaks,
  type Period,
  Refusal,
  shownInstant,
  TitleRanks
} from '@gamenet/schemas'
import { z } from 'zod'
import type { AnswerContext, Dependency, Endpoint } from '../answers/endpoint.js'
import { listOf } from '../answers/table.js'
import {
  type Grain,
  hourMatrix,
  networkTotals,
  type PeriodSums,
  periodRanks,
  periodSums,
  titleTotals
} from '../queries/calendar.js'
import { rowsCut } from '../queries/count-rows.js'
import { rowsOf } from '../queries/query.js'
import { dateIn, hasWholeHours } from '../queries/time-zone.js'
import { date, integer, oneOf, texts, timeZone } from '../request/parameters.js'
import { endOfMinute } from '../request/window.js'
import { earlier, PERIOD_DAYS, type PeriodsRequest, periodOf, periodsOf, rounded, shifted } from './calendar-periods.js'
import { knownTitle, titleParameter } from './known-game.js'

const TAGS = ['Calendar']
const DAY_MS = 86_400_000
const TITLES_MAX = 20
const ROLLING_MAX = 366
/** About 25 MB of JSON. */
const ROWS_MAX = 100_000
/** Longer than a year, so that the periods of the year before are read too. */
const YEAR_DAYS = 372
/** The engine has no earlier days. */
const EPOCH_DAY = '1970-01-01'
const METRICS = ['online', 'lobbies', 'registered'] as const

type DaysInput = { readonly tz: string; readonly from?: string | undefined; readonly to?: string | undefined }
/** Days of a zone: instants that contain them, and the grain from which they are summed. */
type Days = {
  readonly tz: string
  readonly firstDay: string
  readonly endDay: string
  readonly fromMs: number
  readonly toMs: number
  readonly grain: 'hour' | 'sample'
}

const dayParameters = {
  tz: timeZone().default('UTC').describe('Time zone of days, weeks, months and years.'),
  from: date().optional().describe('First day; default: the whole history.'),
  to: date({ example: '2026-04-01' }).optional().describe('Day after the last one; default: today is the last.')
}
const everyParameter = oneOf(PERIODS).default('month').describe('Length of a period; a week begins on Monday.')
const WHOLE_PERIODS = 'Periods that the window touches are whole.'
const DAYS =
  'Days are those of the time zone `tz`, so that a day may have 23 or 25 hours. A period without a sample is absent.'

type CalendarInput = DaysInput & {
  readonly titleIds?: readonly string[] | undefined
  readonly metric: (typeof METRICS)[number]
  readonly every: Period
  readonly rolling?: number | undefined
}
type CalendarRequest = Days & PeriodsRequest

/** `GET /api/calendar`: counts by day, week, month or year of a time zone. */
export const calendar: Endpoint<CalendarInput, CalendarRequest> = {
  operationId: 'getCalendar',
  path: '/api/calendar',
  tags: TAGS,
  summary: 'Players by day, week, month or year of a time zone',
  description:
    `Peak, minimum and mean of each period, of titles on one axis or of the network, with the gain over ` +
    `the period before, the share of the network and the same period of the year before. Without \`from\` the whole ` +
    `history. ${WHOLE_PERIODS} ${DAYS}`,
  input: z.object({
    titleIds: texts({ max: TITLES_MAX, example: '4d5307e6,Halo 2' })
      .optional()
      .describe('Ids or names of titles, separated by commas; without them: the network.'),
    metric: oneOf(METRICS).default('online').describe('Metric of the network, when no titles are given.'),
    every: everyParameter,
    ...dayParameters,
    rolling: integer({ min: 2, max: ROLLING_MAX }).optional().describe('Periods of the rolling mean.')
  }),
  resolve: async ({ titleIds, metric, every, rolling, ...input }, context) => {
    const titles = await Promise.all((titleIds ?? []).map((each) => knownTitle(each, context)))
    const days = daysOf(input, context.nowMs, every)
    const before = YEAR_DAYS + (rolling ?? 0) * PERIOD_DAYS[every]
    return {
      ...days,
      ...(input.from !== undefined && begun(shifted(days.firstDay, -before))),
      shownFrom: days.firstDay,
      keys: titleIds === undefined ? [metric] : [...new Set(titles.map(({ titleId }) => titleId))],
      of: titleIds === undefined ? 'network' : 'titles',
      every,
      rolling: rolling ?? null
    }
  },
  reads: (request) => [
    ...(request.of === 'titles' ? readsOfDays('title-count', request, request.keys) : []),
    ...readsOfDays('network-count', request),
    { projection: 'title' }
  ],
  answer: async (request, context) => {
    const { of, grain, every, keys } = request
    const [sums, network, titles] = await Promise.all([
      sumsOf(of, keys, request, context),
      of === 'titles' ? sumsOf('network', ['online'], request, context) : [],
      context.catalog()
    ])
    if (sums.length > ROWS_MAX) {
      throw new Refusal('answer_too_large', [
        `every=${every} by ${grain} gives more than ${ROWS_MAX} periods; give from and to, or fewer titleIds`
      ])
    }
    const nameOf = (key: string) => (of === 'titles' ? titles.named(key).shownName : key)
    return { body: periodsOf(sums, network, request, nameOf) }
  },
  table: listOf(Calendar),
  response: Calendar,
  refuses: ['title_unknown', 'game_unknown', 'window_invalid', 'answer_too_large']
}

type HoursInput = DaysInput & { readonly titleId?: string | undefined }
type HoursRequest = Days & { readonly titleId: string | null }

/** `GET /api/calendar/hours`: the hours of the week. */
export const hoursOfWeek: Endpoint<HoursInput, HoursRequest> = {
  operationId: 'getHourMatrix',
  path: '/api/calendar/hours',
  tags: TAGS,
  summary: 'The best time to play: players by hour of the week',
  description:
    `Each of the 168 hours of a week with its mean over the weeks, how much weeks differ, and how many ` +
    `there are. Every week counts the same, however often it was sampled. ${DAYS}`,
  input: z.object({
    titleId: titleParameter.optional().describe('A title’s id or name; without it: users online on the network.'),
    ...dayParameters
  }),
  resolve: async ({ titleId, ...input }, context) => {
    const title = titleId === undefined ? null : await knownTitle(titleId, context)
    return { ...daysOf(input, context.nowMs), titleId: title?.titleId ?? null }
  },
  reads: ({ titleId, ...days }) =>
    titleId === null ? readsOfDays('network-count', days) : readsOfDays('title-count', days, [titleId]),
  answer: async ({ titleId, grain, ...days }, { tables, signal }) => {
    const question = hourMatrix(titleId === null ? 'network' : 'titles')
    const params = { ...days, ...rowsCut(days, grain), keys: [titleId ?? 'online'] }
    const rows = await zonedRows(tables, question, params, { signal })
    const body = rows.map(({ average, spread, lowest, highest, ...row }) => ({
      weekday: row.weekday,
      hour: row.hour,
      average: rounded(average),
      spread: rounded(spread),
      lowest: rounded(lowest),
      highest: rounded(highest),
      weeks: row.weeks
    }))
    return { body }
  },
  table: listOf(HourMatrix),
  response: HourMatrix,
  refuses: ['title_unknown', 'window_invalid']
}

type RanksInput = DaysInput & { readonly titleId: string; readonly every: Period }
type RanksRequest = Omit<Days, 'grain'> & { readonly grain: Grain; readonly titleId: string; readonly every: Period }

/** `GET /api/title/:titleId/ranks`: the rank of a title over time. */
export const titleRanks: Endpoint<RanksInput, RanksRequest> = {
  operationId: 'getTitleRanks',
  path: '/api/title/:titleId/ranks',
  tags: TAGS,
  summary: 'The rank of a title among all, over time',
  description:
    `Ranks by the mean of each period. Titles without a sample in a period have no rank in it. ` +
    `${WHOLE_PERIODS} ${DAYS}`,
  input: z.object({
    titleId: titleParameter,
    every: everyParameter,
    ...dayParameters
  }),
  resolve: async ({ titleId: given, every, ...input }, context) => {
    const { titleId } = await knownTitle(given, context)
    const days = daysOf(input, context.nowMs, every)
    return { ...days, grain: days.tz === 'UTC' ? 'day' : days.grain, titleId, every }
  },
  reads: (request) => readsOfDays('title-count', request),
  answer: async ({ grain, every, ...days }, { tables, signal }) => {
    const question = periodRanks(grain === 'day' ? 'day' : 'hour', every)
    const rows = await zonedRows(tables, question, { ...days, ...rowsCut(days, grain), keys: [] }, { signal })
    return { body: rows.map(({ date, rank, titles, average }) => ({ date, rank, titles, average })) }
  },
  table: listOf(TitleRanks),
  response: TitleRanks,
  refuses: ['title_unknown', 'window_invalid']
}

/** `GET /api/peaks`: the highest counts ever. */
export const peaks: Endpoint<Record<string, never>, { toMs: number }> = {
  operationId: 'getPeaks',
  path: '/api/peaks',
  tags: TAGS,
  summary: 'All-time peaks of the network and of every game',
  description:
    'Over the whole history up to now: the peak and its first instant, the mean of all samples, and the days between ' +
    'which there are any.',
  input: z.object({}),
  resolve: (_input, { nowMs }) => ({ toMs: endOfMinute(nowMs) }),
  reads: ({ toMs }) => [
    ...['title-count-day', 'title-count', 'network-count-hour', 'network-count'].map((projection) => ({
      projection,
      toMs
    })),
    { projection: 'title' }
  ],
  answer: async ({ toMs }, { tables, signal, catalog }) => {
    const window = { fromMs: 0, toMs }
    const [network, titles, names] = await Promise.all([
      rowsOf(tables, networkTotals, { ...rowsCut(window, 'hour'), keys: [] }, { signal }),
      rowsOf(tables, titleTotals, { ...rowsCut(window, 'day'), keys: [] }, { signal }),
      catalog()
    ])
    const shown = (
      titleId: string | null,
      name: string,
      { peak, peakAtMs, average, ...row }: (typeof titles)[number]
    ) => ({
      titleId,
      name,
      peak,
      peakAt: shownInstant(peakAtMs),
      average,
      samples: row.samples,
      firstDay: row.firstDay,
      lastDay: row.lastDay
    })
    return {
      body: [
        ...network.map((row) => shown(null, row.key, row)),
        ...titles.map((row) => shown(row.key, names.named(row.key).shownName, row))
      ]
    }
  },
  table: listOf(Peaks),
  response: Peaks
}

/** Returns the days of a window; with `every` the days of all periods that the window touches. */
function daysOf({ tz, from, to }: DaysInput, nowMs: number, every: Period = 'day'): Days {
  const firstDay = from ?? EPOCH_DAY
  const endDay = to ?? shifted(dateIn(tz, nowMs), 1)
  if (firstDay >= endDay) {
    throw new Refusal('window_invalid', [`from must be before to (default: tomorrow); got ${firstDay} and ${endDay}`])
  }
  const last = shifted(endDay, -1)
  const end = earlier(periodOf(last, every), every, -1)
  // A zone's day ends at most a day after that of UTC.
  const toMs = Math.min(Date.parse(end) + DAY_MS, endOfMinute(nowMs))
  return { tz, ...begun(periodOf(firstDay, every)), endDay: end, toMs, grain: hasWholeHours(tz) ? 'hour' : 'sample' }
}

/** Returns the first day that the engine has, with an instant before it in every zone. */
function begun(day: string) {
  const firstDay = day < EPOCH_DAY ? EPOCH_DAY : day
  return { firstDay, fromMs: Math.max(0, Date.parse(firstDay) - DAY_MS) }
}

function readsOfDays(
  noun: string,
  { grain, fromMs, toMs }: RanksRequest | Days,
  keys?: readonly string[]
): Dependency[] {
  const projections = grain === 'sample' ? [noun] : [noun, `${noun}-${grain}`]
  return projections.flatMap((projection) => {
    const whole = { projection, fromMs, toMs }
    return keys?.map((key) => ({ ...whole, key })) ?? [whole]
  })
}

async function sumsOf(
  of: 'titles' | 'network',
  keys: readonly string[],
  { grain, every, tz, firstDay, endDay, ...window }: CalendarRequest,
  { tables, signal }: AnswerContext
): Promise<PeriodSums[]> {
  const params = { tz, firstDay, endDay, ...rowsCut(window, grain), keys: [...keys] }
  return await zonedRows(tables, periodSums(of, every), params, { signal })
}

/** Returns the rows of a query by days of a zone. The engine's list of zones may be older than that of Node. */
async function zonedRows<Params extends { readonly tz: string }, Row>(
  ...[tables, question, params, options]: Parameters<typeof rowsOf<Params, Row>>
): Promise<Row[]> {
  return await rowsOf(tables, question, params, options).catch((error: unknown) => {
    if (!errorMessage(error).includes(`Cannot load time zone ${params.tz}`)) throw error
    const sentence = `tz is ${params.tz}, which the tables do not know; give another zone with the same clock`
    throw new Refusal('request_invalid', [sentence], { cause: error })
  })
}
