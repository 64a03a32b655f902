import { onEveryReplica } from './every-replica.js'
import { operation } from './operation.js'

/*
 * Whole tables. Names are literals in these statements, because ClickHouse accepts no parameter there; all of them are
 * the program's own. Operations here take the engine's names, in any view of the store.
 */

/**
 * Creates an empty table of the structure of another, unless it is there. Rejects when a migration changed only the
 * other meanwhile.
 */
export const createTable = operation('creates a table', async (tables, name: string, like: string): Promise<void> => {
  await tables.execute(`CREATE TABLE IF NOT EXISTS ${name} AS ${like}`)
  // If `like` was read before the migration's change, and this table appears after the migration's last list, it would
  // lack a column.
  const different = await tables.rows(
    `SELECT c.name AS name FROM system.columns AS c
     WHERE c.database = currentDatabase() AND c.table IN ({name: String}, {like: String})
     GROUP BY c.name, c.type, c.default_kind, c.default_expression HAVING count() = 1`,
    { name, like }
  )
  if (different.length === 0) return
  const columns = [...new Set(different.map(({ name: column }) => String(column)))].join(', ')
  throw new Error(
    `A migration changed columns of ${like} (${columns}) while ${name} was created like it. Repeat it after the ` +
      `migration.`
  )
})

/** Creates a view on an event table without the events from an instant on. */
export const createEventView = operation(
  'creates a view on events',
  async (tables, name: string, table: string, beforeMs: number): Promise<void> => {
    await tables.execute(
      `CREATE VIEW ${name} AS SELECT e.*, e.position, e.version FROM ${table} AS e
       WHERE e.observed_at < fromUnixTimestamp64Milli(toInt64(${beforeMs}), 'UTC')`
    )
  }
)

/** Drops a table or a view, if it exists. */
export const dropTable = operation('drops a table', async (tables, name: string): Promise<void> => {
  await tables.execute(`DROP TABLE IF EXISTS ${name}`)
})

/** Empties a table. */
export const emptyTable = operation('empties a table', async (tables, name: string): Promise<void> => {
  await tables.execute(`ALTER TABLE ${name} DROP PARTITION ALL`)
})

/** Reads the partitions of a table that have rows. The list of its parts would say what one replica has by now. */
export const readPartitions = operation('reads partitions of a table', async (tables, name: string) => {
  const rows = await tables.rows(`SELECT DISTINCT r._partition_id AS id FROM ${name} AS r ORDER BY id`)
  return rows.map(({ id }) => String(id))
})

/** Adds the rows of a partition of another table of the same structure; links its parts without a copy. */
export const attachPartition = operation(
  'attaches a partition',
  async (tables, name: string, from: string, partition: string): Promise<void> => {
    await tables.execute(`ALTER TABLE ${name} ATTACH PARTITION ID '${partition}' FROM ${from}`)
  }
)

/** A table of a rebuild, and its age in hours. */
export type OwnedTable = { readonly name: string; readonly hours: number }

/** Reads the tables that rebuilds created: their own, copies and samples. */
export const readTablesOfRebuilds = operation('reads tables of rebuilds', async (tables): Promise<OwnedTable[]> => {
  const rows = await tables.rows(
    `SELECT t.name AS name, dateDiff('hour', t.metadata_modification_time, now()) AS hours FROM system.tables AS t
       WHERE t.database = currentDatabase() AND match(t.name, '__([0-9]+(_live)?|sample(_[0-9a-f]{8})?)$')
         ORDER BY name`
  )
  return rows.map(({ name, hours }) => ({ name: String(name), hours: Number(hours) }))
})

export type TableSize = { readonly rows: number; readonly bytes: number }

/** Reads rows and bytes of tables from their parts; 0 for tables without parts. */
export const readSizes = operation('reads sizes of tables', async (tables, names: readonly string[]) => {
  const rows = await tables.rows(
    `SELECT p.table AS table, sum(p.rows) AS rows, sum(p.bytes_on_disk) AS bytes FROM system.parts AS p
     WHERE p.database = currentDatabase() AND p.active AND has({names: Array(String)}, p.table) GROUP BY p.table`,
    { names }
  )
  const sizes = new Map(
    rows.map(({ table, rows, bytes }) => [String(table), { rows: Number(rows), bytes: Number(bytes) }])
  )
  return new Map(names.map((name) => [name, sizes.get(name) ?? { rows: 0, bytes: 0 }]))
})

/** Reads free bytes and size of each disk of the tables, of all replicas. */
export const readDisks = operation('reads disks', async (tables) => {
  const all = await onEveryReplica(tables, 'system.disks')
  const rows = await tables.rows(`SELECT d.unreserved_space AS free, d.total_space AS size FROM ${all} AS d`)
  return rows.map(({ free, size }) => ({ free: Number(free), size: Number(size) }))
})
