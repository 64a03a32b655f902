import type { Topic } from '@gamenet/schemas'
import { eventTableName } from '../events/event-table.js'
import type { Progress } from './checkpoint.js'
import { operation } from './operation.js'
import type { KeyCondition } from './projection.js'

/*
 * Compares two tables: rows are divided into buckets by their key; a hash per bucket shows which differ. Names of
 * tables are the engine's.
 */

/** A compared table: its written columns, except the one that decides which of two rows counts. */
export type Shape = {
  readonly key: readonly string[]
  readonly values: readonly string[]
  /** The hash of a row `r`. */
  readonly hash: string
}

/** Rows `r` that a side may lack: those of a condition, or events that the live loader had not stored. */
export type LeftOut = { readonly condition: string } | { readonly beyond: readonly Progress[] } | undefined

/** One of two compared tables. */
export type Side = {
  readonly table: string
  readonly shape: Shape
  readonly leftOut: LeftOut
  /** Number of buckets. */
  readonly buckets: number
  /** What divides the rows `r` into buckets. Default: the columns of the key. */
  readonly by?: readonly string[]
  /** The only rows that are compared, by columns of the table's key. */
  readonly key?: KeyCondition
}

export type Sides = { readonly live: Side; readonly fresh: Side }
type Row = Readonly<Record<string, unknown>>
export type BucketHash = { readonly rows: number; readonly hash: string }

/** Reads the key and the columns of a table from the engine. */
export const readShape = operation('reads the shape of a table', async (tables, table: string): Promise<Shape> => {
  const columns = await tables.rows(
    `SELECT c.name AS name, c.type AS type, c.is_in_sorting_key AS isKey, t.engine_full AS engine
     FROM system.columns AS c INNER JOIN system.tables AS t ON t.database = c.database AND t.name = c.table
     WHERE c.database = currentDatabase() AND c.table = {table: String}
       AND c.default_kind NOT IN ('ALIAS', 'MATERIALIZED')
     ORDER BY c.position`,
    { table }
  )
  const version = /^(?:Replicated|Shared)?ReplacingMergeTree\((?:'[^']*', '[^']*', )?(\w+)\)/.exec(
    String(columns[0]?.engine)
  )?.[1]
  const compared = columns.filter(({ name, isKey }) => name !== version || Number(isKey) === 1)
  const names = (isKey: boolean) =>
    compared.filter((column) => (Number(column.isKey) === 1) === isKey).map(({ name }) => String(name))
  const texts = compared.map(({ name, type }) => textOf(`r.${String(name)}`, String(type)))
  return { key: names(true), values: names(false), hash: `cityHash64(${texts.join(', ')})` }
})

/** Counts the rows of a table, replaced ones too. */
export const countRows = operation('counts rows', async (tables, table: string): Promise<number> => {
  const [row] = await tables.rows(`SELECT count() AS rows FROM ${table}`)
  return Number(row?.rows)
})

/** Reads the number of rows of each bucket, and a hash that does not depend on their order. */
export const readHashes = operation('reads hashes', async (tables, side: Side) => {
  const rows = await tables.rows(
    `SELECT b.bucket AS bucket, count() AS rows, toString(tuple(count(), groupBitXor(b.hash), sum(b.hash))) AS hash
     FROM (SELECT ${bucketOf(side)} AS bucket, ${side.shape.hash} AS hash FROM ${side.table} AS r FINAL
       ${ofKey(side)} WHERE ${isCompared(side)}) AS b
     GROUP BY b.bucket`
  )
  return new Map(rows.map(({ bucket, rows, hash }) => [Number(bucket), { rows: Number(rows), hash: String(hash) }]))
})

/** Counts the keys in some buckets whose rows differ, or are missing on one side. */
export const countDifferences = operation(
  'counts differences',
  async (tables, sides: Sides, buckets: readonly number[]): Promise<number> => {
    const [row] = await tables.rows(`SELECT count() AS differences FROM (${differing(sides)}) AS d`, { buckets })
    return Number(row?.differences)
  }
)

/** What the rows of a table are about: by name, an expression on a row `r`. */
export type SubjectColumns = Readonly<Record<string, string>>

/** A subject whose rows differ. */
export type DifferingSubject = {
  readonly key: Row
  /** Number of keys whose rows differ. */
  readonly rows: number
  /** Of these rows, of both sides. */
  readonly hash: string
}

