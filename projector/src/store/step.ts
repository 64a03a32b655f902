import { conditionOf, type Parameters } from '@gamenet/schemas'
import { eventTableName } from '../events/event-table.js'
import { foldNamed } from '../folds/folds.js'
import type { RowBlock } from '../rows/row-writer.js'
import { operation } from './operation.js'
import {
  type FoldProjection,
  type KeyColumns,
  type KeyCondition,
  type KeySlice,
  type KeyValues,
  type Projection,
  type SqlProjection,
  TOUCHED_KEYS_MAX
} from './projection.js'
import type { Range } from './range.js'

/*
 * The operations of a step: the keys that its events touch, what a fold reads of them, and the rows that it stores.
 */

/** The events that rows are computed from. */
export type StepInput = {
  readonly range: Range
  /** True if the range has events that follow later ones: events of an older epoch, or late events. */
  readonly isLate: boolean
  /** Consumes these keys whole, instead of the range. */
  readonly slice?: KeySlice
  /** Consumes this key whole where the projection has keys; else only the events of this key in the range. */
  readonly key?: KeyCondition
}

/** The keys that the events of a range touch, with their first and last instant; only `*` if there are too many. */
export type Touched = {
  readonly events: number
  readonly keys: readonly { readonly key: string; readonly firstMs: number; readonly lastMs: number }[]
}

/** A key that a range touched. */
export type TouchedKey = {
  /** Its columns' values, in the order of the projection's `key`. */
  readonly values: KeyValues
  readonly sinceMs: number
  readonly weight: number
  /** True if it is read by `readsApart`. */
  readonly isApart?: boolean
}

/**
 * Computes a projection's rows of a range, or of a slice of its keys, and stores them. If it rejects, a part may be
 * stored.
 */
export const makeRows = operation(
  'makes rows',
  async (tables, projection: SqlProjection, { range, isLate, slice, key: only }: StepInput): Promise<void> => {
    const { into, columns, select, selectSlice, selectWhenLate = select, key = {} } = projection
    const whole = selectSlice === undefined ? slice : (slice ?? only)
    const { sql, parameters } = whole === undefined ? conditionOn(range, only) : conditionOfWhole(key, whole)
    const rows =
      whole === undefined
        ? (isLate ? selectWhenLate : select).replaceAll('{range}', sql)
        : (selectSlice ?? '').replaceAll('{slice}', sql)
    await tables.execute(`INSERT INTO ${tables.target(into)} (${columns.join(', ')}) ${rows}`, parameters)
  }
)

/** Stores the rows that a fold has computed, all or none. */
export const storeRows = operation(
  'stores rows',
  async (tables, { into }: FoldProjection, table: string, block: RowBlock): Promise<void> => {
    await tables.insert(table, into[table] ?? [], block)
  }
)

/**
 * Copies whole tables of a fold into those that hold the same rows in another order, by table: in blocks that need
 * little memory, so that a failure may leave a part. Repeating it changes nothing more.
 */
export const copyRows = operation(
  'copies rows',
  async (tables, { into }: FoldProjection, copies: Readonly<Record<string, string>>): Promise<void> => {
    for (const [table, copy] of Object.entries(copies)) {
      const columns = (into[table] ?? []).join(', ')
      const settings = 'max_threads = 2, max_insert_threads = 2, min_insert_block_size_rows = 500000'
      const rows = `SELECT ${columns} FROM ${identifier(table)}`
      await tables.execute(`INSERT INTO ${tables.target(copy)} (${columns}) SETTINGS ${settings} ${rows}`)
    }
  }
)

