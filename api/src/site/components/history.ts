import { type Calendar, type OnlineHistory, Refusal, type TitleOnlineHistory } from '@gamenet/schemas'
import { instant, oneOf, timeZone } from '../../request/parameters.js'
import { calendar } from '../../routes/calendar.js'
import { lobbyHistory, onlineHistory } from '../../routes/network-count.js'
import { titleOnlineHistory } from '../../routes/title-count.js'
import { ask, type Part, type Resolved, tryAsk } from '../values/page.js'
import { pointsOf, type Series, withGaps } from './series.js'
import { count, DAY_MS, dayText, msOf } from './text.js'

/*
 * samples   counts as they were taken, or in buckets of up to some hours: for spans up to 120 days
 * periods   days or weeks with their lowest, mean and highest count: for longer spans
 */

/** From this many days on, samples would fill the chart as a solid block. */
const PERIOD_DAYS_MIN = 120
/** From this many days on, weeks take the place of days. */
const WEEK_DAYS_MIN = 1200
const MINUTE_MS = 60_000

/** The span of a chart, as an address says it. */
export type Span = {
  readonly range?: string | undefined
  readonly from?: number | undefined
  readonly to?: number | undefined
}

/** The parameters of a chart's span; the first range is the usual one. */
export const spanParameters = <const Name extends string>(ranges: readonly [Name, ...Name[]]) => ({
  range: oneOf(ranges).default(ranges[0] as never),
  from: instant().optional(),
  to: instant().optional(),
  tz: timeZone().default('UTC')
})

/** The days of each range; `all` has none. */
export const RANGE_DAYS: Readonly<Record<string, number>> = { '24h': 1, '48h': 2, '7d': 7, '30d': 30, '1y': 365 }
export const RANGE_TEXTS: Readonly<Record<string, string>> = {
  '24h': '24 h',
  '48h': '48 h',
  '7d': '7 d',
  '30d': '30 d',
  '1y': '1 y',
  all: 'All'
}

/** Of what a chart shows the history: a title, or a metric of the network. */
export type Subject = { readonly titleId: string } | { readonly metric: 'online' | 'lobbies' }

type Rows = TitleOnlineHistory | OnlineHistory | Calendar

/** Returns the question of a chart. `shiftDays` moves it into the past, for comparisons. */
export function historyPart(of: Subject, span: Span, nowMs: number, shiftDays = 0): Part<Rows | undefined> {
  if ((span.from === undefined) !== (span.to === undefined)) {
    throw new Refusal('window_invalid', ['from and to must be given together, or neither'])
  }
  const { fromMs, toMs } = boundsOf(span, nowMs, shiftDays)
  if (isByPeriod(span)) {
    return tryAsk(calendar, {
      ...('titleId' in of ? { titleIds: of.titleId } : { metric: of.metric }),
      every: everyOf(span),
      ...(fromMs === undefined ? {} : { from: isoDay(fromMs), to: isoDay(toMs + DAY_MS) })
    })
  }
  const isPlain = span.from === undefined && shiftDays === 0
  const days = daysOf(span)
  if ('titleId' in of) {
    const window = isPlain ? { hours: days * 24 } : { from: iso(fromMs ?? 0), to: iso(toMs) }
    return ask(titleOnlineHistory, { titleId: of.titleId, ...window })
  }
  const window = isPlain ? { days } : { from: iso(fromMs ?? 0), to: iso(toMs) }
  return tryAsk(of.metric === 'online' ? onlineHistory : lobbyHistory, window)
}