/** Groups the keys in some buckets whose rows differ by subject, and returns the subjects with most of them. */
export const readDifferingSubjects = operation(
  'reads subjects that differ',
  async (
    tables,
    sides: Sides,
    columns: SubjectColumns,
    { buckets, limit }: { readonly buckets: readonly number[]; readonly limit: number }
  ): Promise<{ readonly listed: readonly DifferingSubject[]; readonly count: number }> => {
    const names = Object.keys(columns)
    const named = names.map((name, n) => `tupleElement(d.about, ${n + 1}) AS ${name}`)
    const rows = await tables.rows(
      `SELECT ${[...named, 'count() AS rows', 'toString(groupBitXor(d.hash)) AS hash'].join(', ')},
         count() OVER () AS subjects
       FROM (${differing(sides, columns)}) AS d
       GROUP BY d.about ORDER BY rows DESC, d.about LIMIT ${limit}`,
      { buckets }
    )
    return {
      count: Number(rows[0]?.subjects ?? 0),
      listed: rows.map((row) => ({
        key: Object.fromEntries(names.map((name) => [name, row[name]])),
        rows: Number(row.rows),
        hash: String(row.hash)
      }))
    }
  }
)

/** Reads one side's rows of the first differing keys in some buckets, by their keys as JSON. */
export const readDifferingRows = operation(
  'reads rows that differ',
  async (
    tables,
    sides: Sides,
    of: keyof Sides,
    { buckets, limit }: { readonly buckets: readonly number[]; readonly limit: number }
  ): Promise<ReadonlyMap<string, Row>> => {
    const { table, shape } = sides[of]
    const isListed = `(${shape.key.map((column) => `r.${column}`).join(', ')}) IN
      (SELECT * FROM (${differing(sides)}) AS d ORDER BY ALL LIMIT ${limit}) AND ${isIn(sides.live)}`
    const rows = await tables.rows(
      `SELECT ${columnsOf(shape)} FROM ${table} AS r FINAL WHERE ${isListed} AND ${isCompared(sides[of])}`,
      { buckets }
    )
    return new Map(rows.map((row) => [JSON.stringify(shape.key.map((column) => row[column])), row]))
  }
)

/** Reads a few rows of a table outside these buckets. */
export const readSamples = operation(
  'reads samples',
  async (tables, side: Side, different: readonly number[], limit: number): Promise<Record<string, unknown>[]> =>
    await tables.rows(
      `SELECT ${columnsOf(side.shape)} FROM ${side.table} AS r FINAL
       WHERE NOT has({different: Array(UInt64)}, ${bucketOf(side)}) AND ${isCompared(side)} LIMIT ${limit}`,
      { different }
    )
)

/** Names of key columns in events, if they differ from those in read tables. */
const INSTANTS: Readonly<Record<string, string>> = {
  ts: 'e.observed_at',
  hour: 'toStartOfHour(e.observed_at)',
  day: 'toDate(e.observed_at)'
}

/**
 * Reads the positions of the newest events about the key of a row, by the columns that events have too; as
 * `topic/epoch/partition/offset`. None if events have no such column.
 */
export const readEventsOf = operation(
  'reads events of a key',
  async (tables, from: Pick<Topic, 'name'>, key: Row, limit: number): Promise<string[]> => {
    const table = tables.source(eventTableName(from))
    const known = await tables.rows(
      `SELECT c.name AS name FROM system.columns AS c WHERE c.database = currentDatabase()
        AND c.table = {table: String}`,
      { table }
    )
    const names = new Set(known.map(({ name }) => String(name)))
    const parameters: Record<string, unknown> = {}
    const conditions = Object.entries(key).flatMap(([column, value]) => {
      const expression = names.has(column) ? `e.${column}` : INSTANTS[column]
      if (expression === undefined) return []
      parameters[`key_${column}`] = String(value)
      return [`toString(${expression}) = {key_${column}: String}`]
    })
    if (conditions.length === 0) return []
    const rows = await tables.rows(
      `SELECT e.epoch AS epoch, e.partition AS partition, e.offset AS offset FROM ${table} AS e FINAL
       WHERE ${conditions.join(' AND ')} ORDER BY e.position DESC LIMIT ${limit}`,
      parameters
    )
    return rows.map(({ epoch, partition, offset }) => `${from.name}/${epoch}/${partition}/${offset}`)
  }
)

