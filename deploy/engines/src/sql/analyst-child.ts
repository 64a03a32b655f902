import { mkdirSync, readdirSync, renameSync } from 'node:fs'
import { setPriority } from 'node:os'
import { join } from 'node:path'
import { errorMessage } from '@gamenet/schemas/errors'
import { CleanSession } from '../clickhouse/clean-session.js'
import { checkPlaceholders, codeOf, stringLiteral } from '../clickhouse/parameters.js'
import { allowedFunctions, type Lines } from './allowed-functions.js'
import type { AnalystAnswer, AnalystCall, AnalystSetup } from './analyst.js'
import { checkSelect, type SelectRules, StatementRefused } from './check-select.js'

/*
 * The process in which analysts' statements run: a separate engine on hard links to the parts of a few tables. It has an empty
 * environment and the lowest priority. Views of the datasets are in its database `default`; the tables behind them are in `stored`,
 * which no statement can name.
 */

const LOWEST_PRIORITY = 19
/** Tables that clients read to list tables and columns, as views that show only the datasets. */
const CATALOG: Readonly<Record<string, string>> = {
  databases: `SELECT d.name AS name, d.engine AS engine, d.comment AS comment FROM system.databases AS d WHERE d.name = 'default'`,
  tables: `SELECT t.database AS database, t.name AS name, t.engine AS engine, t.comment AS comment, t.total_rows AS total_rows,
    t.is_temporary AS is_temporary FROM system.tables AS t WHERE t.database = 'default'`,
  columns: `SELECT c.database AS database, c.table AS table, c.name AS name, c.type AS type, c.position AS position,
    c.default_kind AS default_kind, c.default_expression AS default_expression, c.comment AS comment
    FROM system.columns AS c WHERE c.database = 'default'`,
  settings: `SELECT '' AS name, '' AS value, toUInt8(0) AS changed, '' AS description, '' AS type, toUInt8(1) AS readonly WHERE 0`
}

setPriority(LOWEST_PRIORITY)
const ready = new Promise<AnalystSetup>((resolve) => process.once('message', (setup) => resolve(setup as AnalystSetup)))
const setup = await ready
const session = openSession(setup)
const lines: Lines = async (text) => {
  const answer = (await session.query(text, 'TSVRaw')).text()
  return answer === '' ? [] : answer.replace(/\n$/, '').split('\n')
}
const rules = await prepare(setup)
process.on('message', (call) => void answerTo(call as AnalystCall))
process.once('disconnect', () => process.exit())
process.send?.({ isReady: true })

async function answerTo(call: AnalystCall): Promise<void> {
  const answer: AnalystAnswer = await run(call).then(
    (bytes) => ({ bytes }),
    (error: unknown) => ({ error: errorMessage(error), isRefused: error instanceof StatementRefused })
  )
  process.send?.(answer)
}

/** Parameters stay bound to the connection, so every placeholder needs a value of this call. */
async function run({ statement, format, parameters, limits }: AnalystCall): Promise<Uint8Array> {
  checkPlaceholders(statement, parameters)
  const bindings = Object.entries(parameters).map(([name, value]) => {
    if (!/^[A-Za-z_]\w*$/.test(name)) throw new StatementRefused(`${JSON.stringify(name)} is no name of a parameter.`)
    return `param_${name} = ${stringLiteral(value)}`
  })
  if (bindings.length > 0) await session.query(`SET ${bindings.join(', ')}`, 'Null')
  const text = await checkSelect(lines, withCatalog(statement), rules)
  const settings = [
    `max_execution_time = ${limits.seconds}`,
    `max_memory_usage = ${limits.memoryBytes}`,
    `max_result_rows = ${limits.rows}`,
    `max_result_bytes = ${limits.bytes}`,
    'max_threads = 1',
    'do_not_merge_across_partitions_select_final = 1'
  ]
  return (await session.query(`${text}\nFORMAT ${format} SETTINGS ${settings.join(', ')}`, format)).bytes()
}

/** Renames tables of `system` that clients read. The check comes afterwards, so a wrong place is refused or harmless. */
function withCatalog(statement: string): string {
  const code = codeOf(statement)
  let text = ''
  let end = 0
  for (const { index, 0: found, 1: table = '' } of code.matchAll(CATALOG_NAME)) {
    text += `${statement.slice(end, index)}catalog.${table.toLowerCase()}`
    end = index + found.length
  }
  return text + statement.slice(end)
}

const CATALOG_NAME = new RegExp(`\\bsystem\\.(${Object.keys(CATALOG).join('|')})\\b`, 'gi')

function openSession({ directory, limits }: AnalystSetup): CleanSession {
  const path = join(directory, 'engine')
  mkdirSync(path, { recursive: true })
  return new CleanSession(path, [
    '--async_load_databases=0',
    '--async_load_system_database=0',
    `--max_server_memory_usage=${2 * limits.memoryBytes}`,
    `--mark_cache_size=${limits.memoryBytes / 8}`,
    `--primary_index_cache_size=${limits.memoryBytes / 8}`
  ])
}

/** Creates the tables and views, unless an earlier process has. */
async function prepare({ directory, tables, views }: AnalystSetup): Promise<SelectRules> {
  const databases = [...(await lines('SELECT d.name FROM system.databases AS d'))]
  if (!databases.includes('catalog')) {
    await lines('CREATE DATABASE IF NOT EXISTS stored')
    for (const { name, definition } of tables) await attach(join(directory, 'parts', name), name, definition)
    for (const { name, select } of views) await lines(`CREATE OR REPLACE VIEW ${name} AS ${select}`)
    await lines('CREATE DATABASE catalog')
    databases.push('stored', 'catalog')
  }
  for (const [name, select] of Object.entries(CATALOG))
    await lines(`CREATE OR REPLACE VIEW catalog.${name} AS ${select}`)
  for (const { name } of tables) await lines(`SYSTEM STOP MERGES stored.${name}`)
  const names = views.flatMap(({ name }) => [name, `default.${name}`])
  return {
    functions: await allowedFunctions(lines),
    tables: new Set([...names, ...Object.keys(CATALOG).map((name) => `catalog.${name}`)]),
    hidden: new Set(databases)
  }
}

/** Creates a table with these parts: the engine reads a table's folder when the table is attached. */
async function attach(parts: string, name: string, definition: string): Promise<void> {
  await lines(definition.replace(/^CREATE TABLE (IF NOT EXISTS )?\S+/, `CREATE TABLE IF NOT EXISTS stored.${name}`))
  const [path = ''] = await lines(
    `SELECT t.data_paths[1] FROM system.tables AS t WHERE t.database = 'stored' AND t.name = '${name}'`
  )
  await lines(`DETACH TABLE stored.${name}`)
  for (const part of readdirSync(parts)) renameSync(join(parts, part), join(path, part))
  await lines(`ATTACH TABLE stored.${name}`)
}
