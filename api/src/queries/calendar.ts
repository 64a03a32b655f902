import { Count, type Period, TitleId } from '@gamenet/schemas'
import { z } from 'zod'
import { query } from './query.js'
import { meanSql } from './series-statements.js'

/*
 * period      a day, week (from Monday), month or year of a time zone; named by its first day
 * grain       the rows that a period is summed from: UTC days, UTC hours, or samples. In a zone whose offset is not a whole number
 *             of hours, no period begins with an hour of UTC
 */

/** The rows that a calendar is summed from. */
export const GRAINS = ['day', 'hour', 'sample'] as const
export type Grain = (typeof GRAINS)[number]

const Ms = z.int().nonnegative()

/** A window of whole local days: instants that contain it, and its days. */
const LocalDays = z.object({ fromMs: Ms, toMs: Ms, firstDay: z.iso.date(), endDay: z.iso.date(), tz: z.string() })

type Table = { readonly name: string; readonly key: string; readonly value: string }
const TITLES: Table = { name: 'title_count', key: 'title_id', value: 'online' }
const NETWORK: Table = { name: 'network_count', key: 'metric', value: 'value' }

/** Selects the rows of a window by key, with the local instant at which they begin; `keys` empty: all. */
function rowsSql({ name, key, value }: Table, grain: Grain): string {
  const [table, at, statistics] =
    grain === 'sample'
      ? [
          name,
          'r.ts',
          `r.${value} AS lowest, r.${value} AS highest, r.ts AS highest_at, toUInt64(r.${value}) AS total, toUInt64(1) AS counted`
        ]
      : [
          `${name}_${grain}`,
          grain === 'day' ? `toDateTime(r.day, 'UTC')` : 'r.hour',
          'r.min AS lowest, r.max AS highest, r.max_at AS highest_at, r.sum AS total, toUInt64(r.samples) AS counted'
        ]
  return `
      SELECT r.${key} AS key, toTimeZone(${at}, {tz: String}) AS local, ${statistics}
      FROM {${table}: Identifier} AS r FINAL
      WHERE (empty({keys: Array(String)}) OR r.${key} IN {keys: Array(String)})
        AND ${grain === 'day' ? 'r.day' : at} >= ${boundSql('fromMs', grain)}
        AND ${grain === 'day' ? 'r.day' : at} < ${boundSql('toMs', grain)}
        AND toDate(local) >= {firstDay: Date} AND toDate(local) < {endDay: Date}`
}

function boundSql(name: string, grain: Grain): string {
  const instant = `fromUnixTimestamp64Milli({${name}: Int64}, 'UTC')`
  return grain === 'day' ? `toDate(${instant})` : instant
}

const PERIOD_SQL: Readonly<Record<Period, string>> = {
  day: 'toDate(s.local)',
  week: 'toMonday(s.local)',
  month: 'toStartOfMonth(s.local)',
  year: 'toStartOfYear(s.local)'
}

const Keys = LocalDays.extend({ keys: z.array(z.string()) })

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
export function periodSums(of: 'titles' | 'network', grain: Grain, period: Period) {
  return query({
    params: Keys,
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
    FROM (${rowsSql(of === 'titles' ? TITLES : NETWORK, grain)}
    ) AS s
    GROUP BY key, date
    ORDER BY date, key`
  })
}

/**
 * Returns the query of each hour of the week: each week has one mean, so that a week with a denser collector counts as much
 * as any other.
 */
export function hourMatrix(of: 'titles' | 'network', grain: Exclude<Grain, 'day'>) {
  return query({
    params: Keys,
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
      FROM (${rowsSql(of === 'titles' ? TITLES : NETWORK, grain)}
      ) AS s
      GROUP BY week, weekday, hour
    ) AS w
    GROUP BY weekday, hour
    ORDER BY weekday, hour`
  })
}

/** Returns the query of the rank of one title among all by the mean of each period. */
export function periodRanks(grain: Grain, period: Period) {
  return query({
    params: Keys.extend({ titleId: TitleId }),
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
      FROM (${rowsSql(TITLES, grain)}
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

/** Returns the query of totals before `toMs`: from the rollup up to its bucket that contains `toMs`, then from the samples. */
function totalsSql({ name, key, value }: Table, rollup: 'day' | 'hour'): string {
  return `
    SELECT
      r.key AS key,
      max((r.highest, -toUnixTimestamp64Milli(r.highest_at))) AS top,
      top.1 AS peak,
      toFloat64(-top.2) AS peakAtMs,
      ${meanSql('sum(r.total)', 'sum(r.counted)')} AS average,
      toFloat64(sum(r.counted)) AS samples,
      toString(min(r.date)) AS firstDay,
      toString(max(r.date)) AS lastDay
    FROM (
      SELECT b.${key} AS key, b.max AS highest, b.max_at AS highest_at, b.sum AS total, toUInt64(b.samples) AS counted,
        toDate(b.${rollup}) AS date
      FROM {${name}_${rollup}: Identifier} AS b FINAL
      WHERE b.${rollup} < ${boundSql('bucketMs', rollup)}
      UNION ALL
      SELECT c.${key} AS key, c.${value} AS highest, c.ts AS highest_at, toUInt64(c.${value}) AS total, 1 AS counted,
        toDate(c.ts) AS date
      FROM {${name}: Identifier} AS c FINAL
      WHERE c.ts >= ${boundSql('bucketMs', 'sample')} AND c.ts < ${boundSql('toMs', 'sample')}
    ) AS r
    GROUP BY key
    ORDER BY peak DESC, key`
}

const Until = z.object({ bucketMs: Ms, toMs: Ms })

/** Selects the totals of each title over its history before `toMs`, highest peak first. */
export const titleTotals = query({ params: Until, row: Total, sql: totalsSql(TITLES, 'day') })

/** Selects the totals of each metric of the network over its history before `toMs`. */
export const networkTotals = query({ params: Until, row: Total, sql: totalsSql(NETWORK, 'hour') })