/** Later events: those beyond positions, and those recorded since an instant, which may be before these positions. */
export type Later = { readonly beyond: readonly Progress[]; readonly sinceMs: number }

/** Reads the distinct keys, and days, of later events: of the given values of each column. */
export const readLaterKeys = operation(
  'reads the keys of later events',
  async (
    tables,
    from: Pick<Topic, 'name'>,
    { beyond, sinceMs }: Later,
    values: Readonly<Record<string, readonly string[]>>
  ): Promise<Record<string, unknown>[]> => {
    const columns = Object.keys(values)
    const before = beyond.map(
      ({ epoch, partition, next }) => `(e.epoch = ${epoch} AND e.partition = ${partition} AND e.offset < ${next})`
    )
    const isBefore = ['false', ...before].join(' OR ')
    const isLater = `(NOT (${isBefore}) OR e.recorded_at >= {since: DateTime64(3, 'UTC')})`
    const conditions = columns.map((column) => `toString(e.${column}) IN {${column}: Array(String)}`)
    return await tables.rows(
      `SELECT DISTINCT ${columns.map((column) => `toString(e.${column}) AS ${column}, `).join('')}
         toUInt32(toDate(e.observed_at)) AS day
       FROM ${tables.source(eventTableName(from))} AS e
       WHERE ${[isLater, ...conditions].join(' AND ')}`,
      { ...values, since: new Date(sinceMs).toISOString().slice(0, -1) }
    )
  }
)

/** Returns a value to hash: a NULL would make the whole hash NULL, and a map has no order. */
function textOf(column: string, type: string): string {
  if (type.startsWith('Map(')) return `toString(mapSort(${column}))`
  if (type.includes('Nullable') || type.startsWith('Array(')) return `toString(tuple(${column}))`
  return column
}

function bucketOf({ shape, buckets, by = shape.key.map((column) => `r.${column}`) }: Side): string {
  return `cityHash64(${by.join(', ')}) % ${buckets}`
}

const ofKey = ({ key }: Side): string => (key === undefined ? '' : `PREWHERE ${key('r.')}`)

/** The condition that a row is in one of the compared buckets. */
const isIn = (side: Side): string => `has({buckets: Array(UInt64)}, ${bucketOf(side)})`

/** The condition that a row is not left out. */
function isCompared({ leftOut }: Side): string {
  if (leftOut === undefined) return 'true'
  if ('condition' in leftOut) return `NOT (${leftOut.condition})`
  const within = leftOut.beyond.map(
    ({ epoch, partition, next }) => `(r.epoch = ${epoch} AND r.partition = ${partition} AND r.offset < ${next})`
  )
  return within.length === 0 ? 'false' : `(${within.join(' OR ')})`
}

/** Selects the keys whose rows differ; with the columns of subjects, what each is `about`, and a hash of its rows. */
function differing(sides: Sides, subject?: SubjectColumns): string {
  const { key } = sides.live.shape
  const keys = key.map((column) => `r.${column} AS ${column}`).join(', ')
  const about = subject === undefined ? '' : `tuple(${Object.values(subject).join(', ')}) AS about,`
  const part = (side: Side, n: number) =>
    `SELECT ${keys}, ${about} ${n} AS side,
       ${side.shape.hash} AS hash
     FROM ${side.table} AS r FINAL ${ofKey(side)} WHERE ${isIn(side)} AND ${isCompared(side)}`
  const columns = key.map((column) => `s.${column}`).join(', ')
  const hashes = [0, 1].map((n) => `sumIf(s.hash, s.side = ${n})`).join(', ')
  return `
    SELECT ${subject === undefined ? columns : `any(s.about) AS about, cityHash64(${hashes}) AS hash`}
    FROM (${part(sides.live, 0)} UNION ALL ${part(sides.fresh, 1)}) AS s
    GROUP BY ${columns} HAVING count() != 2 OR min(s.hash) != max(s.hash)`
}

function columnsOf({ key, values }: Shape): string {
  return [...key, ...values].map((column) => `r.${column} AS ${column}`).join(', ')
}
