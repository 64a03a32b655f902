import { onEveryReplica } from './every-replica.js'
import { operation } from './operation.js'

/*
 * Rows about a user, in every generation of every table, and the files that the engine keeps of deleted rows.
 * Operations here take the engine's names, in any view of the store. They reject if a table is missing.
 */

/** Columns with a user_key, in all tables. */
export const USER_COLUMNS = ['user_key', 'rater_key']
/** Used only by deletions of users, so it identifies them in mutations. */
const NAME_HASH = 'sipHash64Keyed'

/** A table, and its columns with a user_key. */
export type UserTable = {
  readonly table: string
  readonly columns: readonly string[]
  /** Set where only rows of these projections are about users. */
  readonly projections?: readonly string[]
}

/**
 * Reads the tables with name columns, of all generations, event tables first: rows derived from them later are without
 * the user.
 */
export const readUserTables = operation('reads tables about users', async (tables): Promise<UserTable[]> => {
  const rows = await tables.rows(
    `SELECT c.table AS table, groupArray(c.name) AS columns
     FROM system.columns AS c
     INNER JOIN system.tables AS t ON t.database = c.database AND t.name = c.table
     WHERE c.database = currentDatabase() AND has({columns: Array(String)}, c.name) AND t.engine LIKE '%MergeTree'
     GROUP BY c.table
     ORDER BY NOT startsWith(c.table, 'event_'), c.table`,
    { columns: USER_COLUMNS }
  )
  return rows.map(({ table, columns }) => ({ table: String(table), columns: columns as string[] }))
})

/** Reads the user_keys of a column whose salted hashes are among these; salt and hashes are hexadecimal. */
export const readUsersByHash = operation(
  'reads users by hash',
  async (tables, table: string, column: string, salt: string, hashes: readonly string[]): Promise<string[]> => {
    const rows = await tables.rows(
      `SELECT n.name AS name
       FROM (
         SELECT k.name AS name, lower(hex(SHA256(concat(unhex({salt: String}), k.name)))) AS hash
         FROM (SELECT DISTINCT ${column} AS name FROM ${table}) AS k
       ) AS n
       WHERE has({hashes: Array(String)}, n.hash)`,
      { salt, hashes }
    )
    return rows.map(({ name }) => String(name))
  }
)

/** Counts the rows about a user, unmerged ones too. */
export const countUserRows = operation('counts rows of a user', async (tables, rows: UserTable, userKey: string) => {
  const condition = userCondition(rows, (column) => `${column} = {name: String}`)
  const [row] = await tables.rows(`SELECT count() AS rows FROM ${rows.table} WHERE ${condition}`, { name: userKey })
  return Number(row?.rows ?? 0)
})

/**
 * Begins to delete the rows about a user that a table has now; {@link readMutations} shows when it has ended. The
 * condition stays in the table's files until {@link discardDeletions}, so it contains a hash with the salt as its key
 * instead of a name.
 */
export const deleteUserRows = operation(
  'deletes rows of a user',
  async (tables, rows: UserTable, userKey: string, salt: string): Promise<void> => {
    const half = (from: number) => `reinterpretAsUInt64(unhex('${salt.slice(from, from + 16)}'))`
    const key = `(${half(0)}, ${half(16)})`
    const [row] = await tables.rows(`SELECT toString(${NAME_HASH}(${key}, {name: String})) AS hash`, { name: userKey })
    const condition = userCondition(rows, (column) => `${NAME_HASH}(${key}, ${column}) = toUInt64(${row?.hash})`)
    await tables.execute(`ALTER TABLE ${rows.table} DELETE WHERE ${condition}`)
  }
)

/**
 * Begins to remove the rows that a lightweight deletion has masked, as the undo of an import does: they are in the
 * table's files, but no condition finds them.
 */
export const removeMaskedRows = operation('removes masked rows', async (tables, table: string): Promise<void> => {
  const all = await onEveryReplica(tables, 'system.parts')
  const masked = await tables.rows(
    `SELECT p.name AS name FROM ${all} AS p
     WHERE p.database = currentDatabase() AND p.table = {table: String} AND p.active AND p.has_lightweight_delete
       LIMIT 1`,
    { table }
  )
  if (masked.length > 0) await tables.execute(`ALTER TABLE ${table} APPLY DELETED MASK`)
})

/**
 * Removes the texts of finished deletions from the tables' files, which keep a hundred per table. The texts contain no
 * names, but they reveal to anyone with a name whether it was erased.
 */
export const discardDeletions = operation('discards deletions of users', async (tables): Promise<void> => {
  await tables.execute(
    `KILL MUTATION WHERE database = currentDatabase() AND is_done AND position(command, '${NAME_HASH}') > 0`
  )
})

