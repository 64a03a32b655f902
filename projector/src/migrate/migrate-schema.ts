import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { Failure, isTableDropped } from '@gamenet/schemas'
import { restorePointers } from '../rebuild/restore-pointers.js'
import { readDatabaseEngine } from '../store/every-replica.js'
import { readPointers } from '../store/generation.js'
import { storeOver } from '../store/operation.js'
import { replaceReadViews } from '../store/read-view.js'
import { createMigrationTable, readMigrationsApplied, storeMigrationApplied } from '../store/schema-migration.js'
import type { Tables } from '../store/tables.js'
import { OLD_PARTS_SETTINGS } from '../store/user-rows.js'

/** One file of statements, applied once and never changed afterwards. */
export type Migration = {
  /** File name without `.sql`, `NNNN-noun`; the order of names is the order of application. */
  readonly name: string
  readonly statements: readonly string[]
  /** Hash of the statements without their comments: a better explanation is not a change. */
  readonly checksum: string
}

/** The way out for a program whose tables belong to another one. */
export const OTHER_DATABASE = 'another database (CLICKHOUSE_URL, or DATA_DIR where it is embedded)'
const MIGRATIONS = new URL('../../../migrations/', import.meta.url)

/**
 * Migrates the tables to the newest schema, and returns the names of the applied migrations. ClickHouse has no
 * transactions over DDL: after a crash inside a file, or when its row in `schema_migration` is lost, the next run
 * repeats it from its first statement, so every statement must be idempotent (`IF NOT EXISTS`, `IF EXISTS`).
 * Rejects if an applied file was changed, and with `newer_store` if a migration was applied that this program
 * lacks.
 */
export async function migrateSchema(given: Tables, migrations?: readonly Migration[]): Promise<string[]> {
  const wanted = migrations ?? (await readMigrations())
  const tables = await replicating(given)
  const store = storeOver(tables)
  await store.do(createMigrationTable)
  const applied = await store.do(readMigrationsApplied)
  refuseNewerSchema(applied, wanted)
  for (const { name, checksum } of wanted) refuseChanged(name, checksum, applied.get(name))
  const known = wanted.filter(({ name }) => applied.has(name))
  if (known.length > 0) await refuseMissing(tables, known)
  const done: string[] = []
  for (const { name, checksum, statements } of wanted.filter(({ name }) => !applied.has(name))) {
    for (const statement of statements) await executeOnEveryGeneration(tables, statement)
    await store.do(storeMigrationApplied, name, checksum)
    done.push(name)
  }
  await store.do(replaceReadViews, { all: done.length > 0 })
  return done
}

/**
 * Returns tables that are created with engines that replicate, if the database does: else a table would be on every
 * replica, each with rows of its own.
 */
async function replicating(tables: Tables): Promise<Tables> {
  if ((await readDatabaseEngine(tables)) !== 'Replicated') return tables
  const replicated = (sql: string) => sql.replace(/ ENGINE = (?=\w*MergeTree\b)/, ' ENGINE = Replicated')
  return { ...tables, execute: (sql, ...options) => tables.execute(replicated(sql), ...options) }
}

function refuseChanged(name: string, checksum: string, applied = checksum): void {
  if (checksum === applied) return
  throw new Error(
    `Migration ${name} was applied with checksum ${applied} and is now ${checksum}. ` +
      'An applied migration must stay as it was: restore the file and put the change into a new one.'
  )
}

/**
 * Executes a statement of a migration; for a table `name__*`, on each of its generations, including those that a
 * rebuild creates meanwhile.
 */
async function executeOnEveryGeneration(tables: Tables, statement: string): Promise<void> {
  const [pattern, action = '', bare = ''] = /^(ALTER TABLE|DROP TABLE IF EXISTS) (\w+)__\*/.exec(statement) ?? []
  if (pattern === undefined) return await tables.execute(statement)
  const changed = new Set<string>()
  for (;;) {
    const rows = await tables.rows(
      `SELECT t.name AS name FROM system.tables AS t
       WHERE t.database = currentDatabase() AND match(t.name, {pattern: String}) AND t.engine LIKE '%MergeTree'
       ORDER BY t.name`,
      { pattern: `^${bare}__[0-9]+$` }
    )
    const unchanged = rows.map(({ name }) => String(name)).filter((name) => !changed.has(name))
    if (unchanged.length === 0) return
    for (const name of unchanged) {
      await tables.execute(`${action} ${name}${statement.slice(pattern.length)}`).catch((error: unknown) => {
        // Another process may have dropped a former generation meanwhile.
        if (!isTableDropped(error)) throw error
      })
      changed.add(name)
    }
  }
}

const OLD_PARTS = new RegExp(`, (?:${OLD_PARTS_SETTINGS.join('|')}) = 1\\b`, 'g')

/**
 * Reads the hashes of the definitions of tables and views, of all generations; without views for people, samples and
 * copies, and without tables that are dropped meanwhile. Undefined: the engine cannot read the definition.
 */
export async function readDefinitions(tables: Pick<Tables, 'rows'>): Promise<ReadonlyMap<string, string | undefined>> {
  const hashes = new Map<string, string | undefined>()
  for (const name of await definedTables(tables))
    hashes.set(name, await definitionOf(tables, name).catch(() => undefined))
  const left = await definedTables(tables)
  return new Map([...hashes].filter(([name]) => left.includes(name)))
}

async function definedTables(tables: Pick<Tables, 'rows'>): Promise<string[]> {
  const rows = await tables.rows(
    `SELECT t.name AS name FROM system.tables AS t
     WHERE t.database = currentDatabase() AND NOT (t.engine = 'View' AND startsWith(t.as_select, 'SELECT *'))
       AND (position(t.name, '__') = 0 OR match(t.name, '__[0-9]+$')) ORDER BY t.name`
  )
  return rows.map(({ name }) => String(name))
}

