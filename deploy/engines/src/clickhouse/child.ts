import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { errorMessage } from '@gamenet/schemas'
import { LIBRARY_PACKAGE } from '../engine-versions.js'
import { type Readers, readersAsXml } from './readers.js'

/** What the process of an embedded ClickHouse is sent. */
export type ChildStart = {
  /** The process that starts it. */
  readonly parent: number
  /** The engine's data directory, which it may write. */
  readonly path: string
  readonly library: string
  /** The configuration file, and those that it includes. */
  readonly configuration: readonly string[]
  /** Values of the configuration. */
  readonly environment: Readonly<Record<string, string>>
  /** The port of HTTP and, if it is wanted, of the native protocol; 0 is any free port. */
  readonly ports: readonly number[]
  /** The newest version of Landlock to use. */
  readonly abiMax: number
  /**
   * The memory, with the stacks of further threads, that it may take beyond that of its start, as a process of the
   * lowest priority; 0 for any, as a part of the service.
   */
  readonly statementBytes: number
}

export type ChildReady = {
  readonly ports: readonly number[]
  /** The version of Landlock that confines the process; 0 if nothing does. */
  readonly abi: number
}

/** A running ClickHouse. */
export type EngineChild = ChildReady & {
  readonly pid: number
  /** Resolves when the process has ended, with the reason. */
  readonly ended: Promise<string>
  /** Kills the process. What it has answered is flushed. */
  kill(): Promise<void>
}

export type ChildOptions = {
  readonly path: string
  readonly memoryBytes: number
  readonly password: string
  /** The rights of the user `gamenet`; default: those of a service. */
  readonly grants?: string | undefined
  /** The password of those who read datasets, and the seconds of their statements; default: that of the service. */
  readonly readers?: Pick<Readers, 'password' | 'seconds'> | undefined
  /** The port of HTTP and, if it is wanted, of the native protocol; default: any free one of HTTP. */
  readonly ports?: readonly number[] | undefined
  readonly abiMax?: number | undefined
  readonly statementBytes?: number
  /** The file of ClickHouse's library; default: that of its package. */
  readonly library?: string | undefined
  /** Called with what the process writes to its standard error, at most {@link LINES_MAX} times. */
  readonly log?: ((line: string) => void) | undefined
}

const file = (name: string): string => fileURLToPath(new URL(`../../../${name}`, import.meta.url))
const MAIN = fileURLToPath(new URL('./child-main.cjs', import.meta.url))
const CONFIGURATION = ['clickhouse.xml', 'clickhouse-users.xml'].map(file)
/** Without threads of V8, which would not be confined. */
const NODE_OPTIONS = ['--v8-pool-size=0', '--max-semi-space-size=1']
/** The database of an embedded service. */
const DATABASE = 'default'
const LINES_MAX = 100
const SAID_LENGTH_MAX = 2000

/** Starts a ClickHouse on a directory. Rejects with what the process said if it does not listen. */
export const startChild = async (options: ChildOptions): Promise<EngineChild> => {
  const { path, memoryBytes, password, ports = [0], abiMax = 0xffff, log } = options
  const { statementBytes = 0 } = options
  const readers = readersAsXml({ database: DATABASE, servicePassword: password, ...(options.readers ?? { password }) })
  const start: ChildStart = {
    parent: process.pid,
    path,
    library: options.library ?? createRequire(import.meta.url).resolve(`${LIBRARY_PACKAGE}/libchdb.so`),
    configuration: CONFIGURATION,
    environment: {
      GAMENET_HTTP_PORT: String(ports[0]),
      GAMENET_TCP_PORT: String(ports[1] ?? 0),
      GAMENET_MEMORY_BYTES: String(Math.floor(memoryBytes)),
      GAMENET_PASSWORD_SHA256: createHash('sha256').update(password).digest('hex'),
      GAMENET_GRANTS: options.grants ?? serviceGrants(),
      GAMENET_USERS: CONFIGURATION[1] ?? '',
      ...(statementBytes > 0 && { JE_MALLOC_CONF: 'retain:false' }),
      GAMENET_READERS: readers.users,
      GAMENET_READER_PROFILES: readers.profiles,
      GAMENET_READER_QUOTAS: readers.quotas
    },
    ports,
    abiMax,
    statementBytes
  }
  // An empty environment: the service's contains its secrets. A group of its own: Ctrl-C goes to the whole group, and
  // the service still needs its engine when it stops.
  const child = spawn(process.execPath, [...NODE_OPTIONS, MAIN], { env: {}, stdio: 'pipe', detached: true })
  let said = ''
  let lines = 0
  createInterface(child.stderr).on('line', (line) => {
    said = `${said}\n${line}`.slice(-SAID_LENGTH_MAX)
    lines += 1
    if (lines <= LINES_MAX) log?.(line)
  })
  const closed = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(errorMessage(error)))
    // What it said long before a signal is not the reason of its end.
    child.once('close', (code, signal) => {
      const end = `it ended with ${signal ?? `code ${code}`}`
      resolve(signal === 'SIGKILL' ? end : said.trim() || end)
    })
  })
  child.stdin.on('error', () => undefined).write(`${JSON.stringify(start)}\n`)
  const ready = await Promise.race([once(child.stdout, 'data').then(([line]) => String(line)), closed.then(failed)])
  return { ...(JSON.parse(ready) as ChildReady), pid: child.pid ?? 0, ended: closed, kill: () => kill(child, closed) }
}

const failed = (reason: string): never => {
  throw new Error(reason)
}

const kill = async (child: ChildProcess, closed: Promise<string>): Promise<void> => {
  child.kill('SIGKILL')
  await closed
}

/** Returns the grants of the documented file for the embedded user and its database. */
const serviceGrants = (): string => {
  const statement = readFileSync(file('clickhouse-grants.sql'), 'utf8').replace(/^--.*$/gm, '')
  return statement
    .replace(/\bTO gamenet;/, '')
    .replaceAll('gamenet.', `${DATABASE}.`)
    .trim()
}
