import { randomBytes } from 'node:crypto'
import { accessSync, constants, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { Agent, type ClientRequestArgs, get } from 'node:http'
import { totalmem } from 'node:os'
import { join } from 'node:path'
import { type Duplex, PassThrough } from 'node:stream'
import { type Backoff, backoffMs, errorCode, errorMessage, Failure, pause } from '@gamenet/schemas'
import { type HealthTimes, watchHealth } from '../health.js'
import { type EngineChild, startChild } from './child.js'
import { type ClickHouse, ClickHouseError, type EngineProcess, type LaneName } from './clickhouse.js'
import { openClickHouseServer } from './server.js'
import type { LaneLimits } from './statement.js'

export type ChdbOptions = {
  /** The engine's data directory; created if missing. One process at a time. */
  readonly path: string
  /** Number of concurrent reads. */
  readonly readers?: number | undefined
  /** Maximum number of waiting reads; further ones are refused with `engine_busy`. */
  readonly queueMax?: number
  /** Overrides the default limits of lanes. */
  readonly limits?: Partial<Readonly<Record<LaneName, LaneLimits>>>
  /** Memory limit of the whole engine in bytes. Default: half of the process's limit, at most 3 GiB. */
  readonly memoryBytes?: number | undefined
  /** Called directly before each write; a write is not sent if it throws. */
  readonly beforeWrite?: ((lane: LaneName) => void) | undefined
  /** Called with warnings. */
  readonly warn?: (sentence: string) => void
  /** Called when the engine has ended many times in a row. */
  readonly onLost?: (sentence: string) => void
  /** The rights of its user; for tests. */
  readonly grants?: string
  /** The newest version of Landlock to use; for tests. */
  readonly abiMax?: number
  /** The file of ClickHouse's library; for tests. */
  readonly library?: string
  /** For tests. */
  readonly silence?: HealthTimes
  readonly restart?: Backoff
}

const MIB = 1024 * 1024
const MEMORY_BYTES_MAX = 3072 * MIB
const READERS = 3
const RESTART: Backoff = { firstMs: 100, maxMs: 3000 }
/** A process that lives as long has started well. */
const LIFE_MS = 60_000
const ENDS_MAX = 10
/**
 * It shares the processors of the service: on a busy machine both are slow, and answers may be late. A process that has
 * ended is away at once.
 */
const HEALTH = { pauseMs: 2000, silenceMs: 15_000 }
/** A silence after which the process is killed: it is stopped, or hangs. */
const SILENCE = { pauseMs: 5000, silenceMs: 30_000 }
/** The process of a killed service needs some time to end. */
const IN_USE_MS_MAX = 5000
const IN_USE_POLL_MS = 100

/** ClickHouse in a process of its own, and what is known about it. */
export type EmbeddedClickHouse = ClickHouse & {
  process(): EngineProcess
}

/**
 * Starts ClickHouse as a child of this process, and again when it ends. Rejects with one sentence if the directory is
 * not writable, in use by another process, or cannot be opened. Call it on the main thread: the child ends with its
 * thread.
 */
export const openChdb = async (options: ChdbOptions): Promise<EmbeddedClickHouse> => {
  checkDirectory(options.path)
  checkDefinitions(options.path)
  const password = randomBytes(32).toString('base64url')
  const engine = keepRunning(await startWhenFree(options, password), options, () => startWhenFree(options, password))
  const server = openClickHouseServer({
    url: `http://gamenet:${password}@127.0.0.1:1`,
    agent: () => new ChildAgent(engine),
    compression: false,
    health: HEALTH,
    readers: options.readers ?? READERS,
    queueMax: options.queueMax,
    limits: options.limits,
    beforeWrite: options.beforeWrite
  })
  return {
    ...server,
    process: engine.state,
    close: async () => {
      await server.close()
      await engine.stop()
    }
  }
}

type Engine = {
  /** The process that answers; undefined between two processes. */
  current(): EngineChild | undefined
  state: EmbeddedClickHouse['process']
  stop(): Promise<void>
}

/** Starts another process whenever one ends. */
const keepRunning = (first: EngineChild, options: ChdbOptions, start: () => Promise<EngineChild>): Engine => {
  const stopping = new AbortController()
  let current: EngineChild | undefined = first
  let restarts = 0
  const run = async (): Promise<void> => {
    let ends = 0
    while (!stopping.signal.aborted) {
      const began = performance.now()
      const reason = current === undefined ? await started() : await endOf(current)
      if (reason === undefined || stopping.signal.aborted) continue
      current = undefined
      ends = performance.now() - began > LIFE_MS ? 1 : ends + 1
      const ended = reason.replace(/\.?$/, '.')
      options.warn?.(`ClickHouse, a process of this service, has ended: ${ended} It is started again.`)
      if (ends > ENDS_MAX) options.onLost?.(`ClickHouse has ended ${ends} times in a row: ${ended}`)
      await pause(backoffMs(options.restart ?? RESTART, ends), stopping.signal)
    }
    await current?.kill()
  }
  const started = async (): Promise<string | undefined> => {
    restarts += 1
    try {
      current = await start()
      return undefined
    } catch (error) {
      return errorMessage(error)
    }
  }
  const endOf = async (child: EngineChild): Promise<string> => {
    const times = { ...SILENCE, ...options.silence }
    const watch = watchHealth('ClickHouse', (signal) => ping(child.ports[0], signal), times)
    const silence = watch.signal
    silence.addEventListener('abort', () => void child.kill(), { once: true })
    const reason = await child.ended.finally(watch.close)
    return silence.aborted ? `it did not answer for ${times.silenceMs / 1000} s` : reason
  }
  const running = run()
  return {
    current: () => current,
    state: () => ({ pid: current?.pid, port: current?.ports[0], restarts, landlock: current?.abi ?? 0 }),
    stop: async () => {
      stopping.abort()
      await current?.kill()
      await running
    }
  }
}

/** Settles when a server replies. */
const ping = (port: number | undefined, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const request = get({ host: '127.0.0.1', port, path: '/ping', signal, agent: false }, (reply) => {
      reply.resume().once('close', resolve)
    })
    request.once('error', reject)
  })

