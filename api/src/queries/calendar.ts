import { Count, type Period, TitleId } from '@gamenet/schemas'
import { z } from 'zod'
import { type CountTable, NETWORK_COUNTS, type Rollup, RowsCut, rowsSql, TITLE_COUNTS } from './count-rows.js'
import { query } from './query.js'
import { meanSql } from './series-statements.js'

/*
 * period      a day, week (from Monday), month or year of a time zone; named by its first day
 * grain       the rows that a period is summed from: UTC days, UTC hours, or samples. In a zone whose offset is not a
 *             whole number of hours, no period begins with an hour of UTC
 */

export type Grain = Rollup | 'sample'

const Ms = z.int().nonnegative()

/** A window of whole local days: instants that contain it, and its days. */
const LocalDays = RowsCut.extend({ firstDay: z.iso.date(), endDay: z.iso.date(), tz: z.string() })

/** Selects the rows of local days by key, with the local instant at which they begin. */
function localRowsSql(of: CountTable, rollup: Rollup): string {
  return `
      SELECT r.*, toTimeZone(r.at, {tz: String}) AS local
      FROM (${rowsSql(of, rollup)}
      ) AS r
      WHERE toDate(local) >= {firstDay: Date} AND toDate(local) < {endDay: Date}`
}

const PERIOD_SQL: Readonly<Record<Period, string>> = {
  day: 'toDate(s.local)',
  week: 'toMonday(s.local)',
  month: 'toStartOfMonth(s.local)',
  year: 'toStartOfYear(s.local)'
}

/** The sums of one period. */
export type PeriodSums = z.infer<typeof PeriodSums>
const PeriodSums = z.object({
  key: z.string(),
  date: z.iso.date(),
  peak: Count,
  peakAtMs: Ms,
  min: Count,
  average: z.number().nonnegative(),
  total: z.number().nonnegative(),
  samples: z.int().positive()
})

/** Returns the query of the sums of periods by key, oldest first. Totals are Float64: exact below 2^53. */
export function periodSums(of: 'titles' | 'network', period: Period) {
  return query({
    params: LocalDays,
    row: PeriodSums,
    sql: `
    SELECT
      s.key AS key,
      toString(${PERIOD_SQL[period]}) AS date,
      max((s.highest, -toUnixTimestamp64Milli(s.highest_at))) AS top,
      top.1 AS peak,
      toFloat64(-top.2) AS peakAtMs,
      min(s.lowest) AS min,
      ${meanSql('sum(s.total)', 'sum(s.counted)')} AS average,
      toFloat64(sum(s.total)) AS total,
      toUInt32(sum(s.counted)) AS samples
    FROM (${localRowsSql(of === 'titles' ? TITLE_COUNTS : NETWORK_COUNTS, 'hour')}
    ) AS s
    GROUP BY key, date
    ORDER BY date, key`
  })
}

/**
 * Returns the query of each hour of the week: each week has one mean, so that a week with a denser collector counts as
 * much as any other.
 */
export function hourMatrix(of: 'titles' | 'network') {
  return query({
    params: LocalDays,
    row: z.object({
      weekday: z.int(),
      hour: z.int(),
      average: z.number(),
      spread: z.number(),
      lowest: z.number(),
      highest: z.number(),
      weeks: z.int()
    }),
    sql: `
    SELECT
      w.weekday AS weekday,
      w.hour AS hour,
      avg(w.mean) AS average,
      stddevPop(w.mean) AS spread,
      min(w.mean) AS lowest,
      max(w.mean) AS highest,
      toUInt32(count()) AS weeks
    FROM (
      SELECT
        toMonday(s.local) AS week,
        toDayOfWeek(s.local) AS weekday,
        toHour(s.local) AS hour,
        sum(s.total) / sum(s.counted) AS mean
      FROM (${localRowsSql(of === 'titles' ? TITLE_COUNTS : NETWORK_COUNTS, 'hour')}
      ) AS s
      GROUP BY week, weekday, hour
    ) AS w
    GROUP BY weekday, hour
    ORDER BY weekday, hour`
  })
}

/** Returns the query of the rank of one title among all by the mean of each period. */
export function periodRanks(rollup: Rollup, period: Period) {
  return query({
    params: LocalDays.extend({ titleId: TitleId }),
    row: z.object({
      date: z.iso.date(),
      rank: z.int().positive(),
      titles: z.int().positive(),
      average: z.number().nonnegative()
    }),
    sql: `
    SELECT
      p.date AS date,
      toUInt32(1 + arrayCount(mean -> mean > own_mean, groupArray(p.total / p.counted))) AS rank,
      toUInt32(count()) AS titles,
      ${meanSql('sumIf(p.total, p.key = {titleId: String})', 'sumIf(p.counted, p.key = {titleId: String})')} AS average,
      anyIf(p.total / p.counted, p.key = {titleId: String}) AS own_mean
    FROM (
      SELECT s.key AS key, toString(${PERIOD_SQL[period]}) AS date, sum(s.total) AS total, sum(s.counted) AS counted
      FROM (${localRowsSql(TITLE_COUNTS, rollup)}
      ) AS s
      GROUP BY key, date
    ) AS p
    GROUP BY p.date
    HAVING countIf(p.key = {titleId: String}) > 0
    ORDER BY date`
  })
}

const Total = z.object({
  key: z.string(),
  peak: Count,
  peakAtMs: Ms,
  average: z.number().nonnegative(),
  samples: z.int().positive(),
  firstDay: z.iso.date(),
  lastDay: z.iso.date()
})

/** Returns the query of totals. */
function totals(of: CountTable, rollup: Rollup) {
  return query({
    params: RowsCut,
    row: Total,
    sql: `
    SELECT
      r.key AS key,
      max((r.highest, -toUnixTimestamp64Milli(r.highest_at))) AS top,
      top.1 AS peak,
      toFloat64(-top.2) AS peakAtMs,
      ${meanSql('sum(r.total)', 'sum(r.counted)')} AS average,
      toFloat64(sum(r.counted)) AS samples,
      toString(toDate(min(r.at))) AS firstDay,
      toString(toDate(max(r.at))) AS lastDay
    FROM (${rowsSql(of, rollup)}
    ) AS r
    GROUP BY key
    ORDER BY peak DESC, key`
  })
}

/** Selects the totals of each title over its history, highest peak first. */
export const titleTotals = totals(TITLE_COUNTS, 'day')

/** Selects the totals of each metric of the network over its history. */
export const networkTotals = totals(NETWORK_COUNTS, 'hour')
