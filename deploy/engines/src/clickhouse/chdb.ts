import { accessSync, constants, mkdirSync } from 'node:fs'
import { type ChdbResult, drainPending, Session } from 'chdb'
import {
  type ClickHouse,
  ClickHouseError,
  engineError,
  LANE_NAMES,
  type Lane,
  type LaneName,
  type Parameters
} from './clickhouse.js'
import { checkPlaceholders, parameterText, stringLiteral } from './parameters.js'
import { type Running, type Slots, slotsOf } from './slots.js'
import {
  ALL_SETTING_NAMES,
  ANSWER_SETTINGS,
  BODY_SETTINGS,
  checkNames,
  command,
  jsonArray,
  knownOf,
  LANE_LIMITS,
  type LaneLimits,
  limitSettings,
  parseRows,
  question,
  type Settings,
  settingsText,
  WRITE_SETTINGS
} from './statement.js'

export type ChdbOptions = {
  /** The engine's data directory; made when absent. One process and one directory at a time. */
  readonly path: string
  /** Reads that run at once. */
  readonly readers?: number
  /** Reads that may wait for one of them; the next is refused with `engine_busy`. */
  readonly queueMax?: number
  /** Limits of single lanes instead of the usual ones. */
  readonly limits?: Partial<Readonly<Record<LaneName, LaneLimits>>>
  /** What the whole engine may hold in memory, in bytes. */
  readonly memoryBytes?: number
  /** The number of libuv's threads (`UV_THREADPOOL_SIZE`), which run the statements. */
  readonly threadPoolSize?: number
  /** Told what does not stop the engine but will hurt. */
  readonly warn?: (sentence: string) => void
}

const MIB = 1024 * 1024
const MEMORY_BYTES = 3072 * MIB
/** Lanes of one connection serve callers that wait for each answer; more waiting than this is a loop gone wild. */
const SERIAL_QUEUE_MAX = 1024
const BUSY_RETRY_SECONDS = 1
const CLOSE_WAIT_MS = 3000
const CLOSE_KILL_WAIT_MS = 1500
/** Threads that must stay free of statements: files, DNS, gzip. */
const SPARE_THREADS = 4

/**
 * Opens ClickHouse in this process. Rejects with one sentence when the directory cannot be used: not writable, in use
 * by another process, or another directory is open in this one.
 */
export const openChdb = async (options: ChdbOptions): Promise<ClickHouse> => {
  const readers = options.readers ?? 3
  warnOfFewThreads(options, readers + 4)
  checkDirectory(options.path)
  const sessions: Session[] = []
  const open = (): Session => {
    const session = openSession(options.path, options.memoryBytes ?? MEMORY_BYTES)
    sessions.push(session)
    return session
  }
  const slots = {} as Record<LaneName, Slots<Session>>
  try {
    for (const name of LANE_NAMES) {
      slots[name] = slotsOf(name, Array.from({ length: name === 'readers' ? readers : 1 }, open), {
        queueMax: name === 'readers' ? (options.queueMax ?? 64) : SERIAL_QUEUE_MAX,
        retryAfterSeconds: BUSY_RETRY_SECONDS
      })
    }
    const known = await knownSettings(slots.control)
    const lanes = {} as Record<LaneName, Lane>
    for (const name of LANE_NAMES) {
      lanes[name] = laneOf(slots[name], slots.control, options.limits?.[name] ?? LANE_LIMITS[name], known)
    }
    return engineOf(lanes, slots, sessions)
  } catch (error) {
    for (const session of sessions) session.close()
    throw error
  }
}