/** Reads the instants and keys that the events of a range touch. */
export const readTouched = operation(
  'reads the keys of events',
  async (tables, { from, touches }: Pick<Projection, 'from' | 'touches'>, range: Range): Promise<Touched> => {
    const { sql, parameters } = conditionOf(range)
    const [row] = await tables.rows(
      `SELECT sum(k.events) AS events, min(k.first) AS first_ms, max(k.last) AS last_ms,
         groupArray(${TOUCHED_KEYS_MAX + 1})((k.key, toFloat64(k.first), toFloat64(k.last))) AS keys
       FROM (
         SELECT toString(${touches.key}) AS key, count() AS events,
           toUnixTimestamp64Milli(min(e.observed_at)) AS first, toUnixTimestamp64Milli(max(e.observed_at)) AS last
         FROM ${identifier(eventTableName(from))} AS e WHERE ${sql} GROUP BY key) AS k`,
      parameters
    )
    return touchedOf(row)
  }
)

function touchedOf(row: Record<string, unknown> | undefined): Touched {
  const keys = (row?.keys ?? []) as readonly (readonly [string, number, number])[]
  return {
    events: Number(row?.events ?? 0),
    keys:
      keys.length > TOUCHED_KEYS_MAX
        ? [{ key: '*', firstMs: Number(row?.first_ms), lastMs: Number(row?.last_ms) }]
        : keys.map(([key, firstMs, lastMs]) => ({ key, firstMs, lastMs }))
  }
}

/** Keys in the order of a primary key, up to the first one of the next part. */
export type KeyPart = { readonly first: KeyValues; readonly events: number }

/**
 * Divides the keys of a range into parts of about this many events, in the order of keys; a key with more is one part.
 */
export const readParts = operation(
  'reads parts of keys',
  async (tables, { from, key = {} }: Projection, range: Range, size: number): Promise<readonly KeyPart[]> => {
    const columns = columnsOf(key, 'e')
    const { sql, parameters } = conditionOf(range)
    const rows = await tables.rows(
      `SELECT min(k.key) AS first, sum(k.events) AS events
       FROM (
         SELECT tuple(${columns}) AS key, count() AS events,
           intDiv(sum(count()) OVER (ORDER BY ${columns}) - count(), {size: UInt64}) AS n
         FROM ${identifier(eventTableName(from))} AS e WHERE ${sql} GROUP BY ${columns}) AS k
       GROUP BY k.n ORDER BY first`,
      { ...parameters, size }
    )
    return rows.map(({ first, events }) => ({ first: first as KeyValues, events: Number(events) }))
  }
)

/**
 * Reads the keys of a range, each with its earliest instant and, as its weight, its number of events; or all keys of a
 * slice, or the only key, in the table that determines their rows.
 */
export const readKeys = operation(
  'reads keys',
  async (tables, projection: FoldProjection, { range, slice, key: only }: Omit<StepInput, 'isLate'>) => {
    const { from, key, name } = projection
    const whole = slice ?? only
    const { sql, parameters } = whole === undefined ? conditionOn(range) : conditionOfWhole(key, whole)
    const [table, alias, since] =
      whole === undefined
        ? [eventTableName(from), 'e', 'toUnixTimestamp64Milli(min(e.observed_at))']
        : [foldNamed(name).basis.table, 'k', '0']
    const columns = columnsOf(key, alias)
    const rows = await tables.rows(
      `SELECT ${columns}, ${since} AS since_ms, count() AS events
       FROM ${identifier(table)} AS ${alias}
       WHERE ${sql} GROUP BY ${columns} ORDER BY ${columns}`,
      parameters
    )
    return rows.map((row) => ({
      values: valuesOf(projection, row),
      sinceMs: Number(row.since_ms),
      weight: Number(row.events)
    }))
  }
)

/**
 * Reads what folding each key costs, by `weigh`, and which are read by `readsApart`; without the keys that have no
 * rows.
 */
export const readWeights = operation(
  'weighs keys',
  async (tables, projection: FoldProjection, keys: readonly TouchedKey[]) => {
    const { sql, parameters } = withKeys(projection, projection.weigh ?? '', keys)
    const rows = await tables.rows(sql, parameters)
    return rows.map((row) => ({
      values: valuesOf(projection, row),
      weight: Number(row.weight),
      isApart: Boolean(row.is_apart)
    }))
  }
)

