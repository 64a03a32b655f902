import { z } from 'zod'
import { firstUnknown, knownEvents, knownUndone } from './known-events.js'
import { query, within } from './query.js'
import { HourCut, MONDAY_SHIFT_SECONDS, POINTS_MAX, WEEK_SECONDS } from './series.js'

/**
 * The table of a series' samples; `<table>_hour` is its rollup by hour. `value` and `key` are columns, `parameter` is
 * the key's.
 */
export type SeriesTable = {
  readonly table: string
  readonly value: string
  readonly key: string
  readonly parameter: string
  /** Replaces the table; its rollup is not read for the hours from `{knownFrom}` to `{knownTo}`. */
  readonly rows?: string
}

function fromSql({ table, rows }: SeriesTable, alias: string, final = ' FINAL'): string {
  return rows === undefined ? `{${table}: Identifier} AS ${alias}${final}` : `${rows} AS ${alias}`
}

const Ms = z.int().nonnegative()
const KNOWN = { knownAt: Ms.exactOptional(), knownFrom: Ms.exactOptional(), knownTo: Ms.exactOptional() }

/**
 * Returns the queries of a series, in JSON and for files, and under `known` those from what was known at `{knownAt}`.
 * `series.event` is the value of an event `e`.
 */
export function seriesQueries<Key extends z.ZodRawShape, Row>(
  series: KnownSeries,
  key: Key,
  row: z.ZodType<Row>,
  as: keyof Row & string
) {
  return {
    ...queriesOf(series, key, row, as),
    known: {
      ...queriesOf({ ...series, rows: knownRows(series) }, key, row, as),
      changed: query({
        params: z.object({ ...key, from: Ms, to: Ms, knownAt: Ms }),
        row: z.object({ firstMs: Ms.nullable(), lastMs: Ms.nullable() }),
        sql: changedSql(series)
      })
    }
  }
}

function queriesOf<Key extends z.ZodRawShape, Row>(
  series: SeriesTable,
  key: Key,
  row: z.ZodType<Row>,
  as: keyof Row & string
) {
  const samples = z.object({ ...key, from: Ms, to: Ms, ...KNOWN })
  const buckets = z.object({ ...samples.shape, ...HourCut.shape, width: z.int().positive() })
  const ofInstants = (instants: Instants) => ({
    samples: query({ params: samples, row, sql: samplesSql(series, as, instants) }),
    buckets: query({ params: buckets, row, sql: bucketsSql(series, as, instants) })
  })
  return {
    shown: ofInstants('shown'),
    typed: ofInstants('typed'),
    points: query({
      params: z.object({ ...samples.shape, widthMs: z.int().positive() }),
      row: z.object({ points: z.int().nonnegative() }),
      sql: pointCountSql(series)
    })
  }
}

type KnownSeries = SeriesTable & { readonly table: 'title_count' | 'network_count'; readonly event: string }

function ofEvents({ table, key, parameter, event }: KnownSeries, from: string, to: string): string {
  const ofKey = table === 'title_count' ? `e.${key} = {${parameter}: String} AND ` : ''
  return `${ofKey}${event} IS NOT NULL AND ${within('e.observed_at', from, to)}`
}

/**
 * Selects the first and the last instant of a window at which the tables differ from what was known; null if they do
 * not.
 */
function changedSql(series: KnownSeries): string {
  const { table, key, parameter } = series
  return `
    SELECT toFloat64(toUnixTimestamp64Milli(minOrNull(c.ts))) AS firstMs,
      toFloat64(toUnixTimestamp64Milli(maxOrNull(c.ts))) AS lastMs
    FROM (
      SELECT d.ts AS ts FROM {${table}: Identifier} AS d
      WHERE d.${key} = {${parameter}: String} AND ${within('d.ts', 'from', 'to')}
        AND d.position >= ${firstUnknown(table, ofEvents(series, 'from', 'to'))}
      UNION ALL${knownUndone(table, 'e.observed_at AS ts', ofEvents(series, 'from', 'to'))}
    ) AS c`
}

