import { type Topic, tablesIn } from '@gamenet/schemas'

/**
 * One step from a range of an event table to read tables: data, no client, no clock. Live, catch-up and rebuild run the
 * same statements over different ranges. Two forms: `sql`, one statement; or `fold`, one pure function over the facts
 * of each touched key, for what would take quadratic time in SQL.
 *
 * Statements name a table as `{title_count: Identifier}`: its generation differs between live steps and a rebuild.
 *
 * Rules of every projection, so that any range may run twice, in any order of partitions, after any crash:
 * - A row's version depends on its facts (a position, or instant and position), never on the run. Events of one key are
 *   in one partition of an epoch, in order, so their positions are comparable; when a topic gets more partitions its
 *   epoch rises, and with it every later position.
 * - A rollup recomputes the touched buckets completely, from the winning base rows; its version is their newest
 *   position. A new event in a bucket is the newest of its key, so it always wins its instant and raises that version.
 *   If the version stays (an older epoch's event arrives after a newer one's, or a half-stored step is repeated), the
 *   last row counts: ReplacingMergeTree keeps the last inserted of equal versions, which was computed from more events.
 */
export type Projection = SqlProjection | FoldProjection

type Common = {
  readonly name: string
  /**
   * Raised with each change of the statements, and of the fold: tables that a lower version has filled are rebuilt.
   * `statements.json` has the versions, with the hashes of the statements. Default: 1.
   */
  readonly version?: number
  readonly from: Topic
  /** The projection whose table this one reads. This projection never overtakes it. */
  readonly after?: string
  /**
   * The columns of the events and, first in its primary key, of the table that a slice is read from. With a key, a
   * rebuild fills slices of keys, each key once and whole: each range of the log would compute the same keys again.
   */
  readonly key?: KeyColumns
  readonly touches: Touches
  /**
   * By table, the condition on a void row `r`: it remains at a position from which a later event has moved its change.
   * Void rows depend on the order of arrival, so a rebuild may lack them.
   */
  readonly voids?: Readonly<Record<string, string>>
}

/** What a step changes: the key of an event `e`, and the width in ms of the bucket that contains its instant. */
export type Touches = {
  readonly key: string
  readonly bucketMs: number
  /** Distance before and after the bucket that the change affects too, in ms. Default: 0. */
  readonly reachMs?: number
  /** True if everything after the instant changes too, such as ranks; else only the bucket. */
  readonly isLasting?: boolean
}

/** A projection as one SQL statement. */
export type SqlProjection = Common & {
  readonly form?: 'sql'
  /** The read table, and its columns in the order of `select`. */
  readonly into: string
  readonly columns: readonly string[]
  /** The rows of the events `e` of the range. `{range}` stands for the condition on `e`. */
  readonly select: string
  /** With a `key`: the rows of a slice of keys. `{slice}` stands for the condition on the rows `k` that it reads. */
  readonly selectSlice?: string
  /**
   * Replaces `select` for a range with events before already consumed ones, if these can lower the version of `select`,
   * so that the stored row would win. Its version is at least the stored one.
   */
  readonly selectWhenLate?: string
}

/**
 * A projection as a pure function over the reads of the touched keys, listed in `folds.ts` under the projection's name.
 * Keys are processed in chunks; each chunk is read, folded and stored separately.
 *
 * In a statement `{keys}` is the array of the chunk's keys (tuples for a key of several columns; on the right side of
 * IN, so that the primary key is used) and `{since_ms}` the parallel array of the earliest instants of the range's
 * events per key. The values of a single key column are an array parameter with the column's name.
 */
export type FoldProjection = Common & {
  readonly form: 'fold'
  /** Its columns have the order of `{keys}`. */
  readonly key: KeyColumns
  /** The written tables in the order of writing, with their columns in the order of the fold's values. */
  readonly into: Readonly<Record<string, readonly string[]>>
  /** Selects the key columns and `weight`, the number of rows to fold a key. Default: its events in the range. */
  readonly weigh?: string
  /** Replaces the entries of `reads` with the same names for keys that `weigh` sets apart by a column `is_apart`. */
  readonly readsApart?: Readonly<Record<string, string>>
  /** The reads of a chunk: a name for the fold, and a statement. */
  readonly reads: Readonly<Record<string, string>>
  /** Additional reads for a range with events before already consumed ones, which may undo stored rows. */
  readonly readsWhenLate?: Readonly<Record<string, string>>
}

/** Width of a bucket that is a single instant. */
export const INSTANT_MS = 1
export const HOUR_MS = 3_600_000
export const DAY_MS = 86_400_000

/** More touched keys in a step are announced as one `*`. */
export const TOUCHED_KEYS_MAX = 50

/** The columns of a key, with their types. */
export type KeyColumns = Readonly<Record<string, 'String' | 'UInt32'>>

/** The values of a key's columns. */
export type KeyValues = readonly (string | number)[]

/**
 * The keys from one on, up to another one: a slice is read as one range of a primary key. Without an end, all on that
 * side.
 */
export type KeySlice = { readonly from?: KeyValues | undefined; readonly to?: KeyValues | undefined }

/** The condition that an event, or a row, is of one key: by the prefix of its columns in a statement, such as `e.`. */
export type KeyCondition = (prefix: string) => string

/**
 * Returns the columns of a projection's key, which its events and all its tables have; none if a row may be of several
 * keys.
 */
export function keyColumnsOf(projection: Projection): readonly string[] {
  const columns = [...projection.touches.key.matchAll(/\be\.(\w+)/g)].map(([, column = '']) => column)
  const tables = projection.form === 'fold' ? Object.values(projection.into) : [projection.columns]
  return columns.every((column) => tables.every((each) => each.includes(column))) ? columns : []
}

/** Returns the tables that a projection writes. */
export function tablesOf(projection: Projection): readonly string[] {
  return projection.form === 'fold' ? Object.keys(projection.into) : [projection.into]
}

/** Returns the tables that a projection's statements read, including its own. */
export function readsOf(projection: Projection): readonly string[] {
  if (projection.form !== 'fold') return tablesIn(projection.select)
  const { weigh = '', reads, readsApart = {}, readsWhenLate = {} } = projection
  return tablesIn([weigh, ...[reads, readsApart, readsWhenLate].flatMap((each) => Object.values(each))].join('\n'))
}

/** Returns the other projections whose tables this one reads. */
export function sourcesOf(projections: readonly Projection[], projection: Projection): readonly Projection[] {
  const reads = new Set(readsOf(projection))
  return projections.filter(
    (each) =>
      each !== projection && (each.name === projection.after || tablesOf(each).some((table) => reads.has(table)))
  )
}

/** Returns these projections and all that read their tables, directly or not, in the order of the fill. */
export function withDependents(projections: readonly Projection[], names: ReadonlySet<string>): readonly Projection[] {
  const unit = new Set(names)
  // A projection that reads another one's table is listed after it.
  for (const each of projections) {
    if (sourcesOf(projections, each).some(({ name }) => unit.has(name))) unit.add(each.name)
  }
  return projections.filter(({ name }) => unit.has(name))
}

/** Returns these projections and all whose tables they read, directly or not. */
export function withSources(projections: readonly Projection[], names: ReadonlySet<string>): readonly Projection[] {
  const unit = new Set(names)
  for (const each of projections.toReversed()) {
    if (!unit.has(each.name)) continue
    for (const source of sourcesOf(projections, each)) unit.add(source.name)
  }
  return projections.filter(({ name }) => unit.has(name))
}
