import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { storeOver } from './operation.js'
import { createMigrationTable, readMigrationsApplied, storeMigrationApplied } from './schema-migration.js'
import type { Tables } from './tables.js'

/** One file of statements, applied once and never changed afterwards. */
export type Migration = {
  /** File name without `.sql`, `NNNN-noun`; the order of names is the order of application. */
  readonly name: string
  readonly statements: readonly string[]
  /** Hash of the statements without their comments: a better explanation is no change. */
  readonly checksum: string
}

const MIGRATIONS = new URL('../../../migrations/', import.meta.url)

/** Tables that were made are no longer there. */
export class MissingTables extends Error {}

/** The tables were made by a newer program. */
export class NewerTables extends Error {}

/**
 * Brings the tables to the newest schema and gives the names of the migrations that it applied. ClickHouse has no
 * transaction over DDL: a crash inside a file leaves it unrecorded, and the next run repeats it from its first
 * statement, which is why each statement must be one that may run twice (`IF NOT EXISTS`, `IF EXISTS`).
 * Rejects when an applied file was changed, and with {@link NewerTables} when the tables know migrations that this program
 * does not.
 */
export async function migrate(tables: Tables, migrations?: readonly Migration[]): Promise<string[]> {
  const wanted = migrations ?? (await readMigrations())
  const store = storeOver(tables)
  await store.do(createMigrationTable)
  const applied = await store.do(readMigrationsApplied)
  refuseNewerSchema(applied, wanted)
  await refuseMissing(
    tables,
    wanted.filter(({ name, checksum }) => applied.get(name) === checksum)
  )
  const done: string[] = []
  for (const migration of wanted) {
    const checksum = applied.get(migration.name)
    if (checksum !== undefined && checksum !== migration.checksum) {
      throw new Error(
        `Migration ${migration.name} was applied with checksum ${checksum} and is now ${migration.checksum}. ` +
          'An applied migration must stay as it was: restore the file and put the change into a new one.'
      )
    }
    if (checksum !== undefined) continue
    for (const statement of migration.statements) await tables.execute(statement)
    await store.do(storeMigrationApplied, migration.name, migration.checksum)
    done.push(migration.name)
  }
  return done
}

/** A table or view, as `schema.sql` has it. */
export async function definitionOf(tables: Pick<Tables, 'rows'>, name: string): Promise<string> {
  const [row] = await tables.rows(`SHOW CREATE TABLE ${name}`)
  const statement = String(row?.statement)
    .replace(/^CREATE TABLE \w+\./, 'CREATE TABLE ')
    .replace(/\nSETTINGS index_granularity = 8192$/, '')
  return `${statement};\n`
}

/** Tables and views that are not what the migrations made, of an embedded engine. */
export async function changedDefinitions(tables: Pick<Tables, 'rows'>): Promise<string[]> {
  const schema = await readFile(new URL('../../../schema.sql', import.meta.url), 'utf8')
  const names = await tables.rows(
    `SELECT t.name AS name FROM system.tables AS t
     WHERE t.database = currentDatabase() AND position(t.name, '__') = 0 ORDER BY t.name`
  )
  const changed: string[] = []
  for (const { name } of names) {
    const definition = await definitionOf(tables, String(name)).catch(() => '-')
    if (!schema.includes(definition)) changed.push(String(name))
  }
  return changed
}

/** The migrations that belong to this program, in order. */
export async function readMigrations(directory: URL = MIGRATIONS): Promise<Migration[]> {
  const files = (await readdir(directory)).filter((file) => file.endsWith('.sql')).sort()
  return Promise.all(
    files.map(async (file) => migrationOf(file.slice(0, -4), await readFile(new URL(file, directory), 'utf8')))
  )
}

/** A migration of its name and the text of its file. */
export function migrationOf(name: string, text: string): Migration {
  const statements = statementsOf(text)
  const checksum = createHash('sha256').update(statements.join(';\n')).digest('hex').slice(0, 16)
  return { name, statements, checksum }
}

/** The statements of a file: comments taken out, cut at semicolons outside quotes, white space made single. */
export function statementsOf(text: string): string[] {
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

/** The engine opens a directory without what a lost file of it defined, and says nothing. */
async function refuseMissing(tables: Tables, applied: readonly Migration[]): Promise<void> {
  const made = new Set<string>()
  for (const statement of applied.flatMap(({ statements }) => statements)) {
    const [, verb, name = ''] = STATEMENT_OF_TABLE.exec(statement) ?? []
    if (verb === 'CREATE') made.add(name)
    if (verb === 'DROP') made.delete(name)
  }
  const rows = await tables.rows('SELECT t.name AS name FROM system.tables AS t WHERE t.database = currentDatabase()')
  for (const { name } of rows) made.delete(String(name))
  if (made.size > 0)
    throw new MissingTables(`${[...made].join(', ')} of the tables are missing, though they were made.`)
}

const STATEMENT_OF_TABLE = /^(CREATE|DROP) (?:TABLE|VIEW|MATERIALIZED VIEW) IF (?:NOT )?EXISTS (\w+)/

function refuseNewerSchema(applied: ReadonlyMap<string, string>, wanted: readonly Migration[]): void {
  const known = new Set(wanted.map((migration) => migration.name))
  const unknown = [...applied.keys()].filter((name) => !known.has(name)).sort()
  if (unknown.length === 0) return
  throw new NewerTables(
    `The tables were made by a newer program: they have the migrations ${unknown.join(', ')}, and this program ` +
      `knows up to ${wanted.at(-1)?.name ?? 'none'}. Start the newer program, or give this one ` +
      'another database (CLICKHOUSE_URL, or DATA_DIR where it is embedded).'
  )
}