/**
 * Returns the rows of a series as they were known: from `{knownFrom}` to `{knownTo}` computed from events; the
 * newest event of an instant counts.
 */
function knownRows(series: KnownSeries): string {
  const { table, key, parameter, value, event } = series
  const columns = `e.observed_at AS ts, assumeNotNull(${event}) AS value, e.position AS position`
  return `(
      SELECT r.${key} AS ${key}, r.ts AS ts, r.${value} AS ${value}
      FROM {${table}: Identifier} AS r FINAL
      WHERE r.${key} = {${parameter}: String} AND NOT ${within('r.ts', 'knownFrom', 'knownTo')}
      UNION ALL
      SELECT {${parameter}: String} AS ${key}, k.ts AS ts, argMax(k.value, k.position) AS ${value}
      FROM (${knownEvents(table, columns, ofEvents(series, 'knownFrom', 'knownTo'))}
      ) AS k
      GROUP BY k.ts)`
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
function samplesSql(series: SeriesTable, as: string, instants: Instants): string {
  const { value, key, parameter } = series
  const isFew = `
      AND (
        SELECT count() <= ${POINTS_MAX} FROM (
          SELECT 1 FROM ${fromSql(series, 'n')}
          WHERE n.${key} = {${parameter}: String}
            AND ${within('n.ts', 'from', 'to')}
          LIMIT ${POINTS_MAX + 1}
        )
      )`
  if (series.rows !== undefined && instants === 'shown') {
    const counted = `(
      SELECT *, count() OVER () AS all FROM (${samplesSql(series, value, 'typed')}
      ) AS s)`
    return `
    SELECT ${instantSql(instants, 'c.recorded_at')} AS recorded_at, c.${value} AS ${as}
    FROM ${counted} AS c
    WHERE c.all <= ${POINTS_MAX}
    ORDER BY c.recorded_at`
  }
  return `
    SELECT ${instantSql(instants, 'c.ts')} AS recorded_at, c.${value} AS ${as}
    FROM ${fromSql(series, 'c')}
    WHERE c.${key} = {${parameter}: String}
      AND ${within('c.ts', 'from', 'to')}${instants === 'typed' ? '' : isFew}
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
function bucketsSql(series: SeriesTable, as: string, instants: Instants): string {
  const { table, value, key, parameter, rows } = series
  const isKnown = (ts: string) => within(ts, 'knownFrom', 'knownTo')
  const ofHours = rows === undefined ? '' : `AND NOT ${isKnown('h.hour')}`
  const orKnown = rows === undefined ? '' : ` OR (${isKnown('c.ts')} AND ${within('c.ts', 'from', 'to')})`
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
        AND ${within('h.hour', 'firstHour', 'lastHour')} ${ofHours}
      UNION ALL
      SELECT
        ${bucketSql('toUnixTimestamp(c.ts)')} AS bucket,
        c.${value} AS highest, c.${value} AS lowest, toUInt64(c.${value}) AS total, toUInt64(1) AS counted
      FROM ${fromSql(series, 'c')}
      WHERE c.${key} = {${parameter}: String}
        AND (
          ${within('c.ts', 'from', 'firstHour')} OR ${within('c.ts', 'lastHour', 'to')}${orKnown}
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
function pointCountSql(series: SeriesTable): string {
  const { key, parameter } = series
  return `
    SELECT toUInt32(count()) AS points
    FROM (
      SELECT DISTINCT intDiv(toUnixTimestamp64Milli(c.ts), {widthMs: UInt64}) AS bucket
      FROM ${fromSql(series, 'c', '')}
      WHERE c.${key} = {${parameter}: String}
        AND ${within('c.ts', 'from', 'to')}
      LIMIT ${POINTS_MAX + 1}
    )`
}
