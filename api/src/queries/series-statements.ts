import { MONDAY_SHIFT_SECONDS, POINTS_MAX, WEEK_SECONDS } from './series.js'

/**
 * The table of a series' samples; `<table>_hour` is its rollup by hour. `value` and `key` are columns, `parameter` is
 * the key's.
 */
export type SeriesTable = {
  readonly table: string
  readonly value: string
  readonly key: string
  readonly parameter: string
}

/** Instants as answers in JSON show them, or typed, for files. */
export type Instants = 'shown' | 'typed'

function instantSql(instants: Instants, expression: string): string {
  return instants === 'typed' ? expression : `formatDateTime(${expression}, '%F %T', 'UTC')`
}

/**
 * Selects the samples of a series, oldest first. In JSON no row if there are more than {@link POINTS_MAX}, so that a
 * body of that size is never built ({@link pointCountSql} distinguishes "too many" from "none"); a file may have any
 * number.
 */
export function samplesSql({ table, value, key, parameter }: SeriesTable, as: string, instants: Instants): string {
  const isFew = `
      AND (
        SELECT count() <= ${POINTS_MAX} FROM (
          SELECT 1 FROM {${table}: Identifier} AS n FINAL
          WHERE n.${key} = {${parameter}: String}
            AND n.ts >= fromUnixTimestamp64Milli({from: Int64}, 'UTC')
            AND n.ts < fromUnixTimestamp64Milli({to: Int64}, 'UTC')
          LIMIT ${POINTS_MAX + 1}
        )
      )`
  return `
    SELECT ${instantSql(instants, 'c.ts')} AS recorded_at, c.${value} AS ${as}
    FROM {${table}: Identifier} AS c FINAL
    WHERE c.${key} = {${parameter}: String}
      AND c.ts >= fromUnixTimestamp64Milli({from: Int64}, 'UTC')
      AND c.ts < fromUnixTimestamp64Milli({to: Int64}, 'UTC')${instants === 'typed' ? '' : isFew}
    ORDER BY c.ts`
}

/** Returns the start of the bucket that contains an instant, both in seconds since 1970. */
function bucketSql(seconds: string): string {
  const shift = `if({width: UInt32} = ${WEEK_SECONDS}, ${MONDAY_SHIFT_SECONDS}, 0)`
  return `intDiv(${seconds} + ${shift}, {width: UInt32}) * {width: UInt32} - ${shift}`
}

/**
 * Selects each bucket with a sample: its peak, minimum, mean and number of samples; complete hours from the rollup, the
 * edges from the samples.
 */
export function bucketsSql({ table, value, key, parameter }: SeriesTable, as: string, instants: Instants): string {
  return `
    SELECT
      ${instantSql(instants, 'fromUnixTimestamp(s.bucket)')} AS recorded_at,
      max(s.highest) AS ${as},
      min(s.lowest) AS min,
      ${meanSql('sum(s.total)', 'sum(s.counted)')} AS average,
      toUInt32(sum(s.counted)) AS samples
    FROM (
      SELECT
        ${bucketSql('toUnixTimestamp(h.hour)')} AS bucket,
        h.max AS highest, h.min AS lowest, h.sum AS total, toUInt64(h.samples) AS counted
      FROM {${table}_hour: Identifier} AS h FINAL
      WHERE h.${key} = {${parameter}: String}
        AND h.hour >= fromUnixTimestamp64Milli({firstHour: Int64}, 'UTC')
        AND h.hour < fromUnixTimestamp64Milli({lastHour: Int64}, 'UTC')
      UNION ALL
      SELECT
        ${bucketSql('toUnixTimestamp(c.ts)')} AS bucket,
        c.${value} AS highest, c.${value} AS lowest, toUInt64(c.${value}) AS total, toUInt64(1) AS counted
      FROM {${table}: Identifier} AS c FINAL
      WHERE c.${key} = {${parameter}: String}
        AND (
          (
            c.ts >= fromUnixTimestamp64Milli({from: Int64}, 'UTC')
            AND c.ts < fromUnixTimestamp64Milli({firstHour: Int64}, 'UTC')
          ) OR (
            c.ts >= fromUnixTimestamp64Milli({lastHour: Int64}, 'UTC')
            AND c.ts < fromUnixTimestamp64Milli({to: Int64}, 'UTC')
          )
        )
    ) AS s
    GROUP BY s.bucket
    ORDER BY s.bucket`
}

/** Returns the mean of samples, one decimal, halves up. */
export function meanSql(total: string, counted: string): string {
  return `intDiv(${total} * 20 + ${counted}, ${counted} * 2) / 10`
}

/** Counts the points of a series, up to one above the limit. Width 1 ms means the samples themselves. */
export function pointCountSql({ table, key, parameter }: SeriesTable): string {
  return `
    SELECT toUInt32(count()) AS points
    FROM (
      SELECT DISTINCT intDiv(toUnixTimestamp64Milli(c.ts), {widthMs: UInt64}) AS bucket
      FROM {${table}: Identifier} AS c
      WHERE c.${key} = {${parameter}: String}
        AND c.ts >= fromUnixTimestamp64Milli({from: Int64}, 'UTC')
        AND c.ts < fromUnixTimestamp64Milli({to: Int64}, 'UTC')
      LIMIT ${POINTS_MAX + 1}
    )`
}
