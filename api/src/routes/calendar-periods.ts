import { type CalendarPeriod, type Period, shownInstant } from '@gamenet/schemas'
import type { PeriodSums } from '../queries/calendar.js'

/*
 * Periods of the calendar, and their comparison with earlier ones. Days are texts, `YYYY-MM-DD`.
 */

const DAY_MS = 86_400_000
/** The longest period of a kind, in days. */
export const PERIOD_DAYS: Readonly<Record<Period, number>> = { day: 1, week: 7, month: 31, year: 366 }

export type PeriodsRequest = {
  /** Where the answer begins; the sums begin a year earlier, for comparison. */
  readonly shownFrom: string
  readonly keys: readonly string[]
  readonly of: 'titles' | 'network'
  readonly every: Period
  readonly rolling: number | null
}

/** Returns the periods of an answer from sums that begin a year earlier. */
export function periodsOf(
  sums: readonly PeriodSums[],
  network: readonly PeriodSums[],
  { every, rolling, shownFrom, of, keys }: PeriodsRequest,
  nameOf: (key: string) => string
): CalendarPeriod[] {
  const byPeriod = new Map(sums.map((row) => [`${row.key} ${row.date}`, row]))
  const online = new Map(network.map((row) => [row.date, row]))
  const means = rolling === null ? undefined : rollingMeans(sums, rolling, every)
  const rows = sums
    .filter((row) => row.date >= shownFrom)
    .map((row) => {
      const at = (day: string | undefined) => byPeriod.get(`${row.key} ${day}`)
      const before = at(earlier(row.date, every, 1))
      const gain = before === undefined ? null : rounded(row.average - before.average)
      const whole = online.get(row.date)
      return {
        key: row.key,
        shown: {
          date: row.date,
          titleId: of === 'titles' ? row.key : null,
          name: nameOf(row.key),
          peak: row.peak,
          peakAt: shownInstant(row.peakAtMs),
          min: row.min,
          average: row.average,
          samples: row.samples,
          gain,
          gainPercent: gain === null || !before?.average ? null : rounded((gain * 100) / before.average),
          yearBefore: at(yearEarlier(row.date, every))?.average ?? null,
          share: !whole?.total ? null : rounded((row.total / row.samples / whole.total) * whole.samples, 4),
          rolling: means?.get(row) ?? null
        }
      }
    })
  return rows
    .sort((a, b) =>
      a.shown.date === b.shown.date ? keys.indexOf(a.key) - keys.indexOf(b.key) : a.shown.date < b.shown.date ? -1 : 1
    )
    .map(({ shown }) => shown)
}

/** Returns the mean of the last `periods` periods of each row. The rows of a key are ordered by date. */
function rollingMeans(sums: readonly PeriodSums[], periods: number, every: Period): ReadonlyMap<PeriodSums, number> {
  const windows = new Map<string, { readonly rows: PeriodSums[]; total: number; samples: number }>()
  const means = new Map<PeriodSums, number>()
  for (const row of sums) {
    const window = windows.get(row.key) ?? { rows: [], total: 0, samples: 0 }
    windows.set(row.key, window)
    window.rows.push(row)
    window.total += row.total
    window.samples += row.samples
    const firstDay = earlier(row.date, every, periods - 1)
    for (let [first] = window.rows; first !== undefined && first.date < firstDay; [first] = window.rows) {
      window.rows.shift()
      window.total -= first.total
      window.samples -= first.samples
    }
    means.set(row, rounded(window.total / window.samples))
  }
  return means
}

/** Returns the first day of the period of a day. */
export function periodOf(day: string, every: Period): string {
  if (every === 'day') return day
  if (every === 'week') return shifted(day, -((new Date(day).getUTCDay() + 6) % 7))
  return every === 'month' ? `${day.slice(0, 7)}-01` : `${day.slice(0, 4)}-01-01`
}

/** Returns the first day of the period that is `by` periods earlier. */
export function earlier(day: string, every: Period, by: number): string {
  if (every === 'day' || every === 'week') return shifted(day, -by * PERIOD_DAYS[every])
  const [year = 0, month = 1] = day.split('-').map(Number)
  const months = every === 'month' ? by : 12 * by
  return new Date(Date.UTC(year, month - 1 - months, 1)).toISOString().slice(0, 10)
}

/** Returns the same period of the year before; undefined for 29 February. */
function yearEarlier(day: string, every: Period): string | undefined {
  if (every === 'week') return shifted(day, -364)
  const before = `${String(Number(day.slice(0, 4)) - 1).padStart(4, '0')}${day.slice(4)}`
  return before.endsWith('-02-29') ? undefined : before
}

/** Returns a day some days later. */
export function shifted(day: string, days: number): string {
  return new Date(Date.parse(day) + days * DAY_MS).toISOString().slice(0, 10)
}

/** Rounds a number to this many decimals, halves up. */
export function rounded(value: number, decimals = 1): number {
  const scale = 10 ** decimals
  return Math.round(value * scale) / scale
}
