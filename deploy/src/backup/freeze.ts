import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { ClickHouse } from '@gamenet/engines'

/*
 * freeze   hard links to the files of all tables as they are now, which merges and deletions leave alone
 */

/** What is frozen, and the definitions of the tables that it belongs to. */
export type Frozen = {
  /** Files and folders, and where they go in a data directory of tables. */
  readonly trees: readonly { readonly from: string; readonly to: string }[]
  /** Texts of files, by where they go. */
  readonly texts: ReadonlyMap<string, string>
}

/** Where the engine puts what is frozen; everything in it is ours. */
export const SHADOW = 'shadow'

const ROUNDS_MAX = 5

/**
 * Tables that say what was done with others, and so must not be newer than these: what they say is then in the copy. What
 * they do not say yet is done again.
 */
export const BOOKKEEPING = [
  'checkpoint',
  'parked_decision',
  'late_batch_taken',
  'forgotten',
  'projection_definition',
  'rebuild',
  'rebuild_owner',
  // Written before it is decided and taken, and after its rows.
  'late_batch'
] as const

/**
 * Freezes all tables, the bookkeeping first: what it says was taken is then in the tables that are frozen behind it.
 * What is in these beyond it is taken again after a restore, as after a crash. A change of the tables themselves meanwhile (a swap of two, a migration)
 * begins it again.
 * @param folder the engine's data directory
 */
export async function freezeTables(tables: ClickHouse['control'], folder: string, name: string): Promise<Frozen> {
  for (let round = 1; round <= ROUNDS_MAX; round += 1) {
    const before = await tablesNow(tables)
    const texts = await definitions(folder)
    for (const { table } of before.filter(({ hasParts }) => hasParts)) {
      await tables.execute(`ALTER TABLE ${table} FREEZE WITH NAME '${name}'`).catch(ignoreMissing)
    }
    if (JSON.stringify(before) === JSON.stringify(await tablesNow(tables))) {
      return {
        trees: [
          { from: join(folder, SHADOW, name, 'store'), to: 'store' },
          { from: join(folder, 'metadata'), to: 'metadata' }
        ],
        texts
      }
    }
    await unfreeze(folder)
  }
  throw new Error(`the tables were made, dropped or swapped ${ROUNDS_MAX} times while they were copied`)
}

/** Releases the frozen files. */
export async function unfreeze(folder: string): Promise<void> {
  await rm(join(folder, SHADOW), { recursive: true, force: true })
}

type TableNow = {
  readonly table: string
  readonly hasParts: boolean
  /** Where its files are, and what it is made of: a swap shows in the first, a change in the second. */
  readonly paths: unknown
  readonly made: unknown
}

/** Bookkeeping first. */
async function tablesNow(tables: ClickHouse['control']): Promise<TableNow[]> {
  const rows = await tables.rows(
    `SELECT t.name AS table, t.engine LIKE '%MergeTree' AS hasParts, t.data_paths AS paths, t.create_table_query AS made
     FROM system.tables AS t WHERE t.database = currentDatabase()
     ORDER BY (arrayFirstIndex(name -> startsWith(t.name, name), {bookkeeping: Array(String)}) AS place) = 0, place, t.name`,
    { bookkeeping: BOOKKEEPING }
  )
  return rows.map(({ table, hasParts, paths, made }) => ({
    table: String(table),
    hasParts: Boolean(hasParts),
    paths,
    made
  }))
}

/** The engine keeps a table's definition in the folder of its database, and the format of its files next to its parts. */
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

/** What all tables hold, in bytes. */
export async function bytesOfTables(tables: ClickHouse['control']): Promise<number> {
  const [row] = await tables.rows(
    'SELECT toUInt64(sum(p.bytes_on_disk)) AS bytes FROM system.parts AS p WHERE p.database = currentDatabase() AND p.active'
  )
  return Number(row?.bytes)
}

/** Changed, dropped or renamed between the list and the statement; the next look at the list shows it. */
function ignoreMissing(error: unknown): void {
  if (!(error instanceof Error && /UNKNOWN_TABLE/.test(error.message))) throw error
}