/** An engine that replicates: its place in ZooKeeper, then what the plain engine has. */
const REPLICATED = /\bENGINE = (?:Replicated|Shared)(\w+)\('[^']*', '[^']*'(?:, ([^)]*))?\)/

/** Returns the hash of a definition, which is the same for all generations, and with and without replicas. */
async function definitionOf(tables: Pick<Tables, 'rows'>, name: string): Promise<string> {
  const [row] = await tables.rows(`SHOW CREATE TABLE ${name}`)
  const statement = String(row?.statement)
    .replace(/\b(CREATE TABLE|CREATE VIEW|FROM|JOIN) \w+\./g, '$1 ')
    .replace(REPLICATED, (_, engine, own) => `ENGINE = ${engine}${own === undefined ? '' : `(${own})`}`)
    .replaceAll(OLD_PARTS, '')
    .replace(/\nSETTINGS index_granularity = 8192$/, '')
    .replaceAll(GENERATION, '$1')
  return hashOf(statement)
}

const GENERATION = /\b(\w+?)__\d+\b/g

/**
 * Returns the tables and views of an embedded engine whose definition differs from `definitions.json`, in which a test
 * writes what the migrations make.
 */
export async function changedDefinitions(tables: Pick<Tables, 'rows'>): Promise<string[]> {
  const known = JSON.parse(await readFile(new URL('../../../definitions.json', import.meta.url), 'utf8'))
  const hashes = await readDefinitions(tables)
  return [...hashes].filter(([name, hash]) => hash !== known[bareName(name)]).map(([name]) => name)
}

/** Returns the name of a table without its generation. */
export const bareName = (name: string): string => name.replace(GENERATION, '$1')

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16)

/** Reads this program's migrations, in order. */
export async function readMigrations(directory: URL = MIGRATIONS): Promise<Migration[]> {
  const files = (await readdir(directory)).filter((file) => file.endsWith('.sql')).sort()
  return Promise.all(
    files.map(async (file) => migrationOf(file.slice(0, -4), await readFile(new URL(file, directory), 'utf8')))
  )
}

/** Returns the migration with this name and text. */
export function migrationOf(name: string, text: string): Migration {
  const statements = statementsOf(text)
  return { name, statements, checksum: hashOf(statements.join(';\n')) }
}

/**
 * Returns the statements of a file: without comments, split at semicolons outside quotes, with single spaces. Where
 * `COLUMNS name …;` precedes, `{name}` stands for those columns.
 */
export function statementsOf(text: string): string[] {
  const columns = new Map<string, string>()
  return split(text).flatMap((statement) => {
    const [, name, list = ''] = /^COLUMNS (\w+) (.*)$/.exec(statement) ?? []
    if (name === undefined) return statement.replace(/\{(\w+)\}/g, (braces, each) => columns.get(each) ?? braces)
    columns.set(name, list)
    return []
  })
}

function split(text: string): string[] {
  const statements: string[] = []
  let statement = ''
  for (const token of text.match(/--[^\n]*|'(?:[^'\\]|\\.|'')*'|`[^`]*`|;|\s+|[^-'`;\s]+|./gs) ?? []) {
    if (token.startsWith('--')) continue
    if (token === ';') {
      statements.push(statement.trim())
      statement = ''
    } else statement += /^\s/.test(token) ? ' ' : token
  }
  statements.push(statement.trim())
  return statements.filter((each) => each !== '').map((each) => each.replace(/ {2,}/g, ' '))
}

/**
 * Throws if tables of applied migrations are missing: the engine reports no error if a file with a definition is lost.
 */
async function refuseMissing(tables: Tables, applied: readonly Migration[]): Promise<void> {
  const made = new Set<string>()
  for (const statement of applied.flatMap(({ statements }) => statements)) {
    const [, verb, name = ''] = STATEMENT_OF_TABLE.exec(statement) ?? []
    if (verb === 'CREATE') made.add(name)
    if (verb === 'DROP') made.delete(name.replace(/__$/, '__0'))
  }
  const rows = await tables.rows('SELECT t.name AS name FROM system.tables AS t WHERE t.database = currentDatabase()')
  const found = new Set(rows.map(({ name }) => String(name)))
  const missing = [...made].filter((name) => !name.endsWith('__0') && !found.has(name))
  // Without pointers, the generations in use are unknown.
  if (found.has('generation_pointer')) {
    const store = storeOver(tables)
    await restorePointers(store)
    const { serving } = await store.do(readPointers)
    const inUse = [...made].filter((name) => name.endsWith('__0')).map((name) => serving.nameOf(name.slice(0, -3)))
    missing.push(...inUse.filter((name) => !found.has(name)))
  }
  if (missing.length > 0)
    throw new Failure('tables_missing', `${missing.join(', ')} of the tables are missing, although they were created.`)
}

const STATEMENT_OF_TABLE = /^(CREATE|DROP) (?:TABLE|VIEW|MATERIALIZED VIEW) IF (?:NOT )?EXISTS (\w+)/

function refuseNewerSchema(applied: ReadonlyMap<string, string>, wanted: readonly Migration[]): void {
  const known = new Set(wanted.map((migration) => migration.name))
  const unknown = [...applied.keys()].filter((name) => !known.has(name)).sort()
  if (unknown.length === 0) return
  throw new Failure(
    'newer_store',
    `The tables were created by a newer program: they have the migrations ${unknown.join(', ')}, and this program ` +
      `knows up to ${wanted.at(-1)?.name ?? 'none'}. Start the newer program, or give this one ${OTHER_DATABASE}.`
  )
}
