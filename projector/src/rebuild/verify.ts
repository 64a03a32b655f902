import type { Topic } from '@gamenet/schemas'
import { eventTableName } from '../events/event-table.js'
import type { Tables } from '../store/tables.js'
import type { Difference, VerifyReport } from './rebuild.js'
import type { TableNames } from './rebuild-tables.js'

/** Differences that are listed; all are counted. */
const LISTED_MAX = 50
const SAMPLES = 3
const EVENTS_LISTED = 10
/** Rows of a bucket, roughly; those of some buckets are held in memory while they are looked at row by row. */
const BUCKET_ROWS = 50_000
const BUCKETS_MAX = 4096
/** Buckets that are looked at row by row at once: each look reads both tables as a whole. */
const BUCKETS_AT_ONCE = 10

/** A table that is compared, and the topic of the events that made it. */
export type Compared = {
  readonly table: string
  readonly from: Topic
  /** The condition on rows `r` that neither side need have. */
  readonly isVoid: string | undefined
}

/** A table as it is compared: the columns that are written, but for the one that decides which of two rows counts. */
type Shape = {
  readonly key: readonly string[]
  readonly values: readonly string[]
  readonly hash: string
  readonly isVoid: string
}

type Side = { readonly name: string; readonly shape: Shape; readonly buckets: number }

/**
 * Compares tables with those that stand for them, both at rest: per bucket of keys the count of rows and a hash that does not
 * depend on their order; the rows of buckets that differ one by one. Memory is bounded by some buckets.
 */
export async function compareTables(
  tables: Tables,
  compared: readonly Compared[],
  { live, fresh, signal }: { readonly live: TableNames; readonly fresh: TableNames; readonly signal: AbortSignal }
): Promise<Omit<VerifyReport, 'id' | 'until' | 'isEqual'>> {
  const reports: VerifyReport['tables'] = []
  const differences: Difference[] = []
  const samples: VerifyReport['samples'] = []
  for (const { table, from, isVoid } of compared) {
    signal.throwIfAborted()
    const [liveTable, freshTable] = [live.get(table) ?? table, fresh.get(table) ?? table]
    const shape = await shapeOf(tables, freshTable, isVoid)
    const buckets = bucketsFor(await countOf(tables, liveTable))
    const sides = { live: { name: liveTable, shape, buckets }, fresh: { name: freshTable, shape, buckets } }
    const [liveHashes, freshHashes] = [await hashesOf(tables, sides.live), await hashesOf(tables, sides.fresh)]
    const numbers = new Set([...liveHashes.keys(), ...freshHashes.keys()])
    const different = [...numbers].filter((n) => liveHashes.get(n)?.hash !== freshHashes.get(n)?.hash)
    const found = await differencesOf(tables, sides, different, LISTED_MAX - differences.length, signal)
    for (const each of found.listed) {
      const { key, liveRow, freshRow } = each
      const columns = shape.values.filter(
        (column) => JSON.stringify(liveRow?.[column]) !== JSON.stringify(freshRow?.[column])
      )
      const events = await eventsOf(tables, from, key)
      differences.push({ table, key, live: liveRow, fresh: freshRow, columns, events })
    }
    reports.push({
      table,
      liveRows: rowsOf(liveHashes),
      freshRows: rowsOf(freshHashes),
      buckets: numbers.size,
      differentBuckets: different.length,
      differences: found.count
    })
    for (const row of await samplesOf(tables, sides.fresh, new Set(different))) samples.push({ table, row })
  }
  return { tables: reports, differences, samples }
}

function rowsOf(hashes: ReadonlyMap<number, { readonly rows: number }>): number {
  return [...hashes.values()].reduce((sum, { rows }) => sum + rows, 0)
}

function bucketsFor(rows: number): number {
  return Math.min(BUCKETS_MAX, Math.max(16, Math.ceil(rows / BUCKET_ROWS)))
}

async function countOf(tables: Tables, table: string): Promise<number> {
  const [row] = await tables.rows(`SELECT count() AS rows FROM ${table}`)
  return Number(row?.rows)
}

/** How a table is keyed and what it holds, as the engine knows it. */
async function shapeOf(tables: Tables, table: string, isVoid = 'false'): Promise<Shape> {
  const columns = await tables.rows(
    `SELECT c.name AS name, c.type AS type, c.is_in_sorting_key AS isKey, t.engine_full AS engine
     FROM system.columns AS c INNER JOIN system.tables AS t ON t.database = c.database AND t.name = c.table
     WHERE c.database = currentDatabase() AND c.table = {table: String} AND c.default_kind NOT IN ('ALIAS', 'MATERIALIZED')
     ORDER BY c.position`,
    { table }
  )
  const version = /^ReplacingMergeTree\((\w+)\)/.exec(String(columns[0]?.engine))?.[1]
  const compared = columns.filter(({ name, isKey }) => name !== version || Number(isKey) === 1)
  const names = (isKey: boolean) =>
    compared.filter((column) => (Number(column.isKey) === 1) === isKey).map(({ name }) => String(name))
  const texts = compared.map(({ name, type }) => textOf(`r.${String(name)}`, String(type)))
  return { key: names(true), values: names(false), hash: `cityHash64(${texts.join(', ')})`, isVoid }
}

/** A value to hash: what is NULL would make the whole hash NULL, and a map has no order. */
function textOf(column: string, type: string): string {
  if (type.startsWith('Map(')) return `toString(mapSort(${column}))`
  if (type.includes('Nullable') || type.startsWith('Array(')) return `toString(tuple(${column}))`
  return column
}

function bucketOf({ shape, buckets }: Side): string {
  return `cityHash64(${shape.key.map((column) => `r.${column}`).join(', ')}) % ${buckets}`
}

