import { randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { pause } from '@gamenet/schemas'
import { asker, type Question } from '../clickhouse/ask.js'
import { type EngineChild, startChild } from '../clickhouse/child.js'
import { stringLiteral } from '../clickhouse/parameters.js'
import { ANALYST } from '../clickhouse/readers.js'

const MIB = 1024 * 1024
/** The engine itself takes about 300 MiB, and counts at most 512 for all statements. */
const MEMORY_BYTES = 1024 * MIB
/** What the kernel allows in addition to the memory of the start; the stacks of threads take 8 MiB each. */
const STATEMENT_BYTES = 1024 * MIB
const ENDED_POLL_MS = 250

/** Tables at one position of the log. */
export type Snapshot = {
  /** Has the folder `parts/<table>` with the parts of each table. */
  readonly directory: string
  readonly takenAt: string
  readonly position: string
  /** The name of its database. */
  readonly database: string
  readonly tables: readonly { readonly name: string; readonly definition: string }[]
  /** What analysts see: a view reads tables of the database. */
  readonly views: readonly { readonly name: string; readonly select: string }[]
}

export type AnalystOptions = {
  /** Contains nothing else; on the disk of the snapshots. */
  readonly directory: string
  readonly password: string
  /** Time limit of a statement. */
  readonly seconds: number
  /** The port of HTTP and, if it is wanted, of the native protocol; 0 is any free port. */
  readonly ports: readonly number[]
  readonly abiMax?: number | undefined
}

/** A ClickHouse that shows snapshots to analysts. */
export type Analyst = EngineChild & {
  /** Runs a statement as an analyst. */
  ask(statement: string, question: Question): Promise<Uint8Array>
  /** Replaces the views; the tables of the snapshot before are dropped when no statement reads them. */
  show(snapshot: Snapshot): Promise<void>
}

/** Starts ClickHouse as a process of the lowest priority, which the kernel confines to its directory. */
export async function openAnalyst({ directory, password, seconds, ports, abiMax }: AnalystOptions): Promise<Analyst> {
  mkdirSync(directory, { recursive: true })
  const owner = randomBytes(32).toString('base64url')
  const child = await startChild({
    ...{ path: directory, memoryBytes: MEMORY_BYTES, password: owner, grants: 'GRANT ALL ON *.*' },
    ...{ readers: { password, seconds }, ports, abiMax, statementBytes: STATEMENT_BYTES }
  })
  const lines = linesOf(asker(child, owner))
  let shown: string | undefined
  const show = async (snapshot: Snapshot): Promise<void> => {
    const { database, tables, views, takenAt, position } = snapshot
    await lines(`CREATE DATABASE ${database}`)
    for (const { name, definition } of tables) {
      await attach(lines, `${database}.${name}`, definition, join(snapshot.directory, 'parts', name))
    }
    const facts = `parseDateTime64BestEffort(${stringLiteral(takenAt)}, 3, 'UTC') AS taken_at`
    const about = { name: 'snapshot', select: `SELECT ${facts}, ${stringLiteral(position)} AS position` }
    await lines(`CREATE DATABASE IF NOT EXISTS ${ANALYST}`)
    for (const { name, select } of [...views, about]) {
      const security = 'DEFINER = gamenet SQL SECURITY DEFINER'
      await lines(`CREATE OR REPLACE VIEW ${ANALYST}.${name} ${security} AS ${select}`)
    }
    // A statement may read the former tables for long; the new ones are shown already.
    if (shown !== undefined) void dropUnread(lines, shown).catch(() => undefined)
    shown = database
  }
  return { ...child, ask: asker(child, password, ANALYST), show }
}

type Lines = (statement: string) => Promise<readonly string[]>

const linesOf =
  (ask: ReturnType<typeof asker>): Lines =>
  async (statement) => {
    const bytes = await ask(statement, { format: 'TSVRaw' })
    return new TextDecoder().decode(bytes).split('\n').slice(0, -1)
  }

/** Drops a database when the statements that may read it have ended. */
async function dropUnread(lines: Lines, database: string): Promise<void> {
  const began = performance.now()
  const running = () => {
    const before = (performance.now() - began) / 1000
    return lines(`SELECT p.query_id FROM system.processes AS p WHERE p.user = '${ANALYST}' AND p.elapsed > ${before}`)
  }
  while ((await running()).length > 0) await pause(ENDED_POLL_MS)
  await lines(`DROP DATABASE ${database}`)
}

/** Creates a table with these parts: the engine reads a table's folder when the table is attached. */
async function attach(lines: Lines, table: string, definition: string, parts: string): Promise<void> {
  await lines(definition.replace(/^CREATE TABLE (IF NOT EXISTS )?\S+/, `CREATE TABLE ${table}`))
  const [path = ''] = await lines(
    `SELECT t.data_paths[1] FROM system.tables AS t WHERE concat(t.database, '.', t.name) = '${table}'`
  )
  await lines(`DETACH TABLE ${table}`)
  for (const part of readdirSync(parts)) renameSync(join(parts, part), join(path, part))
  rmSync(parts, { recursive: true })
  await lines(`ATTACH TABLE ${table}`)
  await lines(`SYSTEM STOP MERGES ${table}`)
}
