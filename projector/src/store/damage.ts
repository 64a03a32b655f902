import { linesOf, operation } from './operation.js'

/**
 * What is known of damage. `damaged`: the generation of a table, by the engine's name; rows of it may be missing or
 * wrong. `gone`: positions of a partition of the log, by its name, that neither the log nor the tables have.
 */
export type DamageRecord = { readonly kind: 'damaged' | 'gone'; readonly name: string; readonly reason: string }

/** Reads all damage that was found in these tables, the oldest first. */
export const readDamage = operation('reads damage', async (tables): Promise<DamageRecord[]> => {
  const rows = await tables.rows(
    `SELECT d.kind AS kind, d.name AS name, argMin(d.reason, d.found_at) AS reason FROM damage AS d
     GROUP BY d.kind, d.name ORDER BY min(d.found_at), d.kind, d.name`
  )
  return rows.map(({ kind, name, reason }) => ({
    kind: kind === 'gone' ? 'gone' : 'damaged',
    name: String(name),
    reason: String(reason)
  }))
})

/** Stores damage, all or none. The first reason of a name counts. */
export const storeDamage = operation('stores damage', async (tables, records: readonly DamageRecord[]) => {
  const rows = records.map(({ kind, name, reason }) => [kind, name, reason])
  await tables.insert('damage', ['kind', 'name', 'reason'], linesOf(rows))
})

/** A part of a table, by the engine's names. */
export type TablePart = { readonly table: string; readonly part: string }

/** Reads how many parts of each table the engine detached because it could not read them. */
export const readBrokenParts = operation('reads broken parts', async (tables): Promise<ReadonlyMap<string, number>> => {
  const rows = await tables.rows(
    `SELECT d.table AS table, count() AS parts FROM system.detached_parts AS d
     WHERE d.database = currentDatabase() AND d.reason LIKE '%broken%' GROUP BY table ORDER BY table`
  )
  return new Map(rows.map(({ table, parts }) => [String(table), Number(parts)]))
})

/** Reads the parts of a table that do not match their checksums, with the engine's reasons. Reads the whole table. */
export const readDamagedParts = operation('checks a table', async (tables, table: string) => {
  const rows = await tables.rows(`CHECK TABLE ${table}`)
  return rows
    .filter(({ is_passed: isPassed }) => Number(isPassed) !== 1)
    .map(({ part_path: part, message }) => ({ table, part: String(part), reason: String(message) }))
})

/** Detaches a part: statements read what is left of its table. It is dropped with the table. */
export const detachPart = operation('detaches a part', async (tables, { table, part }: TablePart): Promise<void> => {
  await tables.execute(`ALTER TABLE ${table} DETACH PART '${part}'`)
})

/** Reads the names of the tables without generations. */
export const readBookkeepingTables = operation('reads names of bookkeeping', async (tables): Promise<string[]> => {
  const rows = await tables.rows(
    `SELECT t.name AS name FROM system.tables AS t
     WHERE t.database = currentDatabase() AND t.engine LIKE '%MergeTree' AND position(t.name, '__') = 0 ORDER BY name`
  )
  return rows.map(({ name }) => String(name))
})

/** Reads the tables without generations that have detached parts: what is lost of the bookkeeping. */
export const readLostBookkeeping = operation('reads lost bookkeeping', async (tables): Promise<string[]> => {
  const rows = await tables.rows(
    `SELECT DISTINCT d.table AS table FROM system.detached_parts AS d
     WHERE d.database = currentDatabase() AND position(d.table, '__') = 0 ORDER BY table`
  )
  return rows.map(({ table }) => String(table))
})

/** Drops the detached parts of a table. */
export const dropDetachedParts = operation('drops detached parts', async (tables, table: string): Promise<void> => {
  await tables.execute(`ALTER TABLE ${table} DROP DETACHED PARTITION ALL SETTINGS allow_drop_detached = 1`)
})