/** The condition that a row lies in one of the buckets that are looked at. */
function isIn(side: Side): string {
  return `has({buckets: Array(UInt64)}, ${bucketOf(side)})`
}

async function hashesOf(
  tables: Tables,
  side: Side
): Promise<Map<number, { readonly rows: number; readonly hash: string }>> {
  const rows = await tables.rows(
    `SELECT b.bucket AS bucket, count() AS rows, toString(tuple(count(), groupBitXor(b.hash), sum(b.hash))) AS hash
     FROM (SELECT ${bucketOf(side)} AS bucket, ${side.shape.hash} AS hash FROM ${side.name} AS r FINAL WHERE NOT (${side.shape.isVoid})) AS b
     GROUP BY b.bucket`
  )
  return new Map(rows.map(({ bucket, rows, hash }) => [Number(bucket), { rows: Number(rows), hash: String(hash) }]))
}

type Sides = { readonly live: Side; readonly fresh: Side }
type FoundDifference = {
  readonly key: Record<string, unknown>
  readonly liveRow: Record<string, unknown> | null
  readonly freshRow: Record<string, unknown> | null
}

/** Every key whose row is another one, or is missing, on one side; `listedMax` of them with both rows. */
async function differencesOf(
  tables: Tables,
  sides: Sides,
  buckets: readonly number[],
  listedMax: number,
  signal: AbortSignal
): Promise<{ readonly count: number; readonly listed: readonly FoundDifference[] }> {
  const { key } = sides.live.shape
  const keys = key.map((column) => `r.${column} AS ${column}`).join(', ')
  const part = (side: Side, n: number) =>
    `SELECT ${keys}, ${n} AS side, ${side.shape.hash} AS hash FROM ${side.name} AS r FINAL
     WHERE ${isIn(side)} AND NOT (${side.shape.isVoid})`
  const columns = key.map((column) => `s.${column}`).join(', ')
  const differing = `
    SELECT ${columns} FROM (${part(sides.live, 0)} UNION ALL ${part(sides.fresh, 1)}) AS s
    GROUP BY ${columns} HAVING count() != 2 OR min(s.hash) != max(s.hash)`
  let count = 0
  const listed: FoundDifference[] = []
  for (let first = 0; first < buckets.length; first += BUCKETS_AT_ONCE) {
    signal.throwIfAborted()
    const looked = { buckets: buckets.slice(first, first + BUCKETS_AT_ONCE) }
    const [counted] = await tables.rows(`SELECT count() AS differences FROM (${differing}) AS d`, looked)
    count += Number(counted?.differences)
    const left = listedMax - listed.length
    if (left <= 0) continue
    const isListed = `(${key.map((column) => `r.${column}`).join(', ')}) IN
      (SELECT * FROM (${differing}) AS d ORDER BY ALL LIMIT ${left}) AND ${isIn(sides.live)}`
    const [liveRows, freshRows] = [
      await rowsWhere(tables, sides.live, isListed, looked),
      await rowsWhere(tables, sides.fresh, isListed, looked)
    ]
    for (const id of [...new Set([...liveRows.keys(), ...freshRows.keys()])].sort()) {
      const [liveRow, freshRow] = [liveRows.get(id) ?? null, freshRows.get(id) ?? null]
      const known = liveRow ?? freshRow ?? {}
      listed.push({ key: Object.fromEntries(key.map((column) => [column, known[column]])), liveRow, freshRow })
    }
  }
  return { count, listed }
}

async function rowsWhere(
  tables: Tables,
  { name, shape }: Side,
  condition: string,
  parameters: Record<string, unknown>
): Promise<Map<string, Record<string, unknown>>> {
  const columns = [...shape.key, ...shape.values].map((column) => `r.${column} AS ${column}`)
  const rows = await tables.rows(
    `SELECT ${columns.join(', ')} FROM ${name} AS r FINAL WHERE ${condition} AND NOT (${shape.isVoid})`,
    parameters
  )
  return new Map(rows.map((row) => [JSON.stringify(shape.key.map((column) => row[column])), row]))
}

/** A few rows of buckets that are equal. */
async function samplesOf(
  tables: Tables,
  side: Side,
  different: ReadonlySet<number>
): Promise<Record<string, unknown>[]> {
  const columns = [...side.shape.key, ...side.shape.values].map((column) => `r.${column} AS ${column}`)
  return await tables.rows(
    `SELECT ${columns.join(', ')} FROM ${side.name} AS r FINAL
     WHERE NOT has({different: Array(UInt64)}, ${bucketOf(side)}) AND NOT (${side.shape.isVoid}) LIMIT ${SAMPLES}`,
    { different: [...different] }
  )
}

/** How key columns of read tables are found in events, where they are not called the same. */
const INSTANTS: Readonly<Record<string, string>> = {
  ts: 'e.observed_at',
  hour: 'toStartOfHour(e.observed_at)',
  day: 'toDate(e.observed_at)'
}

/** The newest events that say something of the key of a row, as far as its columns are those of events. */
async function eventsOf(tables: Tables, from: Topic, key: Record<string, unknown>): Promise<string[]> {
  const table = eventTableName(from)
  const known = await tables.rows(
    `SELECT c.name AS name, c.type AS type FROM system.columns AS c
     WHERE c.database = currentDatabase() AND c.table = {table: String}`,
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
     WHERE ${conditions.join(' AND ')} ORDER BY e.position DESC LIMIT ${EVENTS_LISTED}`,
    parameters
  )
  return rows.map(({ epoch, partition, offset }) => `${epoch}/${partition}/${offset}`)
}
