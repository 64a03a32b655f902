import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { ClickHouse } from '@gamenet/engines'
import { readPointers, storeOver } from '@gamenet/projector'
import { isTableDropped } from '@gamenet/schemas'

/*
 * freeze   hard links to the current files of all tables; merges and deletions do not change them
 */

/** Frozen files, and the definitions of their tables. */
export type Frozen = {
  /** Files and folders, and their paths in a data directory of tables. */
  readonly trees: readonly { readonly from: string; readonly to: string }[]
  /** Texts of files by path. */
  readonly texts: ReadonlyMap<string, string>
}

/** The engine's folder for frozen files; used by backups and snapshots only. */
export const SHADOW = 'shadow'

const ROUNDS_MAX = 5

/**
 * Tables that record the processing of other tables, and so must not be newer than those: everything that they record
 * is then in the copy. Unrecorded work is repeated.
 */
export const BOOKKEEPING = [
  'checkpoint',
  'dead_letter_decision',
  'late_batch_taken',
  'erasure',
  'rebuild',
  'rebuild_owner',
  // After the records of rebuilds: an interrupted swap in the copy is completed.
  'generation_pointer',
  // Written after its rows and before the decision.
  'late_batch'
] as const

/**
 * Freezes all tables, the bookkeeping first: everything that it records as consumed is then in the tables frozen after
 * it. Rows beyond its record are consumed again after a restore, as after a crash. A change of the set of tables or of
 * a pointer meanwhile restarts the freeze: a copied pointer without the record of its swap would not be moved further.
 * @param folder the engine's data directory
 */
export async function freezeTables(tables: ClickHouse['control'], folder: string, name: string): Promise<Frozen> {
  for (let round = 1; round <= ROUNDS_MAX; round += 1) {
    const before = await tablesNow(tables)
    const { version } = await storeOver(tables).do(readPointers)
    const texts = await definitions(folder)
    for (const { table } of before.filter(({ hasParts }) => hasParts))
      await tables.execute(`ALTER TABLE ${table} FREEZE WITH NAME '${name}'`).catch(ignoreMissing)
    const isSame = JSON.stringify(before) === JSON.stringify(await tablesNow(tables))
    if (isSame && version === (await storeOver(tables).do(readPointers)).version)
      return {
        trees: [
          { from: join(folder, SHADOW, name, 'store'), to: 'store' },
          { from: join(folder, 'metadata'), to: 'metadata' }
        ],
        texts
      }
    await unfreeze(folder, name)
  }
  throw new Error(`tables were created, dropped or swapped ${ROUNDS_MAX} times while they were copied`)
}

/**
 * Releases the frozen files of a name, or all. The engine's counter of freezes goes too: on a full disk it stays empty,
 * and the engine refuses to freeze with an empty one.
 */
export async function unfreeze(folder: string, name = ''): Promise<void> {
  for (const part of [name, 'increment.txt']) await rm(join(folder, SHADOW, part), { recursive: true, force: true })
}

type TableNow = {
  readonly table: string
  readonly hasParts: boolean
  /** Path of the files, and definition, which a migration changes. */
  readonly paths: unknown
  readonly made: unknown
}

/** Lists the tables, bookkeeping first. */
async function tablesNow(tables: ClickHouse['control']): Promise<TableNow[]> {
  const rows = await tables.rows(
    `SELECT t.name AS table, t.engine LIKE '%MergeTree' AS hasParts, t.data_paths AS paths, t.create_table_query AS made
     FROM system.tables AS t WHERE t.database = currentDatabase()
     ORDER BY (arrayFirstIndex(name -> startsWith(t.name, name), {bookkeeping: Array(String)}) AS place) = 0, place,
     t.name`,
    { bookkeeping: BOOKKEEPING }
  )
  return rows.map(({ table, hasParts, paths, made }) => ({
    table: String(table),
    hasParts: Boolean(hasParts),
    paths,
    made
  }))
}

/**
 * Reads definitions: the engine stores a table's definition in the folder of its database, and the format of its files
 * next to its parts.
 */
async function definitions(folder: string): Promise<Map<string, string>> {
  const texts = new Map<string, string>()
  for (const path of await readdir(join(folder, 'store'), { recursive: true })) {
    if (!/^\w{3}\/[\w-]{36}\/[^/]+\.sql$/.test(path)) continue
    const text = await readFile(join(folder, 'store', path), 'utf8')
    texts.set(join('store', path), text)
    const uuid = /^ATTACH TABLE _ UUID '([\w-]{36})'/.exec(text)?.[1]
    if (uuid === undefined) continue
    const format = join('store', uuid.slice(0, 3), uuid, 'format_version.txt')
    texts.set(format, await readFile(join(folder, format), 'utf8'))
  }
  return texts
}

/** The table was changed, dropped or renamed after the list; the next list shows it. */
function ignoreMissing(error: unknown): void {
  if (!isTableDropped(error)) throw error
}
