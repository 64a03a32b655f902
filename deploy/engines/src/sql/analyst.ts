import { randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { errorMessage } from '@gamenet/schemas'
import { type Answer, asker } from '../clickhouse/ask.js'
import { type EngineChild, startChild } from '../clickhouse/child.js'
import { ClickHouseError } from '../clickhouse/clickhouse.js'
import { checkPlaceholders } from '../clickhouse/parameters.js'
import { allowedFunctions, type Lines } from './allowed-functions.js'
import { CATALOG, withCatalog } from './catalog.js'
import { checkSelect, type SelectRules, StatementRefused } from './check-select.js'

/** Limits of one statement. */
export type AnalystLimits = {
  readonly seconds: number
  readonly memoryBytes: number
  /** Rows of the answer. */
  readonly rows: number
  readonly bytes: number
}

const MIB = 1024 * 1024

export const ANALYST_LIMITS: AnalystLimits = { seconds: 30, memoryBytes: 256 * MIB, rows: 1_000_000, bytes: 64 * MIB }

/** A snapshot of tables, and the views that statements may read. */
export type AnalystSetup = {
  /** Has the folder `parts/<table>` with the parts of each table; the engine's files are written next to it. */
  readonly directory: string
  readonly tables: readonly { readonly name: string; readonly definition: string }[]
  /** A view reads `stored.<table>`. */
  readonly views: readonly { readonly name: string; readonly select: string }[]
  readonly limits: AnalystLimits
}

export type AnalystCall = {
  readonly statement: string
  readonly format: AnalystFormat
  /** Values of `{name: Type}`, as the engine writes them. */
  readonly parameters: Readonly<Record<string, string>>
  /** Of the protocol that the client speaks, for the format Native; 0 for none. */
  readonly revision?: number
}

/** The engine's names of the formats of answers. */
export const ANALYST_FORMATS = [
  ...['PrettyCompact', 'PrettyCompactNoEscapes', 'TabSeparated', 'TSV', 'TabSeparatedWithNames', 'TSVWithNames'],
  ...['TabSeparatedWithNamesAndTypes', 'TSVWithNamesAndTypes', 'CSV', 'CSVWithNames', 'CSVWithNamesAndTypes', 'JSON'],
  ...[
    'JSONCompact',
    'JSONEachRow',
    'JSONCompactEachRow',
    'JSONCompactEachRowWithNamesAndTypes',
    'Markdown',
    'Vertical'
  ],
  ...['Native', 'RowBinary', 'RowBinaryWithNames', 'RowBinaryWithNamesAndTypes', 'Parquet', 'Arrow', 'ArrowStream']
] as const
export type AnalystFormat = (typeof ANALYST_FORMATS)[number]

/** A statement that was allowed and failed in the engine. */
export class StatementFailed extends Error {}

export type Analyst = {
  /**
   * Runs a statement; one call at a time. Rejects with {@link StatementRefused} or
   * {@link StatementFailed}. The process of a statement that exceeds twice its time is killed; the next call starts another.
   */
  run(call: AnalystCall): Promise<Answer>
  close(): Promise<void>
}

/**
 * Starts the process of a snapshot: a separate engine, with the lowest priority, on hard links to the parts of a few tables.
 * Views of the datasets are in its database `default`; the tables behind them are in `stored`, which no statement can name.
 */
export async function openAnalyst(setup: AnalystSetup): Promise<Analyst> {
  let engine: Engine | undefined = await start(setup)
  return {
    run: async (call) => {
      engine ??= await start(setup)
      const own = engine
      const timer = setTimeout(() => void own.child.kill(), 2000 * setup.limits.seconds)
      const ended = own.child.ended.then(() => {
        if (engine === own) engine = undefined
        const limit = `twice its time or the memory of the machine (${2 * setup.limits.seconds} s)`
        throw new StatementFailed(`The statement was killed: it exceeded ${limit}.`)
      })
      ended.catch(() => undefined)
      try {
        return await Promise.race([answerTo(own, call, setup.limits), ended])
      } catch (error) {
        if (error instanceof ClickHouseError) throw new StatementFailed(error.message)
        if (error instanceof StatementRefused || error instanceof StatementFailed) throw error
        // The connection breaks before the end of the process is known.
        throw await ended
      } finally {
        clearTimeout(timer)
      }
    },
    close: async () => await engine?.child.kill()
  }
}

type Engine = {
  readonly child: EngineChild
  readonly ask: ReturnType<typeof asker>
  readonly rules: SelectRules
}

async function start(setup: AnalystSetup): Promise<Engine> {
  const path = join(setup.directory, 'engine')
  mkdirSync(path, { recursive: true })
  const password = randomBytes(32).toString('base64url')
  const memoryBytes = 2 * setup.limits.memoryBytes
  const options = { path, memoryBytes, password, grants: 'GRANT ALL ON *.*', isBackground: true }
  const child = await startChild(options).catch((error: unknown) => {
    throw new StatementFailed(errorMessage(error))
  })
  const ask = asker(child, password)
  try {
    return { child, ask, rules: await prepare(setup, linesOf(ask)) }
  } catch (error) {
    await child.kill()
    throw error
  }
}

const linesOf =
  (ask: Engine['ask'], parameters: AnalystCall['parameters'] = {}): Lines =>
  async (text) => {
    const answer = new TextDecoder().decode((await ask(text, { format: 'TSVRaw', parameters })).bytes)
    return answer === '' ? [] : answer.replace(/\n$/, '').split('\n')
  }

async function answerTo({ ask, rules }: Engine, call: AnalystCall, limits: AnalystLimits): Promise<Answer> {
  const { statement, format, parameters, revision = 0 } = call
  checkPlaceholders(statement, parameters)
  const name = Object.keys(parameters).find((each) => !/^[A-Za-z_]\w*$/.test(each))
  if (name !== undefined) throw new StatementRefused(`${JSON.stringify(name)} is not a parameter name.`)
  const text = await checkSelect(linesOf(ask, parameters), withCatalog(statement), rules)
  const settings = {
    max_execution_time: limits.seconds,
    max_memory_usage: limits.memoryBytes,
    max_result_rows: limits.rows,
    max_result_bytes: limits.bytes,
    max_threads: 1,
    do_not_merge_across_partitions_select_final: 1,
    ...(revision > 0 && { client_protocol_version: revision })
  }
  return await ask(`${text}\nFORMAT ${format}`, { format, parameters, settings })
}

/** Creates the tables and views, unless an earlier process has. */
async function prepare({ directory, tables, views }: AnalystSetup, lines: Lines): Promise<SelectRules> {
  const databases = [...(await lines('SELECT d.name FROM system.databases AS d'))]
  if (!databases.includes('catalog')) {
    await lines('CREATE DATABASE IF NOT EXISTS stored')
    for (const { name, definition } of tables) await attach(lines, join(directory, 'parts', name), name, definition)
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
async function attach(lines: Lines, parts: string, name: string, definition: string): Promise<void> {
  await lines(definition.replace(/^CREATE TABLE (IF NOT EXISTS )?\S+/, `CREATE TABLE IF NOT EXISTS stored.${name}`))
  const [path = ''] = await lines(
    `SELECT t.data_paths[1] FROM system.tables AS t WHERE t.database = 'stored' AND t.name = '${name}'`
  )
  await lines(`DETACH TABLE stored.${name}`)
  for (const part of readdirSync(parts)) renameSync(join(parts, part), join(path, part))
  await lines(`ATTACH TABLE stored.${name}`)
}
