import { createHash } from 'node:crypto'
import type { Projection } from '../project/projection.js'
import type { Tables } from '../store/tables.js'

/** A live table → the table that stands for it. */
export type TableNames = ReadonlyMap<string, string>

/** The table of a rebuild that stands for a live one. */
export function freshName(table: string, id: number): string {
  return `${table}__${id}`
}

/** The table into which a process measures what stands in a table costs: others may be measuring, too. */
export function sampleName(table: string, process: string): string {
  return `${table}__sample_${createHash('sha256').update(process).digest('hex').slice(0, 8)}`
}

/** The copy of a live table with which the one that stands for it is compared. */
export function copyName(fresh: string): string {
  return `${fresh}_live`
}

/** The tables that a projection writes. */
export function tablesOf(projection: Projection): readonly string[] {
  return projection.form === 'fold' ? Object.keys(projection.into) : [projection.into]
}

/** The tables that a projection's statements read, its own among them where it does. */
export function readsOf(projection: Projection): readonly string[] {
  const statements =
    projection.form === 'fold'
      ? [projection.weigh, projection.reads, projection.readsApart, projection.readsWhenLate]
          .flatMap((each) => (typeof each === 'string' ? [each] : Object.values(each ?? {})))
          .join('\n')
      : projection.select
  return [...new Set([...statements.matchAll(TABLE_NAMED)].map(([, , table = '']) => table))]
}

/** A table's name in a statement of ours: behind FROM, JOIN, INTO or TABLE, never a column, whose names may be the same. */
export const TABLE_NAMED = /\b(FROM|JOIN|INTO|TABLE)\s+([a-z_][a-z0-9_]*)\b/g

/** The same tables, where some names stand for others; `in` says in which places, everywhere unless given. */
export function withTableNames(tables: Tables, names: TableNames, where: 'everywhere' | 'INTO' = 'everywhere'): Tables {
  const nameOf = (table: string) => names.get(table) ?? table
  const text = (sql: string) =>
    sql.replaceAll(TABLE_NAMED, (whole, word: string, table: string) =>
      where === 'everywhere' || word === where ? `${word} ${nameOf(table)}` : whole
    )
  return {
    execute: (sql, ...more) => tables.execute(text(sql), ...more),
    rows: (sql, ...more) => tables.rows(text(sql), ...more),
    json: (sql, ...more) => tables.json(text(sql), ...more),
    insert: (table, columns, body) => tables.insert(nameOf(table), columns, body)
  }
}

/** The same tables, whose statements are killed when a signal aborts: one of a fill may take half a minute. */
export function abortedBy(tables: Tables, signal: AbortSignal): Tables {
  return {
    ...tables,
    execute: (sql, parameters) => tables.execute(sql, parameters, { signal }),
    rows: (sql, parameters) => tables.rows(sql, parameters, { signal }),
    json: (sql, parameters) => tables.json(sql, parameters, { signal })
  }
}

/** Makes empty tables of the same structure. */
export async function createTables(tables: Tables, names: TableNames): Promise<void> {
  for (const [live, fresh] of names) await tables.execute(`CREATE TABLE IF NOT EXISTS ${fresh} AS ${live}`)
}

/** Drops tables and views; those that are gone already are no trouble. */
export async function dropTables(tables: Tables, names: Iterable<string>): Promise<void> {
  for (const name of names) await tables.execute(`DROP TABLE IF EXISTS ${name}`)
}

/** Copies tables as they stand, in an instant whatever their size: parts are linked, not copied. */
export async function cloneTables(tables: Tables, names: TableNames): Promise<void> {
  for (const [source, clone] of names) {
    await tables.execute(`DROP TABLE IF EXISTS ${clone}`)
    await tables.execute(`CREATE TABLE ${clone} AS ${source}`)
    const partitions = await tables.rows(
      `SELECT DISTINCT p.partition_id AS id FROM system.parts AS p
       WHERE p.database = currentDatabase() AND p.table = {source: String} AND p.active ORDER BY id`,
      { source }
    )
    for (const { id } of partitions)
      await tables.execute(`ALTER TABLE ${clone} ATTACH PARTITION ID '${String(id)}' FROM ${source}`)
  }
}

/** UUID of a table `t` of `system.tables`. chDB shows none, but names the table's folder by it. */
export const TABLE_UUID = `if(t.uuid = toUUID('00000000-0000-0000-0000-000000000000'),
  extract(t.data_paths[1], '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}'), toString(t.uuid))`

/**
 * What tells a table from another that bore its name before: its uuid. The engine in this process shows zeros for it, and keeps the
 * rows of a table in a folder of that name.
 */
export async function uuidsOf(tables: Tables, names: readonly string[]): Promise<Map<string, string>> {
  const rows = await tables.rows(
    `SELECT t.name AS name, ${TABLE_UUID} AS uuid
     FROM system.tables AS t
     WHERE t.database = currentDatabase() AND has({names: Array(String)}, t.name)`,
    { names }
  )
  return new Map(rows.map(({ name, uuid }) => [String(name), String(uuid)]))
}

/**
 * Swaps each live table with the one that stands for it, unless that was done: `liveUuids` are those from before, so that a
 * swap that was cut off is ended instead of undone.
 */
export async function swapTables(
  tables: Tables,
  names: TableNames,
  liveUuids: Readonly<Record<string, string>>
): Promise<void> {
  const now = await uuidsOf(tables, [...names.keys()])
  const left = [...names].filter(([live]) => now.get(live) === liveUuids[live])
  if (left.length === 0) return
  await tables.execute(`EXCHANGE TABLES ${left.map(([live, fresh]) => `${live} AND ${fresh}`).join(', ')}`)
}

/** Rows and bytes of tables, as their parts say. */
export async function sizesOf(
  tables: Tables,
  names: readonly string[]
): Promise<Map<string, { readonly rows: number; readonly bytes: number }>> {
  const rows = await tables.rows(
    `SELECT p.table AS table, sum(p.rows) AS rows, sum(p.bytes_on_disk) AS bytes FROM system.parts AS p
     WHERE p.database = currentDatabase() AND p.active AND has({names: Array(String)}, p.table) GROUP BY p.table`,
    { names }
  )
  const sizes = new Map(
    rows.map(({ table, rows, bytes }) => [String(table), { rows: Number(rows), bytes: Number(bytes) }])
  )
  return new Map(names.map((name) => [name, sizes.get(name) ?? { rows: 0, bytes: 0 }]))
}
