import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { PassThrough, Readable } from 'node:stream'
import type { WriteStream } from 'node:tty'
import { fileURLToPath } from 'node:url'
import { postgresPrograms, sharedPostgres, until } from '@gamenet/engines/testing'
import type { Test } from 'tap'
import { z } from 'zod'
import { readConfig } from '../../src/config.js'
import { Status } from '../../src/operate/status/operation.js'
import { operatorClient } from '../../src/operator/operator-client.js'
import { runProgram } from '../../src/program.js'
import type { Role } from '../../src/run/service.js'

/** The root of the project, relative to the compiled tests. */
export const ROOT = new URL('../../../../', import.meta.url)
const GAMENET = fileURLToPath(new URL('deploy/gamenet.cjs', ROOT))
/** When V8 optimizes a function; `deploy/test/run/test-run.mjs` sets it for tests. */
const INHERITED = process.execArgv.filter((each) => each.startsWith('--interrupt-budget='))
/** Far above the time of a start; reached only by a hang. */
const START_TIMEOUT_MS = 600_000

/** Settings that a test adds to an empty environment, so that variables of the caller have no effect. */
export type Environment = Readonly<Record<string, string>>

export type Finished = { readonly code: number | null; readonly stdout: string; readonly stderr: string }

/** Runs one command of `gamenet` to its end, in this process. */
export async function gamenet(
  environment: Environment,
  args: readonly string[],
  input?: Uint8Array | AsyncIterable<Uint8Array>
): Promise<Finished> {
  const [output, errors] = [new PassThrough(), new PassThrough()]
  const [stdout, stderr] = [collect(output), collect(errors)]
  const code = await runProgram({
    args,
    environment: { ...USUAL, ...environment },
    input: Readable.from(input === undefined ? [] : input instanceof Uint8Array ? [input] : input),
    output: output as unknown as WriteStream,
    errors: errors as unknown as WriteStream
  })
  return { code, stdout: stdout(), stderr: stderr() }
}

/**
 * Runs one command of `gamenet` to its end, in a separate process: for signals, exit codes and standard streams, and
 * for commands that open a data directory while this process has another one open.
 */
export async function spawnedGamenet(
  environment: Environment,
  args: readonly string[],
  input?: Uint8Array
): Promise<Finished> {
  const child = spawnGamenet(environment, args)
  const stdout = collect(child.stdout)
  const stderr = collect(child.stderr)
  child.stdin?.end(input)
  const [code] = await once(child, 'close')
  return { code: z.int().nullable().parse(code), stdout: stdout(), stderr: stderr() }
}

/** Runs one command with --json; its exit code must be 0. Returns the parsed output. */
export async function gamenetJson(environment: Environment, args: readonly string[]): Promise<unknown> {
  const done = await gamenet(environment, [...args, '--json'])
  if (done.code !== 0)
    throw new Error(`gamenet ${args.join(' ')} ended with ${done.code}: ${done.stderr}${done.stdout}`)
  return JSON.parse(done.stdout)
}

/** The JSON output of a started service; `apiUrl` is null for a role without a public port. */
const Started = z.object({ apiUrl: z.string().nullable(), operatorUrl: z.string(), metricsUrl: z.string().nullable() })

export type Running = z.infer<typeof Started> & {
  readonly process: ChildProcess
  /** Its log so far. */
  stderr(): string
  /** Returns false once it has exited or was killed. */
  isAlive(): boolean
  /** SIGTERM; the exit code. */
  stop(): Promise<number | null>
  /** SIGKILL; resolves when the process is gone. */
  kill(): Promise<void>
}

/** A long-running command that was started and need not listen yet. */
export type Launched = Omit<Running, 'apiUrl' | 'operatorUrl' | 'metricsUrl'> & {
  /** Resolves when it prints its addresses; rejects if it ends before. */
  readonly listening: Promise<Running>
}

/** A service in this process. */
export type Opened = {
  /** Empty for a role without public port. */
  readonly apiUrl: string
  readonly operatorUrl: string
  /** Completes running requests and closes everything; idempotent. */
  stop(): Promise<void>
}

/**
 * Opens a service in this process, until the test ends. It takes a second of processor time less than {@link
 * startGamenet}, which is for signals, kills, exit codes and standard streams.
 */
export async function openGamenet(
  t: Pick<Test, 'teardown'>,
  environment: Environment,
  role: Role = 'all',
  accepts: { readonly acceptsOlder?: boolean } = {}
): Promise<Opened> {
  const { openService } = await import('../../src/run/service.js')
  const settings = { PORT: '0', OPERATOR_PORT: '0', LOG_LEVEL: 'error', ...USUAL, ...environment }
  const service = await openService(readConfig(settings), role, accepts)
  let stopped: Promise<void> | undefined
  const stop = () => {
    stopped ??= service.close()
    return stopped
  }
  t.teardown(stop)
  return { apiUrl: service.apiUrl ?? '', operatorUrl: service.operatorUrl ?? '', stop }
}