/** Counts the unfinished mutations of a table; `failure` is why one of them fails, empty if none does. */
export const readMutations = operation('reads mutations of a table', async (tables, table: string) => {
  const all = await onEveryReplica(tables, 'system.mutations')
  const [row] = await tables.rows(
    `SELECT countIf(NOT m.is_done) AS mutations, anyIf(m.latest_fail_reason, NOT m.is_done) AS reason
     FROM ${all} AS m WHERE m.database = currentDatabase() AND m.table = {table: String}`,
    { table }
  )
  return { unfinished: Number(row?.mutations), failure: String(row?.reason) }
})

/** Reads the ids of the INSERTs that run; one continues after its process was killed or lost its connection. */
export const readRunningInserts = operation('reads running inserts', async (tables): Promise<string[]> => {
  const all = await onEveryReplica(tables, 'system.processes')
  const rows = await tables.rows(
    `SELECT p.query_id AS id FROM ${all} AS p WHERE p.current_database = currentDatabase()
      AND p.query_kind = 'Insert'`
  )
  return rows.map(({ id }) => String(id))
})

/** Settings that tables have while a user is erased. Replicas look for old parts by the last two. */
export const OLD_PARTS_SETTINGS = [
  'old_parts_lifetime',
  'merge_tree_clear_old_parts_interval_seconds',
  'cleanup_delay_period',
  'max_cleanup_delay_period'
]

/**
 * Lets the engine delete replaced parts of a table after a second; by default minutes, in case the machine fails before
 * new ones are on the disk.
 */
export const shortenOldParts = operation('shortens the life of replaced parts', async (tables, table: string) => {
  const settings = OLD_PARTS_SETTINGS.map((name) => `${name} = 1`)
  await tables.execute(`ALTER TABLE ${table} MODIFY SETTING ${settings.join(', ')}`)
})

/** Undoes {@link shortenOldParts}. */
export const resetOldParts = operation('resets the life of replaced parts', async (tables, table: string) => {
  await tables.execute(`ALTER TABLE ${table} RESET SETTING ${OLD_PARTS_SETTINGS.join(', ')}`)
})

/** Reads the replaced parts of tables that still have files. */
export const readOldParts = operation('reads replaced parts', async (tables, names: readonly string[]) => {
  const all = await onEveryReplica(tables, 'system.parts')
  const rows = await tables.rows(
    `SELECT p.table AS table, p.name AS name FROM ${all} AS p
     WHERE p.database = currentDatabase() AND NOT p.active AND has({names: Array(String)}, p.table)`,
    { names }
  )
  return rows.map(({ table, name }) => ({ table: String(table), part: `${table}/${name}` }))
})

/** Reads the detached parts of tables with rows about users, with the paths of their folders. */
export const readDetachedParts = operation('reads detached parts', async (tables) => {
  const all = await onEveryReplica(tables, 'system.detached_parts')
  const rows = await tables.rows(
    `SELECT d.table AS table, d.name AS part, d.path AS path FROM ${all} AS d
     WHERE d.database = currentDatabase() AND d.table IN (
       SELECT c.table FROM system.columns AS c
       WHERE c.database = currentDatabase() AND (has({columns: Array(String)}, c.name) OR c.table = 'data_change'))
     ORDER BY table, part`,
    { columns: USER_COLUMNS }
  )
  return rows.map(({ table, part, path }) => ({ table: String(table), part: String(part), path: String(path) }))
})

/**
 * Lets the engine look for replaced parts of a table now; by default it does twice a minute. An older ClickHouse
 * rejects it.
 */
export const startCleanup = operation('starts a cleanup of a table', async (tables, table: string): Promise<void> => {
  await tables.execute(`SYSTEM START CLEANUP ${table}`)
})

/**
 * Reads where an embedded engine has its files, and the names of the folders in `store` that belong to its tables and
 * databases.
 */
export const readKnownFolders = operation('reads the folders of tables', async (tables) => {
  const [disk] = await tables.rows("SELECT d.path AS path FROM system.disks AS d WHERE d.name = 'default'")
  const rows = await tables.rows(
    `SELECT basename(trimRight(arrayJoin(t.data_paths), '/')) AS folder FROM system.tables AS t
     UNION ALL SELECT toString(d.uuid) FROM system.databases AS d`
  )
  return { root: String(disk?.path), folders: new Set(rows.map(({ folder }) => String(folder))) }
})

/** Reads the UUIDs of dropped tables that still have files. */
export const readDroppedTables = operation('reads dropped tables', async (tables): Promise<string[]> => {
  const all = await onEveryReplica(tables, 'system.dropped_tables')
  const rows = await tables.rows(
    `SELECT toString(d.uuid) AS uuid FROM ${all} AS d WHERE d.database = currentDatabase()`
  )
  return rows.map(({ uuid }) => String(uuid))
})

function userCondition({ columns, projections }: UserTable, isUser: (column: string) => string): string {
  const ofUser = columns.map(isUser).join(' OR ')
  if (projections === undefined) return ofUser
  return `projection IN (${projections.map((name) => `'${name}'`).join(', ')}) AND (${ofUser})`
}