/** A statement of a fold, with its name among the projection's reads. */
export type FoldRead = { readonly name: string; readonly sql: string }

/** Reads the rows that a fold needs of keys, as the UTF-8 bytes of a JSON array, one row per line. */
export const readForFold = operation(
  'reads for a fold',
  async (tables, projection: FoldProjection, read: FoldRead, keys: readonly TouchedKey[]): Promise<Uint8Array> => {
    const { sql, parameters } = withKeys(projection, read.sql, keys)
    return await tables.json(sql, parameters)
  }
)

/** Reads the state of the rows that a fold reads of keys: the text changes with new rows, and not with merges. */
export const readBasis = operation(
  'reads the basis of keys',
  async (tables, projection: FoldProjection, keys: readonly TouchedKey[]): Promise<string> => {
    const columns = Object.keys(projection.key).map((column) => `s.${column}`)
    const { table } = foldNamed(projection.name).basis
    const basis = `SELECT count() AS rows, max(s.position) AS newest FROM ${identifier(table)} AS s FINAL
      WHERE (${columns.join(', ')}) IN {keys}`
    const { sql, parameters } = withKeys(projection, basis, keys)
    return JSON.stringify(await tables.rows(sql, parameters))
  }
)

/** A table as statements name it. */
const identifier = (table: string): string => `{${table}: Identifier}`

type Statement = { readonly sql: string; readonly parameters: Parameters }

/** Returns the condition on the events `e` of a range, or on those of one key. */
function conditionOn(range: Range, key?: KeyCondition): Statement {
  const { sql, parameters } = conditionOf(range)
  return { sql: key === undefined ? sql : `${sql} AND ${key('e.')}`, parameters }
}

/**
 * Returns the condition that the key of a row `k` lies in a slice, or is the only one: by columns, because tuples are
 * not searched in the primary key.
 */
function conditionOfWhole(key: KeyColumns, whole: KeySlice | KeyCondition): Statement {
  if (typeof whole === 'function') return { sql: whole('k.'), parameters: {} }
  const { from, to } = whole
  const parameters: Record<string, unknown> = {}
  const begins = (end: 'from' | 'to', values: KeyValues) =>
    Object.entries(key).reduceRight((rest, [column, type], n) => {
      const value = `{${end}_${n}: ${type}}`
      parameters[`${end}_${n}`] = values[n]
      return rest === '' ? `k.${column} >= ${value}` : `k.${column} > ${value} OR k.${column} = ${value} AND (${rest})`
    }, '')
  const conditions = [
    from === undefined ? 'true' : `(${begins('from', from)})`,
    to === undefined ? 'true' : `NOT (${begins('to', to)})`
  ]
  return { sql: `(${conditions.join(' AND ')})`, parameters }
}

function columnsOf(key: KeyColumns, alias: string): string {
  return Object.keys(key)
    .map((column) => `${alias}.${column}`)
    .join(', ')
}

function valuesOf({ key }: FoldProjection, row: Record<string, unknown>): KeyValues {
  return Object.entries(key).map(([column, type]) => (type === 'String' ? String(row[column]) : Number(row[column])))
}

/** A statement of a fold with its keys as parameters: its text is the same for all keys. */
function withKeys({ key }: FoldProjection, sql: string, keys: readonly TouchedKey[]): Statement {
  const columns = Object.entries(key)
  const arrays = columns.map(([column, type]) => `{${column}: Array(${type})}`)
  const parameters: Record<string, unknown> = { since_ms: keys.map(({ sinceMs }) => sinceMs) }
  for (const [n, [column]] of columns.entries()) parameters[column] = keys.map(({ values }) => values[n])
  return {
    sql: sql
      .replaceAll('{keys}', arrays.length === 1 ? arrays.join() : `arrayZip(${arrays.join(', ')})`)
      .replaceAll('{since_ms}', '{since_ms: Array(Int64)}'),
    parameters
  }
}
