import { accessSync, closeSync, constants, existsSync, mkdirSync, openSync, readdirSync, readFileSync } from 'node:fs'
import { devNull, totalmem } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { errorCode, errorMessage, withTimeout } from '@gamenet/schemas'
import { drainPending } from 'chdb'
import { EngineUnopened } from '../flush-files.js'
import { CleanSession } from './clean-session.js'
import { type ClickHouse, ClickHouseError, LANE_NAMES, type LaneName } from './clickhouse.js'
import { engineOf, type LaneSlots } from './engine.js'
import {
  type Connection,
  engineError,
  KILLABLE,
  laneOf,
  type Overdue,
  running,
  type Statement,
  type Streaming,
  type StreamStatement
} from './lane.js'
import { parameterText, stringLiteral } from './parameters.js'
import { makePipes, type Pipe } from './pipe.js'
import { ended, slotsOf } from './slots.js'
import { ALL_SETTING_NAMES, EXPORTS_MAX, LANE_LIMITS, type LaneLimits, laneSize } from './statement.js'

export type ChdbOptions = {
  /** The engine's data directory; created if missing. One process and one directory at a time. */
  readonly path: string
  /** Number of concurrent reads. */
  readonly readers?: number | undefined
  /** Maximum number of waiting reads; further ones are refused with `engine_busy`. */
  readonly queueMax?: number
  /** Overrides the default limits of lanes. */
  readonly limits?: Partial<Readonly<Record<LaneName, LaneLimits>>>
  /** Memory limit of the whole engine in bytes. Default: half of the process's limit, at most 3 GiB. */
  readonly memoryBytes?: number | undefined
  /** The number of libuv's threads (`UV_THREADPOOL_SIZE`), which run the statements. */
  readonly threadPoolSize?: number
  /** Watches reads and inserts that hang. */
  readonly overdue?: Overdue
  /** Called with warnings. */
  readonly warn?: (sentence: string) => void
}

const MIB = 1024 * 1024
const MEMORY_BYTES_MAX = 3072 * MIB
const CLOSE_WAIT_MS = 3000
const CLOSE_KILL_WAIT_MS = 1000
const CLOSE_DRAIN_WAIT_MS = 500
/** Threads reserved for files, DNS and gzip. */
const SPARE_THREADS = 4

/**
 * Opens ClickHouse in this process. Rejects with one sentence if the directory is not writable or in use by another
 * process, or if this process has another directory open.
 */
export const openChdb = async (options: ChdbOptions): Promise<ClickHouse> => {
  const readers = options.readers ?? 3
  checkDirectory(options.path)
  checkDefinitions(options.path)
  endStandardInput()
  const sessions: CleanSession[] = []
  const pipes = await makePipes(EXPORTS_MAX)
  const open = (index: number): Connection => {
    const session = openSession(options.path, options.memoryBytes ?? usualMemoryBytes())
    sessions.push(session)
    return connectionOf(session, options.path, () => pipes.open(index))
  }
  try {
    const slots = {} as Record<LaneName, LaneSlots>
    for (const name of LANE_NAMES) {
      const { slots: length, ...limits } = laneSize(name, { readers, control: 1, queueMax: options.queueMax })
      slots[name] = slotsOf(
        name,
        Array.from({ length }, (_, index) => open(index)),
        limits
      )
    }
    warnOfFewThreads(options, sessions.length)
    const names = await knownSettings(slots.control)
    const known = () => Promise.resolve(names)
    const kill = (tag: string) =>
      killWhere(slots.control, `Settings['log_comment'] = ${stringLiteral(tag)} AND ${KILLABLE}`)
    return engineOf({
      slots,
      lane: (name) =>
        laneOf({
          ...{ name, slots: slots[name], limits: options.limits?.[name] ?? LANE_LIMITS[name] },
          ...{ known, kill, overdue: options.overdue }
        }),
      close: () => closeSessions(slots, sessions).finally(pipes.remove)
    })
  } catch (error) {
    for (const session of sessions) session.close()
    await pipes.remove()
    throw error
  }
}

let hasStandardInput = true

/**
 * Replaces standard input by an empty file: chDB reads what it has as rows of its own INSERTs, and a shell loop or a
 * supervisor gives it something else. What a command wants of it, it has read before. A process that opens other engines
 * calls it before them: a file that another thread opens between the two steps takes the place.
 */
export const endStandardInput = (): void => {
  if (!hasStandardInput) return
  hasStandardInput = false
  closeSync(0)
  const descriptor = openSync(devNull, 'r')
  if (descriptor !== 0)
    throw new Error(`Standard input cannot be replaced: descriptor 0 was taken, ${descriptor} is free.`)
}

