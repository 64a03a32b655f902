import { z } from 'zod'
import type { Window } from './series.js'

const WIDTH_MS = { hour: 3_600_000, day: 86_400_000 } as const

export type Rollup = keyof typeof WIDTH_MS

/** A table of counts by key; `<name>_hour` and `<name>_day` are its rollups. */
export type CountTable = {
  readonly name: string
  readonly key: string
  readonly value: string
  /** Whether its rollups have the last count of a bucket. */
  readonly hasLast?: true
}
export const TITLE_COUNTS: CountTable = { name: 'title_count', key: 'title_id', value: 'online' }
export const NETWORK_COUNTS: CountTable = { name: 'network_count', key: 'metric', value: 'value', hasLast: true }

const Ms = z.int().nonnegative()

/** Where {@link rowsSql} reads: buckets up to `bucketMs`, then samples; keys, or none for all. */
export const RowsCut = z.object({ fromMs: Ms, bucketMs: Ms, toMs: Ms, keys: z.array(z.string()) })

/**
 * Divides a window for {@link rowsSql}. The bucket that contains its end is read from the samples, because it may also
 * have samples after now.
 */
export function rowsCut({ fromMs, toMs }: Window, grain: Rollup | 'sample') {
  if (grain === 'sample') return { fromMs, bucketMs: fromMs, toMs }
  return { fromMs, bucketMs: Math.max(fromMs, Math.floor(toMs / WIDTH_MS[grain]) * WIDTH_MS[grain]), toMs }
}

/** Selects buckets of a rollup, then samples, by key. */
export function rowsSql({ name, key, value, hasLast }: CountTable, rollup: Rollup): string {
  const instant = (parameter: string) => `fromUnixTimestamp64Milli({${parameter}: Int64}, 'UTC')`
  const bound = (parameter: string) => (rollup === 'day' ? `toDate(${instant(parameter)})` : instant(parameter))
  const ofKeys = (table: string) => `(empty({keys: Array(String)}) OR ${table}.${key} IN {keys: Array(String)})`
  return `
        SELECT b.${key} AS key, toDateTime(b.${rollup}, 'UTC') AS at, b.min AS lowest, b.max AS highest,
          b.max_at AS highest_at, b.sum AS total, toUInt64(b.samples) AS counted
          ${hasLast ? ', b.last AS last, b.last_at AS last_at' : ''}
        FROM {${name}_${rollup}: Identifier} AS b FINAL
        WHERE ${ofKeys('b')} AND b.${rollup} >= ${bound('fromMs')} AND b.${rollup} < ${bound('bucketMs')}
        UNION ALL
        SELECT c.${key} AS key, toDateTime(c.ts, 'UTC') AS at, c.${value} AS lowest, c.${value} AS highest,
          c.ts AS highest_at, toUInt64(c.${value}) AS total, toUInt64(1) AS counted
          ${hasLast ? `, c.${value} AS last, c.ts AS last_at` : ''}
        FROM {${name}: Identifier} AS c FINAL
        WHERE ${ofKeys('c')} AND c.ts >= ${instant('bucketMs')} AND c.ts < ${instant('toMs')}`
}
