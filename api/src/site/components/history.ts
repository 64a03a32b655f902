import { type Calendar, type OnlineHistory, Refusal, type TitleOnlineHistory } from '@gamenet/schemas'
import { instant, oneOf, timeZone } from '../../request/parameters.js'
import { calendar } from '../../routes/calendar.js'
import { lobbyHistory, onlineHistory } from '../../routes/network-count.js'
import { titleOnlineHistory } from '../../routes/title-count.js'
import { iso, isoDay } from '../values/iso.js'
import { ask, type Part, type Resolved, tryAsk } from '../values/page.js'
import { type Line, pointsOf, type Series, withGaps } from './series.js'
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
  const window = { from: iso(fromMs ?? 0), to: iso(toMs) }
  if ('titleId' in of) {
    return ask(titleOnlineHistory, { titleId: of.titleId, ...(isPlain ? { hours: days * 24 } : window) })
  }
  return tryAsk(of.metric === 'online' ? onlineHistory : lobbyHistory, isPlain ? { days } : window)
}

type Look = { readonly shiftDays?: number; readonly isDotted?: boolean; readonly isRight?: boolean }

/** An answer to `historyPart` with its name; without `resolved` it was not asked for. */
export type History = readonly [name: string, rows: Rows | undefined, resolved: Resolved | undefined, look?: Look]

/** Returns the lines of a chart, without those that were not asked for. */
export function linesOf(span: Span, histories: readonly History[]): Line[] {
  return histories.flatMap(([name, rows, resolved, look = {}]) => {
    const { shiftDays = 0, isDotted = false, isRight = false } = look
    if (resolved === undefined) return []
    const { points, band, fromMs } = isByPeriod(span)
      ? ofPeriods((rows ?? []) as Calendar, span, resolved)
      : ofSamples((rows ?? []) as readonly SampleRow[], resolved)
    const shift = shiftDays * DAY_MS
    return {
      series: {
        name,
        points: shift === 0 ? points : points.map(([ms, value]) => [ms + shift, value] as const),
        ...{ isDotted, isRight },
        ...(!isDotted && !isRight && band.length > 1 ? { band } : {})
      },
      fromMs: fromMs + shift,
      toMs: (resolved.toMs ?? 0) + shift
    }
  })
}

type SampleRow = {
  readonly recorded_at: string
  readonly online_count?: number
  readonly lobby_count?: number
  readonly average?: number
  readonly min?: number
}
type Drawn = { readonly points: Series['points']; readonly band: NonNullable<Series['band']>; readonly fromMs: number }

function ofSamples(rows: readonly SampleRow[], { resolutionSeconds, fromMs = 0 }: Resolved): Drawn {
  const countOf = (row: SampleRow) => row.average ?? highOf(row)
  const band = rows.flatMap(({ recorded_at, min, online_count = 0 }) =>
    min === undefined || resolutionSeconds < 300 ? [] : [[msOf(recorded_at), min, online_count] as const]
  )
  return { points: pointsOf(rows, countOf, resolutionSeconds), band, fromMs }
}

function ofPeriods(periods: Calendar, span: Span, { fromMs = 0, toMs = 0 }: Resolved): Drawn {
  const widthMs = everyOf(span) === 'week' ? 7 * DAY_MS : DAY_MS
  const [first] = periods
  const firstMs = first === undefined ? toMs - DAY_MS : msOf(first.date)
  const middles = periods.map((period) => ({ ...period, ms: msOf(period.date) + widthMs / 2 }))
  return {
    points: withGaps(
      middles.map(({ ms, average }) => [ms, Math.round(average)] as const),
      widthMs
    ),
    band: middles.map(({ ms, min, peak }) => [ms, min, peak] as const),
    fromMs: isWhole(span) ? firstMs : fromMs
  }
}

/** Returns what the chart says in a sentence: what a point is, how many days have data, and the highest. */
export function historyFacts(rows: Rows | undefined, span: Span, { fromMs = 0, toMs = 0 }: Resolved): string {
  if (rows === undefined || rows.length === 0) return 'No data in this range.'
  if (!isByPeriod(span)) {
    const highest = (rows as readonly SampleRow[]).reduce((best, row) => (highOf(row) > highOf(best) ? row : best))
    return `Highest: ${count(highOf(highest))} on ${dayText(msOf(highest.recorded_at))}.`
  }
  const periods = rows as Calendar
  const best = periods.reduce((a, b) => (b.peak > a.peak ? b : a))
  const every = everyOf(span)
  const from = isWhole(span) ? msOf(periods[0]?.date ?? '') : fromMs
  const total = Math.max(periods.length, Math.ceil((toMs - from) / (every === 'week' ? 7 * DAY_MS : DAY_MS)))
  return (
    `Mean of each ${every}, with lowest and highest. ` +
    `Data for ${count(periods.length)} of ${count(total)} ${every}s. ` +
    `Highest: ${count(best.peak)} on ${dayText(best.peakAt)}.`
  )
}

const highOf = ({ online_count = 0, lobby_count = 0 }: SampleRow): number => Math.max(online_count, lobby_count)

function daysOf({ range = '', from, to }: Span): number {
  if (from !== undefined && to !== undefined) return (to - from) / DAY_MS
  return RANGE_DAYS[range] ?? Number.POSITIVE_INFINITY
}

const isWhole = ({ range, from }: Span): boolean => range === 'all' && from === undefined

const isByPeriod = (span: Span): boolean => daysOf(span) >= PERIOD_DAYS_MIN

const everyOf = (span: Span): 'day' | 'week' => (daysOf(span) >= WEEK_DAYS_MIN ? 'week' : 'day')

/** The bounds of a span, in whole minutes; without `fromMs` it begins with the data. */
function boundsOf(span: Span, nowMs: number, shiftDays: number) {
  const endMs = span.to ?? Math.floor(nowMs / MINUTE_MS) * MINUTE_MS
  const days = daysOf(span)
  const fromMs = span.from ?? (days === Number.POSITIVE_INFINITY ? undefined : endMs - days * DAY_MS)
  const shift = shiftDays * DAY_MS
  return { fromMs: fromMs === undefined ? undefined : fromMs - shift, toMs: endMs - shift }
}

/** The first day of the last `days` days, as a parameter: the same for a whole day. */
export const daysAgo = (nowMs: number, days: number): string => isoDay(nowMs - days * DAY_MS)