const engineOf = (
  lanes: Readonly<Record<LaneName, Lane>>,
  slots: Readonly<Record<LaneName, Slots<Session>>>,
  sessions: readonly Session[]
): ClickHouse => {
  let closing: Promise<void> | undefined
  return {
    ...lanes,
    version: async () => String((await lanes.control.rows('SELECT version() AS version'))[0]?.version),
    stats: () => ({
      lanes: {
        loader: slots.loader.stats(),
        projections: slots.projections.stats(),
        rebuild: slots.rebuild.stats(),
        readers: slots.readers.stats(),
        control: slots.control.stats()
      }
    }),
    close: () => {
      closing ??= closeEngine(slots, sessions)
      return closing
    }
  }
}

/** Statements that still run after the wait are killed; a directory is only released when none is left. */
const closeEngine = async (slots: Readonly<Record<LaneName, Slots<Session>>>, sessions: readonly Session[]) => {
  const working = LANE_NAMES.filter((name) => name !== 'control').map((name) => slots[name])
  for (const lane of working) lane.close()
  const allIdle = Promise.all(working.map((lane) => lane.idle()))
  if (!(await settlesWithin(allIdle, CLOSE_WAIT_MS))) {
    void slots.control
      .run((session) => running(session.queryAsync(`KILL QUERY WHERE query NOT LIKE 'KILL QUERY%'`)))
      .catch(() => undefined)
    await settlesWithin(allIdle, CLOSE_KILL_WAIT_MS)
  }
  slots.control.close()
  for (const session of sessions) session.close()
  await settlesWithin(drainPending(), CLOSE_KILL_WAIT_MS / 3)
}

const settlesWithin = async (work: Promise<unknown>, ms: number): Promise<boolean> => {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), ms)
  })
  try {
    return await Promise.race([work.then(() => true as const), timeout])
  } finally {
    clearTimeout(timer)
  }
}

const warnOfFewThreads = (options: ChdbOptions, sessions: number): void => {
  const needed = sessions + SPARE_THREADS
  if (options.threadPoolSize === undefined || options.threadPoolSize >= needed) return
  options.warn?.(
    `UV_THREADPOOL_SIZE is ${options.threadPoolSize}; ${sessions} ClickHouse connections need at least ${needed}, or long queries hold up file access. Set it before Node starts.`
  )
}

const checkDirectory = (path: string): void => {
  try {
    mkdirSync(path, { recursive: true })
    accessSync(path, constants.W_OK)
  } catch (cause) {
    throw new ClickHouseError(
      `The ClickHouse directory ${path} cannot be written (${codeOfError(cause)}); give a directory that this user may write.`,
      { cause }
    )
  }
}

const codeOfError = (cause: unknown): string =>
  cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause)

const openSession = (path: string, memoryBytes: number): Session => {
  try {
    return new Session(path, { connectionArgs: connectionArgs(memoryBytes) })
  } catch (cause) {
    const text = cause instanceof Error ? cause.message : String(cause)
    throw new ClickHouseError(`ClickHouse does not open ${path}: ${text}`, { cause })
  }
}

const connectionArgs = (_memoryBytes: number): string[] => [
  '--async_load_databases=0',
  '--async_load_system_database=0',
  // A list of some thousand keys as a parameter is longer than the usual 256 KiB.
  `--max_query_size=${64 * MIB}`
]

/** The names of our settings that this build knows. */
const knownSettings = async (control: Slots<Session>): Promise<ReadonlySet<string>> => {
  const names = ALL_SETTING_NAMES.map(stringLiteral).join(', ')
  const sql = `SELECT name FROM system.settings WHERE name IN (${names})`
  const result = await control.run((session) => running(session.queryAsync(sql, { format: 'TSV' })))
  return new Set(result.text().split('\n'))
}

const running = <Answer>(answer: Promise<Answer>): Running<Answer> => ({ answer, released: settled(answer) })

const settled = (work: Promise<unknown>): Promise<void> =>
  work.then(
    () => undefined,
    () => undefined
  )

let lastTag = 0