/** Returns the line of an answer to `historyPart`, and the span that it fills. */
export function historyOf(
  name: string,
  rows: Rows | undefined,
  span: Span,
  resolved: Resolved,
  shiftDays = 0
): { readonly series: Series; readonly fromMs: number; readonly toMs: number } {
  const shift = shiftDays * DAY_MS
  if (!isByPeriod(span)) {
    const points = pointsOf(
      (rows ?? []) as readonly SampleRow[],
      (row) => row.average ?? row.online_count ?? row.lobby_count ?? 0,
      resolved.resolutionSeconds
    )
    const band =
      resolved.resolutionSeconds < 300
        ? []
        : ((rows ?? []) as readonly SampleRow[]).flatMap(({ recorded_at, min, online_count = 0 }) =>
            min === undefined ? [] : [[msOf(recorded_at) + shift, min, online_count] as const]
          )
    return {
      series: { name, points: shifted(points, shift), ...(band.length > 1 ? { band } : {}) },
      fromMs: (resolved.fromMs ?? 0) + shift,
      toMs: (resolved.toMs ?? 0) + shift
    }
  }
  const periods = (rows ?? []) as Calendar
  const widthMs = everyOf(span) === 'week' ? 7 * DAY_MS : DAY_MS
  const points = withGaps(
    periods.map(({ date, average }) => [msOf(date) + widthMs / 2, Math.round(average)] as const),
    widthMs
  )
  const first = periods[0]
  const isAll = span.range === 'all' && span.from === undefined
  const firstMs = first === undefined ? (resolved.toMs ?? 0) - DAY_MS : msOf(first.date)
  return {
    series: {
      name,
      points: shifted(points, shift),
      band: periods.map(({ date, min, peak }) => [msOf(date) + widthMs / 2 + shift, min, peak] as const)
    },
    fromMs: (isAll ? firstMs : (resolved.fromMs ?? 0)) + shift,
    toMs: (resolved.toMs ?? 0) + shift
  }
}

/** Returns what the chart says in a sentence: what a point is, how many days have data, and the highest. */
export function historyFacts(rows: Rows | undefined, span: Span, { fromMs, toMs }: Resolved): string {
  if (!isByPeriod(span)) {
    const highest = ((rows ?? []) as readonly SampleRow[]).reduce<SampleRow | undefined>(
      (best, row) => (highOf(row) > (best === undefined ? -1 : highOf(best)) ? row : best),
      undefined
    )
    if (highest === undefined) return 'No data in this range.'
    return `Highest: ${count(highOf(highest))} on ${dayText(msOf(highest.recorded_at))}.`
  }
  const periods = (rows ?? []) as Calendar
  if (periods.length === 0) return 'No data in this range.'
  const best = periods.reduce((a, b) => (b.peak > a.peak ? b : a))
  const isWeekly = everyOf(span) === 'week'
  const from = span.range === 'all' && span.from === undefined ? msOf(periods[0]?.date ?? '') : (fromMs ?? 0)
  const total = Math.max(periods.length, Math.round(((toMs ?? 0) - from) / (isWeekly ? 7 * DAY_MS : DAY_MS)))
  const unit = isWeekly ? 'weeks' : 'days'
  return (
    `Mean of each ${isWeekly ? 'week' : 'day'}, with lowest and highest. ` +
    `Data for ${count(periods.length)} of ${count(total)} ${unit}. ` +
    `Highest: ${count(best.peak)} on ${dayText(best.peakAt)}.`
  )
}

type SampleRow = {
  readonly recorded_at: string
  readonly online_count?: number
  readonly lobby_count?: number
  readonly average?: number
  readonly min?: number
}

function highOf({ online_count = 0, lobby_count = 0 }: SampleRow): number {
  return Math.max(online_count, lobby_count)
}

function shifted(points: Series['points'], shift: number): Series['points'] {
  return shift === 0 ? points : points.map(([ms, value]) => [ms + shift, value] as const)
}

function daysOf({ range = '', from, to }: Span): number {
  if (from !== undefined && to !== undefined) return (to - from) / DAY_MS
  return RANGE_DAYS[range] ?? Number.POSITIVE_INFINITY
}

function isByPeriod(span: Span): boolean {
  return daysOf(span) >= PERIOD_DAYS_MIN
}

function everyOf(span: Span): 'day' | 'week' {
  return daysOf(span) >= WEEK_DAYS_MIN ? 'week' : 'day'
}

/** The bounds of a span, in whole minutes; without `fromMs` it begins with the data. */
function boundsOf(span: Span, nowMs: number, shiftDays: number) {
  const endMs = span.to ?? Math.floor(nowMs / MINUTE_MS) * MINUTE_MS
  const days = daysOf(span)
  const fromMs = span.from ?? (days === Number.POSITIVE_INFINITY ? undefined : endMs - days * DAY_MS)
  const shift = shiftDays * DAY_MS
  return { fromMs: fromMs === undefined ? undefined : fromMs - shift, toMs: endMs - shift }
}

export function iso(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}

export function isoDay(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}

/** The first day of the last `days` days, as a parameter: the same for a whole day. */
export function daysAgo(nowMs: number, days: number): string {
  return isoDay(nowMs - days * DAY_MS)
}
