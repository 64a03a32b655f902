import { existsSync, mkdirSync, readdirSync, renameSync } from 'node:fs'
import { setPriority } from 'node:os'
import { join } from 'node:path'
import { errorMessage } from '@gamenet/schemas/errors'
import { CleanSession } from '../clickhouse/clean-session.js'
import { checkPlaceholders, stringLiteral } from '../clickhouse/parameters.js'
import { allowedFunctions, type Lines } from './allowed-functions.js'
import type { AnalystAnswer, AnalystCall, AnalystRows, AnalystSetup } from './analyst.js'
import { CATALOG, withCatalog } from './catalog.js'
import { checkSelect, type SelectRules, StatementRefused } from './check-select.js'

/*
 * The process in which analysts' statements run: a separate engine on hard links to the parts of a few tables. It has an empty
 * environment and the lowest priority. Views of the datasets are in its database `default`; the tables behind them are in `stored`,
 * which no statement can name.
 */

const LOWEST_PRIORITY = 19
/** Linux gives each thread a priority; a new one has that of its creator. Node has threads before this module, and statements run in them. */
const THREADS = '/proc/self/task'

for (const thread of existsSync(THREADS) ? readdirSync(THREADS) : [process.pid])
  setPriority(Number(thread), LOWEST_PRIORITY)
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
  const answer: AnalystAnswer = await run(call).catch((error: unknown) => ({
    error: errorMessage(error),
    isRefused: error instanceof StatementRefused
  }))
  process.send?.(answer)
}

/** Parameters stay bound to the connection, so every placeholder needs a value of this call. */
async function run({ statement, format, parameters, limits }: AnalystCall): Promise<AnalystRows> {
  checkPlaceholders(statement, parameters)
  const bindings = Object.entries(parameters).map(([name, value]) => {
    if (!/^[A-Za-z_]\w*$/.test(name)) throw new StatementRefused(`${JSON.stringify(name)} is not a parameter name.`)
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
  const answer = await session.query(`${text}\nFORMAT ${format} SETTINGS ${settings.join(', ')}`, format)
  return { bytes: answer.bytes(), rows: answer.rowsRead }
}

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
