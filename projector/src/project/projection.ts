import type { Topic } from '@gamenet/schemas'
import { tablesIn } from '../store/operation.js'

/**
 * One step from a range of an event table to read tables: data, no client, no clock. Live, catch-up and rebuild run the same
 * statements over different ranges. Two forms: `sql`, one statement; or `fold`, the facts of each touched key through one
 * pure function, for what SQL could only do in quadratic time.
 *
 * Statements say `{title_count: Identifier}` for a table: which one stands for it differs between the tables that serve and a rebuild's.
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
export type Projection = SqlProjection | FoldProjection

type Common = {
  readonly name: string
  readonly from: Topic
  /** The projection whose table this one reads: it never goes ahead of that one. */
  readonly after?: string
  readonly touches: Touches
  /**
   * By table, the condition on a row `r` that says nothing: left where a later event took back what was told. Whether there is
   * one depends on the order in which events came, so that a rebuild may lack it.
   */
  readonly voids?: Readonly<Record<string, string>>
}

/** What a step changed: the key of an event `e`, and the width in ms of the bucket that its instant lies in. */
export type Touches = {
  readonly key: string
  readonly bucketMs: number
  /** How far before and behind the bucket its change is felt too, in ms; else not at all. */
  readonly reachMs?: number
  /** True where what comes after the instant is changed too, such as ranks; else the bucket alone is. */
  readonly isLasting?: boolean
}

/** A projection as one SQL statement. */
export type SqlProjection = Common & {
  readonly form?: 'sql'
  /** The read table, and its columns in the order of `select`. */
  readonly into: string
  readonly columns: readonly string[]
  /** The rows that events `e` of the range make. `{range}` stands for the condition on `e`. */
  readonly select: string
  /**
   * In place of `select` when the range holds events that come behind later ones: where these can lower the version that
   * `select` makes, so that what is stored would win. It gives at least the version that is stored.
   */
  readonly selectWhenLate?: string
}

/**
 * A projection as a pure function over what statements read of the keys that a range touched; it stands in `folds.ts`
 * under the name `fold`, the projection's own unless given: a function that says something else gets another name, and the one
 * before stays until no installation runs it any more. Keys are taken in chunks, each chunk read, folded and stored by itself.
 *
 * A statement says `{keys}` for the array of the chunk's keys (tuples where a key has several columns; to the right of IN,
 * so that the primary key is used) and `{since_ms}` for the array beside it: the earliest instant of the range's events of each
 * key. The values of one key column are an array parameter of the column's name.
 */
export type FoldProjection = Common & {
  readonly form: 'fold'
  readonly fold?: string
  /** The columns of the event table that make a key, with their types, in the order of `{keys}`. */
  readonly key: Readonly<Record<string, 'String' | 'UInt32'>>
  /** The tables written, in the order in which they are written, with their columns in the order of the fold's values. */
  readonly into: Readonly<Record<string, readonly string[]>>
  /** Gives the key columns and `weight`, the rows that folding a key costs; absent: its events in the range. */
  readonly weigh?: string
  /** Read in place of those of `reads` with the same names for keys that `weigh` sets apart by a column `is_apart`. */
  readonly readsApart?: Readonly<Record<string, string>>
  /** What is read for a chunk: a name for the fold, a statement. */
  readonly reads: Readonly<Record<string, string>>
  /** Read too when the range holds events that come behind later ones, which may undo what was stored. */
  readonly readsWhenLate?: Readonly<Record<string, string>>
}

/** Width of a bucket that is just the instant. */
export const INSTANT_MS = 1
export const HOUR_MS = 3_600_000
export const DAY_MS = 86_400_000

/** More touched keys than this in a step are told as one `*`. */
export const TOUCHED_KEYS_MAX = 50

/** The n-th of so many parts of all keys, by a hash: each key is in one of them. */
export type KeySlice = { readonly n: number; readonly of: number }

/** The tables that a projection writes. */
export function tablesOf(projection: Projection): readonly string[] {
  return projection.form === 'fold' ? Object.keys(projection.into) : [projection.into]
}

/** The tables that a projection's statements read, its own among them where it does. */
export function readsOf(projection: Projection): readonly string[] {
  if (projection.form !== 'fold') return tablesIn(projection.select)
  const { weigh = '', reads, readsApart = {}, readsWhenLate = {} } = projection
  return tablesIn([weigh, ...[reads, readsApart, readsWhenLate].flatMap((each) => Object.values(each))].join('\n'))
}