/** Kills statements that still run after the wait, and releases the directory when none is left. */
const closeSessions = async (slots: Readonly<Record<LaneName, LaneSlots>>, sessions: readonly CleanSession[]) => {
  const working = LANE_NAMES.filter((name) => name !== 'control').map((name) => slots[name])
  const allIdle = Promise.all(working.map((lane) => lane.idle()))
  if (!(await resolvesWithin(allIdle, CLOSE_WAIT_MS))) {
    void killWhere(slots.control, `query NOT LIKE 'KILL QUERY%'`)
    await resolvesWithin(allIdle, CLOSE_KILL_WAIT_MS)
  }
  slots.control.close()
  const quiet = Promise.all([allIdle, slots.control.idle(), ...sessions.map((session) => session.idle())])
  // Closing a connection during a statement crashes the process, so such a connection stays open until the
  // statement ends.
  if (!(await resolvesWithin(quiet, CLOSE_KILL_WAIT_MS))) return
  for (const session of sessions) session.close()
  await resolvesWithin(drainPending(), CLOSE_DRAIN_WAIT_MS)
}

const resolvesWithin = (work: Promise<unknown>, ms: number): Promise<boolean> =>
  withTimeout(
    work.then(() => true),
    ms,
    () => false
  )

/** A container may have far less memory than its machine. Without a limit, Node reports an enormous one, or 0. */
const usualMemoryBytes = (): number => {
  const limit = process.constrainedMemory()
  return Math.min(MEMORY_BYTES_MAX, Math.min(totalmem(), limit > 0 ? limit : totalmem()) / 2)
}

const warnOfFewThreads = (options: ChdbOptions, sessions: number): void => {
  const needed = sessions + SPARE_THREADS
  if (options.threadPoolSize === undefined || options.threadPoolSize >= needed) return
  options.warn?.(
    `UV_THREADPOOL_SIZE is ${options.threadPoolSize}; ${sessions} ClickHouse connections need at least ${needed}, or long queries block file access. Set it before Node starts.`
  )
}

const checkDirectory = (path: string): void => {
  try {
    mkdirSync(path, { recursive: true })
    accessSync(path, constants.W_OK)
  } catch (cause) {
    throw new ClickHouseError(
      `The ClickHouse directory ${path} cannot be written (${errorCode(cause)}); give a directory that this user may write.`,
      { cause }
    )
  }
}

/**
 * Checks the table definitions. The engine prints an unparsable definition to standard error, with its raw bytes; if
 * one character of a table's UUID is wrong, it opens the table as an empty one.
 */
const checkDefinitions = (path: string): void => {
  const namesIn = (...directory: string[]) =>
    existsSync(join(path, ...directory)) ? readdirSync(join(path, ...directory)) : []
  const uuids = namesIn('store').flatMap((prefix) => namesIn('store', prefix))
  for (const database of namesIn('metadata').filter((name) => !name.endsWith('.sql'))) {
    for (const name of namesIn('metadata', database).filter((each) => each.endsWith('.sql'))) {
      const file = join(path, 'metadata', database, name)
      const text = readFileSync(file, 'latin1')
      const uuid = /UUID '([0-9a-f-]{36})'/.exec(text)?.[1] ?? ''
      const isOther = !uuids.includes(uuid) && uuids.some((each) => differencesOf(each, uuid) === 1)
      if (isOther || /[^\t\n\x20-\x7e]/.test(text))
        throw new EngineUnopened('tables', `ClickHouse cannot open ${path}: the definition in ${file} is damaged`)
    }
  }
}

const differencesOf = (a: string, b: string): number =>
  a.length === b.length ? [...a].filter((character, at) => character !== b[at]).length : Number.POSITIVE_INFINITY

const openSession = (path: string, memoryBytes: number): CleanSession => {
  try {
    return new CleanSession(path, connectionArgs(memoryBytes))
  } catch (cause) {
    throw openFailure(path, cause)
  }
}

/**
 * Returns the process that holds the directory: the engine locks its file `status`, which names it. The engine prints
 * the reason of a failed open only to standard error.
 */
const holderOf = (path: string): number | undefined => {
  try {
    const pid = Number(/^PID: (\d+)$/m.exec(readFileSync(join(path, 'status'), 'utf8'))?.[1])
    if (pid === process.pid) return undefined
    process.kill(pid, 0)
    return pid
  } catch {
    return undefined
  }
}