/** Connects to the process that runs now: each has a port of its own. Between two processes it connects to none. */
class ChildAgent extends Agent {
  readonly #engine: Pick<Engine, 'current'>

  constructor(engine: Pick<Engine, 'current'>) {
    super({ keepAlive: true })
    this.#engine = engine
  }

  override createConnection(
    options: ClientRequestArgs,
    callback?: (error: Error | null, stream: Duplex) => void
  ): Duplex | null | undefined {
    const port = this.#engine.current()?.ports[0]
    if (port !== undefined) return super.createConnection({ ...options, port }, callback)
    // Node ignores the stream of an error.
    process.nextTick(() => callback?.(new Error('ClickHouse is being started again.'), new PassThrough()))
    return undefined
  }
}

const startWhenFree = async (options: ChdbOptions, password: string): Promise<EngineChild> => {
  const { path, grants, abiMax, library, warn } = options
  const memoryBytes = options.memoryBytes ?? usualMemoryBytes()
  const log = (line: string) => warn?.(`ClickHouse: ${line}`)
  const began = performance.now()
  for (;;) {
    try {
      return await startChild({ path, memoryBytes, password, grants, abiMax, library, log })
    } catch (cause) {
      const holder = holderOf(path)
      const isWaiting = holder !== undefined && performance.now() - began < IN_USE_MS_MAX
      if (!isWaiting) throw openFailure(path, holder, cause)
    }
    await pause(IN_USE_POLL_MS)
  }
}

/** A container may have far less memory than its machine. Without a limit, Node reports an enormous one, or 0. */
const usualMemoryBytes = (): number => {
  const limit = process.constrainedMemory()
  return Math.min(MEMORY_BYTES_MAX, Math.min(totalmem(), limit > 0 ? limit : totalmem()) / 2)
}

const checkDirectory = (path: string): void => {
  try {
    mkdirSync(path, { recursive: true })
    accessSync(path, constants.W_OK)
  } catch (cause) {
    throw new ClickHouseError(
      `The ClickHouse directory ${path} cannot be written (${errorCode(cause)}); ` +
        'give a directory that this user may write.',
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
        throw new Failure('tables_unopened', `ClickHouse cannot open ${path}: the definition in ${file} is damaged`)
    }
  }
}

const differencesOf = (a: string, b: string): number =>
  a.length === b.length ? [...a].filter((character, at) => character !== b[at]).length : Number.POSITIVE_INFINITY

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

const openFailure = (path: string, holder: number | undefined, cause: unknown): Error => {
  if (holder !== undefined) {
    const used = `The ClickHouse directory ${path} is in use by another process (${holder})`
    return new ClickHouseError(`${used}; stop that one or give another directory.`, { cause })
  }
  const reason = errorMessage(cause).replace(/\s+/g, ' ').slice(0, 500)
  if (/\bCode: \d+\b/.test(errorMessage(cause)))
    return new Failure('tables_unopened', `ClickHouse cannot open ${path}: ${reason}`, { cause })
  if (reason.endsWith('SIGKILL'))
    return new Failure('engine_unstarted', 'ClickHouse was killed by SIGKILL while it started: too little memory?')
  return new Failure('engine_unstarted', `The library of ClickHouse cannot be loaded (${reason}). Run \`npm ci\`.`)
}
