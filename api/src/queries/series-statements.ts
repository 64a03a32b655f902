import { POINTS_MAX } from './series.js'

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

/**
 * Selects the samples of a series, oldest first; no row if there are more than {@link POINTS_MAX}, so that a body of
 * that size is never built ({@link pointCountSql} distinguishes "too many" from "none").
 */
export function samplesSql({ table, value, key, parameter }: SeriesTable, as: string): string {
  return `
    SELECT formatDateTime(c.ts, '%F %T', 'UTC') AS recorded_at, c.${value} AS ${as}
    FROM {${table}: Identifier} AS c FINAL
    WHERE c.${key} = {${parameter}: String}
      AND c.ts >= fromUnixTimestamp64Milli({from: Int64}, 'UTC')
      AND c.ts < fromUnixTimestamp64Milli({to: Int64}, 'UTC')
      AND (
        SELECT count() <= ${POINTS_MAX} FROM (
          SELECT 1 FROM {${table}: Identifier} AS n FINAL
          WHERE n.${key} = {${parameter}: String}
            AND n.ts >= fromUnixTimestamp64Milli({from: Int64}, 'UTC')
            AND n.ts < fromUnixTimestamp64Milli({to: Int64}, 'UTC')
          LIMIT ${POINTS_MAX + 1}
        )
      )
    ORDER BY c.ts`
}

/** Selects the peak of each bucket with a sample: complete hours from the rollup, the edges from the samples. */
export function peaksSql({ table, value, key, parameter }: SeriesTable, as: string): string {
  return `
    SELECT formatDateTime(fromUnixTimestamp(s.bucket), '%F %T', 'UTC') AS recorded_at, max(s.value) AS ${as}
    FROM (
      SELECT intDiv(toUnixTimestamp(h.hour), {width: UInt32}) * {width: UInt32} AS bucket, h.max AS value
      FROM {${table}_hour: Identifier} AS h FINAL
      WHERE h.${key} = {${parameter}: String}
        AND h.hour >= fromUnixTimestamp64Milli({firstHour: Int64}, 'UTC')
        AND h.hour < fromUnixTimestamp64Milli({lastHour: Int64}, 'UTC')
      UNION ALL
      SELECT intDiv(toUnixTimestamp(c.ts), {width: UInt32}) * {width: UInt32} AS bucket, c.${value} AS value
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