const openFailure = (path: string, cause: unknown): Error => {
  const text = errorMessage(cause)
  const holder = holderOf(path)
  if (holder !== undefined) {
    const used = `The ClickHouse directory ${path} is in use by another process (${holder})`
    return new ClickHouseError(`${used}; stop that one or give another directory.`, { cause })
  }
  if (text.includes('only one active data directory')) {
    const other = 'this process has another directory open, and one process can have only one.'
    return new ClickHouseError(`ClickHouse cannot open ${path}: ${other}`, { cause })
  }
  const said = `ClickHouse cannot open ${path}: ${text.replace(/\s+/g, ' ').slice(0, 500)}`
  return new EngineUnopened('tables', said, { cause })
}

const CONFIG_FILE = fileURLToPath(new URL('../../../chdb.xml', import.meta.url))

/** Command-line settings of the embedded server. It keeps no system tables about itself and writes no log. */
const connectionArgs = (memoryBytes: number): string[] => [
  `--config-file=${CONFIG_FILE}`,
  '--async_load_databases=0',
  '--async_load_system_database=0',
  // Dropped tables are never restored, and an erasure waits for their files: 8 minutes by default.
  '--database_atomic_delay_before_drop_table_sec=0',
  `--max_server_memory_usage=${Math.floor(memoryBytes)}`,
  // The default caches may take 5 GiB each. The marks and keys of 100 million rows take about 10 MB.
  `--mark_cache_size=${128 * MIB}`,
  `--index_mark_cache_size=${16 * MIB}`,
  `--primary_index_cache_size=${128 * MIB}`,
  `--query_condition_cache_size=${16 * MIB}`,
  // A parameter with some thousand keys is longer than the default of 256 KiB.
  `--max_query_size=${64 * MIB}`
]

const connectionOf = (session: CleanSession, path: string, openPipe: () => Promise<Pipe>): Connection => ({
  run: async (statement) => {
    try {
      return (await session.query(bound(statement), 'JSONEachRow')).bytes()
    } catch (cause) {
      throw engineError(errorMessage(cause), statement.text, cause)
    }
  },
  stream: (statement) => streamThroughPipe(session, openPipe, statement),
  put: async (target, body) => {
    try {
      if (body.format === 'Native') await session.insertNative({ ...target, bytes: body.bytes, folder: path })
      else await session.insert({ ...target, format: 'JSONCompactEachRow', values: body.bytes })
    } catch (cause) {
      throw engineError(errorMessage(cause), `INSERT INTO ${target.table}`, cause)
    }
  }
})

/**
 * Streams through a named pipe, which the engine writes like a file. The stream of chDB 3.4 writes each block as a separate
 * file, with a heading, which no reader of Parquet or Arrow accepts. The pipe makes the engine wait for a slow reader.
 */
const streamThroughPipe = async (
  session: CleanSession,
  openPipe: () => Promise<Pipe>,
  { sql, settings, format, parameters, tag }: StreamStatement
): Promise<Streaming> => {
  const pipe = await openPipe()
  const text = `INSERT INTO FUNCTION file(${stringLiteral(pipe.path)}, ${format})\n${sql}\nSETTINGS ${settings}`
  const done = session.query(bound({ text, parameters, tag }), 'Null').catch((cause: unknown) => {
    throw engineError(errorMessage(cause), sql, cause)
  })
  return { body: pipe.until(done), done }
}

/**
 * Puts the parameters before the statement. `SET param_…` binds them to this connection and runs concurrently with
 * other connections; the package's own binding serializes all parameterised statements of the process.
 */
const bound = ({ text, parameters }: Statement): string => {
  const assignments = Object.entries(parameters).map(([name, value]) => {
    if (!/^[A-Za-z_]\w*$/.test(name)) throw new ClickHouseError(`${JSON.stringify(name)} is not a parameter name.`)
    return `param_${name} = ${stringLiteral(parameterText(name, value))}`
  })
  return assignments.length === 0 ? text : `SET ${assignments.join(', ')};\n${text}`
}

const runOn = (control: LaneSlots, text: string): Promise<Uint8Array> =>
  control.run((connection) => running(connection.run({ text, parameters: {}, tag: '' })))

/** Returns the names of our settings that this build supports. */
const knownSettings = async (control: LaneSlots): Promise<ReadonlySet<string>> => {
  const names = ALL_SETTING_NAMES.map(stringLiteral).join(', ')
  const bytes = await runOn(control, `SELECT name FROM system.settings WHERE name IN (${names}) FORMAT TSV`)
  return new Set(new TextDecoder().decode(bytes).split('\n'))
}

/**
 * Kills matching queries. A query that has ended meanwhile is not found, which is fine. Never with SYNC, which waits
 * for the query.
 */
const killWhere = (control: LaneSlots, condition: string): Promise<void> =>
  ended(runOn(control, `KILL QUERY WHERE ${condition}`))