const laneOf = (
  slots: Slots<Session>,
  control: Slots<Session>,
  limits: LaneLimits,
  known: ReadonlySet<string>
): Lane => {
  const limitsText = limitSettings(limits)
  const commandSettings = settingsText({ ...limitsText, ...WRITE_SETTINGS }, known)
  const bodySettings = knownOf({ ...limitsText, ...WRITE_SETTINGS, ...BODY_SETTINGS }, known)
  const read = async (sql: string, parameters: Parameters, signal: AbortSignal | undefined): Promise<Uint8Array> => {
    lastTag += 1
    const tag = `read-${lastTag}`
    const settings = settingsText({ ...limitsText, ...ANSWER_SETTINGS, log_comment: tag }, known)
    const text = bound(question(sql, settings), parameters)
    const start = (session: Session): Running<ChdbResult> =>
      abortable(ask(session, text, sql), signal, () => kill(control, tag))
    return jsonArray((await slots.run(start, signal)).bytes())
  }
  return {
    execute: async (sql, parameters = {}) => {
      const text = bound(command(sql, commandSettings), parameters)
      await slots.run((session) => running(ask(session, text, sql)))
    },
    rows: async (sql, parameters = {}, { signal } = {}) => parseRows(await read(sql, parameters, signal)),
    json: (sql, parameters = {}, { signal } = {}) => read(sql, parameters, signal),
    insert: async (table, columns, body) => {
      if (body.length === 0) return
      checkNames(table, columns)
      await slots.run((session) => running(put(session, { table, columns, settings: bodySettings }, body)))
    }
  }
}

const ask = async (session: Session, text: string, sql: string): Promise<ChdbResult> => {
  try {
    return await session.queryAsync(text, { format: 'JSONEachRow' })
  } catch (cause) {
    throw engineError(messageOf(cause), sql, cause)
  }
}

type Target = { readonly table: string; readonly columns: readonly string[]; readonly settings: Settings }

const put = async (session: Session, target: Target, body: Uint8Array): Promise<void> => {
  try {
    await session.insert({ ...target, format: 'JSONCompactEachRow', values: body })
  } catch (cause) {
    throw engineError(messageOf(cause), `INSERT INTO ${target.table}`, cause)
  }
}

const messageOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

/**
 * The statement with its parameters in front. `SET param_…` binds them for this connection alone and runs beside other
 * connections; the package's own binding would queue all parameterised statements of the process behind one another.
 */
const bound = (text: string, parameters: Parameters): string => {
  checkPlaceholders(text, parameters)
  const assignments = Object.entries(parameters).map(([name, value]) => {
    if (!/^[A-Za-z_]\w*$/.test(name)) throw new ClickHouseError(`${JSON.stringify(name)} is no name of a parameter.`)
    return `param_${name} = ${stringLiteral(parameterText(name, value))}`
  })
  return assignments.length === 0 ? text : `SET ${assignments.join(', ')};\n${text}`
}

/** Rejects as soon as `signal` aborts; the slot stays held until the engine has noticed the kill. */
const abortable = <Answer>(
  work: Promise<Answer>,
  signal: AbortSignal | undefined,
  stop: () => Promise<void>
): Running<Answer> => {
  if (signal === undefined) return running(work)
  let stopped = Promise.resolve()
  const answer = new Promise<Answer>((resolve, reject) => {
    const abort = (): void => {
      stopped = stop()
      reject(signal.reason)
    }
    signal.addEventListener('abort', abort, { once: true })
    const forget = (): void => signal.removeEventListener('abort', abort)
    work
      .then(resolve, reject)
      .finally(forget)
      .catch(() => undefined)
  })
  return { answer, released: settled(work).then(() => stopped) }
}

/** A query that has ended meanwhile is no longer found, which is as good. Never with SYNC: that waits for the query. */
const kill = (control: Slots<Session>, tag: string): Promise<void> =>
  settled(
    control.run((session) =>
      running(session.queryAsync(`KILL QUERY WHERE Settings['log_comment'] = ${stringLiteral(tag)}`))
    )
  )