/**
 * Settings of a service whose write side is not tested: a database on the run's PostgreSQL, which takes a second of
 * processor time less than PGlite. Without an installed PostgreSQL, PGlite.
 */
export async function plainWrites(t: Test): Promise<Environment> {
  return postgresPrograms() === undefined ? {} : { POSTGRES_URL: (await sharedPostgres(t)).url }
}

/** Starts a long-running command (`start`, or one role) and waits until it prints its addresses. */
export async function startGamenet(environment: Environment, command = 'start'): Promise<Running> {
  return await launchGamenet(environment, command).listening
}

/** Starts a long-running command, and does not wait for it. */
export function launchGamenet(environment: Environment, command = 'start'): Launched {
  const child = spawnGamenet({ PORT: '0', OPERATOR_PORT: '0', ...environment }, [command, '--json'])
  const stderr = collect(child.stderr)
  const closed = once(child, 'close')
  // A test that is aborted at its time limit runs no teardown, and its services would run forever.
  const killed = () => child.kill('SIGKILL')
  process.once('exit', killed)
  void closed.then(() => process.off('exit', killed))
  const handle = {
    process: child,
    stderr,
    isAlive: () => child.exitCode === null && child.signalCode === null,
    async stop() {
      child.kill('SIGTERM')
      await closed
      return child.exitCode
    },
    async kill() {
      child.kill('SIGKILL')
      await closed
    }
  }
  const listening = firstLine(child, stderr).then((line) => ({ ...Started.parse(JSON.parse(line)), ...handle }))
  // A caller that kills it earlier does not wait for it.
  listening.catch(() => undefined)
  return { ...handle, listening }
}

/** Waits until the tables of a service have this number of events. */
export async function untilLoaded(operatorUrl: string, events: number): Promise<void> {
  const loaded = async () => {
    const status = Status.parse(await (await fetch(`${operatorUrl}/status`, { headers: AUTHORIZED })).json())
    return status.topics.reduce((sum, topic) => sum + topic.loaded, 0)
  }
  // Each status takes some 50 ms of processor time.
  await until(async () => (await loaded()) >= events, 300)
}

/** The operator token of services and commands. */
export const OPERATOR_TOKEN = 'operator-token-of-tests'
/** For requests to an operator port that no command sends. */
export const AUTHORIZED = { authorization: `Bearer ${OPERATOR_TOKEN}` }
/** Returns the operations of a service that a test has started. */
export const operationsAt = (operatorUrl: string) => operatorClient({ operatorUrl, operatorToken: OPERATOR_TOKEN })
/** Few tests have a page for each game, or one of players; in the others these scrapes would fail. */
/** The environment of a service that scrapes only on request, and whose upstream is unreachable. */
export const ON_REQUEST: Environment = {
  UPSTREAM_URL: 'http://127.0.0.1:9',
  SCRAPE_NETWORK_SECONDS: '0',
  SCRAPE_GAMES_SECONDS: '0',
  SCRAPE_MATCHES_SECONDS: '0',
  SCRAPE_BOARDS_SECONDS: '0',
  SCRAPE_PLAYERS_SECONDS: '0'
}

const USUAL = {
  OPERATOR_TOKEN,
  DEMO: 'small',
  SCRAPE_MATCHES_SECONDS: '0',
  SCRAPE_BOARDS_SECONDS: '0',
  SCRAPE_PLAYERS_SECONDS: '0'
}

export function spawnGamenet(
  environment: Environment,
  args: readonly string[],
  input: number | 'pipe' = 'pipe'
): ChildProcess {
  const env = { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '', ...USUAL, ...environment }
  return spawn(process.execPath, [...INHERITED, GAMENET, ...args], {
    ...{ env, cwd: fileURLToPath(ROOT) },
    stdio: [input, 'pipe', 'pipe']
  })
}

function collect(stream: NodeJS.ReadableStream | null): () => string {
  const chunks: string[] = []
  stream?.setEncoding('utf8').on('data', (chunk: string) => chunks.push(chunk))
  return () => chunks.join('')
}

function firstLine(child: ChildProcess, stderr: () => string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    const timer = setTimeout(
      () => reject(new Error(`no start within ${START_TIMEOUT_MS} ms: ${stderr()}`)),
      START_TIMEOUT_MS
    )
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
      const end = text.indexOf('\n')
      if (end < 0) return
      clearTimeout(timer)
      resolve(text.slice(0, end))
    })
    child.once('close', (code) => {
      clearTimeout(timer)
      reject(new Error(`ended with ${code} before it listened: ${stderr()}`))
    })
  })
}
