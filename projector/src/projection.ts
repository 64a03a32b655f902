import type { Topic } from '@gamenet/schemas'
import { eventTableName } from './event-table.js'
import { conditionOf, type Range } from './range.js'
import type { Parameters } from './tables.js'

/**
 * One step from a range of an event table to a read table: data, no client, no clock. Live, catch-up and rebuild run the same
 * statement over different ranges.
 *
 * What every projection keeps to, so that any range may run twice, in any order of partitions, after any crash:
 * - A row's version is made of the facts it was made of (a position, or instant and position), never of the run.
 *   Events of one key stand in one partition of an epoch, in order, so that their positions are comparable; when a topic gets
 *   more partitions its epoch rises, and with it every later position.
 * - A rollup recomputes the touched buckets whole, from the winning base rows, and its version is their newest position.
 *   A new event in a bucket is the newest of its key, so it always wins its instant and always raises that version.
 *   Where the version stays (an older epoch's event arrives after a newer one's, or a half-stored step is repeated), the
 *   row made last counts: ReplacingMergeTree keeps the last inserted of equal versions, and that one saw more.
 */
export type Projection = {
  readonly name: string
  readonly from: Topic
  /** The read table, and its columns in the order of `select`. */
  readonly into: string
  readonly columns: readonly string[]
  /** The projection whose table `select` reads: this one never goes ahead of it. */
  readonly after?: string
  /** The rows that events `e` of the range make. `{range}` stands for the condition on `e`. */
  readonly select: string
  /** What a step changed: the key of an event `e`, and the width in ms of the bucket that its instant lies in. */
  readonly touches: { readonly key: string; readonly bucketMs: number }
}

/** Width of a bucket that is just the instant. */
export const INSTANT_MS = 1
export const HOUR_MS = 3_600_000
export const DAY_MS = 86_400_000

/** A statement with the values bound to it. */
export type Statement = { readonly sql: string; readonly parameters: Parameters }

/** Makes the projection's rows of a range. */
export function stepStatement({ into, columns, select }: Projection, range: Range): Statement {
  const { sql, parameters } = conditionOf(range)
  return { sql: `INSERT INTO ${into} (${columns.join(', ')}) ${select.replaceAll('{range}', sql)}`, parameters }
}

/** Asks which instants and keys the events of a range are about: `events, first_ms, last_ms, first_key, last_key`. */
export function touchedStatement({ from, touches }: Projection, range: Range): Statement {
  const { sql, parameters } = conditionOf(range)
  return {
    sql: `SELECT count() AS events,
        toUnixTimestamp64Milli(min(e.observed_at)) AS first_ms, toUnixTimestamp64Milli(max(e.observed_at)) AS last_ms,
        min(toString(${touches.key})) AS first_key, max(toString(${touches.key})) AS last_key
      FROM ${eventTableName(from)} AS e WHERE ${sql}`,
    parameters
  }
}
