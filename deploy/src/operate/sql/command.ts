import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { ANALYST, ANALYST_SECONDS, type Analyst, ClickHouseError, openAnalyst } from '@gamenet/engines/sql'
import { errorMessage, pause } from '@gamenet/schemas'
import { type Command, Option } from 'commander'
import { FailureError, UsageError } from '../../config.js'
import { withData } from '../../reach.js'
import type { SqlSnapshot } from '../../stores/snapshot-report.js'
import { signalled } from '../../terminal/signalled.js'
import { addCommand, print, type Terminal, wholeNumber, writeContent } from '../../terminal/terminal.js'
import { takeSqlSnapshot } from './operation.js'

const SECONDS_MAX = 86_400
const HTTP_PORT = 8123
const NATIVE_PORT = 9000
/** A snapshot of a port is at most 10 minutes old. */
const RENEW_MS = 9 * 60_000
const RETRY_MS = 30_000
const RESTART_MS = 1000
/** The engine parses as many bytes. */
const STATEMENT_LENGTH_MAX = 262_144
/** The version of Landlock that confines connections too. */
const CONFINING_ABI = 4

type Options = {
  json?: boolean
  format?: string
  param: string[]
  seconds: string
  serve?: boolean
  port: string
  native?: string | true
  unconfined?: boolean
}

export function addSql(program: Command, terminal: Terminal): void {
  const collect = (value: string, all: string[]) => [...all, value]
  addCommand(program, 'sql', 'SELECT from the datasets, on a snapshot of embedded tables, in a process of its own')
    .argument('[statement]', 'the SELECT; without it or with -, standard input')
    .addOption(new Option('--format <name>', "ClickHouse's name of the answer's format").conflicts('json'))
    .option('--param <name=value>', 'a value of {name: Type}; may be repeated', collect, [])
    .option('--seconds <n>', 'time limit of a statement', String(ANALYST_SECONDS))
    .option('--serve', "ClickHouse's HTTP port on loopback, read-only; its password is SQL_PASSWORD, or is made")
    .option('--port <n>', 'the port; 0 selects a free one', String(HTTP_PORT))
    .option('--native [port]', `with --serve: also ClickHouse's native port; default: ${NATIVE_PORT}`)
    .option('--unconfined', 'with --serve: also where the kernel does not confine the process; for yourself only')
    .action(async (given: string | undefined, options: Options) => {
      if (options.native !== undefined && !options.serve) throw new UsageError('--native is an option of --serve.')
      if (options.serve) await serve(terminal, options)
      else await ask(terminal, options, given === undefined || given === '-' ? await textOf(terminal.input) : given)
    })
}

/** Reads a statement from standard input, which may be endless. */
async function textOf(input: Readable): Promise<string> {
  const decoder = new TextDecoder()
  let statement = ''
  for await (const chunk of input) {
    statement += decoder.decode(chunk, { stream: true })
    if (statement.length > STATEMENT_LENGTH_MAX)
      throw new UsageError(`The statement on standard input is longer than ${STATEMENT_LENGTH_MAX} characters.`)
  }
  return statement + decoder.decode()
}

const snapshotOf = async (terminal: Terminal): Promise<SqlSnapshot> =>
  await withData(terminal, (operations) => operations.run(takeSqlSnapshot, { pid: process.pid }))

/**
 * Calls `use` with a ClickHouse that shows a first snapshot, then ends it and removes its files.
 * @throws FailureError as `refuseUnconfined` does, before the snapshot can be read
 */
async function withAnalyst<Result>(
  terminal: Terminal,
  options: {
    readonly password: string
    readonly seconds: string
    readonly ports: readonly number[]
    readonly unconfined: boolean
  },
  use: (analyst: Analyst, snapshot: SqlSnapshot) => Promise<Result>
): Promise<Result> {
  const seconds = wholeNumber('--seconds', options.seconds, 1, SECONDS_MAX)
  const snapshot = await snapshotOf(terminal)
  let analyst: Analyst | undefined
  try {
    analyst = await openAnalyst({ ...options, seconds, directory: join(snapshot.directory, 'engine') })
    refuseUnconfined(analyst.abi, options.unconfined)
    await analyst.show(snapshot)
    return await use(analyst, snapshot)
  } catch (error) {
    if (error instanceof ClickHouseError) throw new FailureError(error.message)
    throw error
  } finally {
    await analyst?.kill()
    await rm(snapshot.directory, { recursive: true, force: true })
  }
}

/** @throws FailureError if the kernel, by its version `abi` of Landlock, holds no connections of the process */
export function refuseUnconfined(abi: number, unconfined: boolean): void {
  if (abi >= CONFINING_ABI || unconfined) return
  throw new FailureError(
    'This system does not confine the process (Landlock 4, Linux 6.7): statements could read files of this user. ' +
      'If you serve yourself only, add --unconfined.'
  )
}

async function ask(
  terminal: Terminal,
  { json = false, format: wanted, param, seconds }: Options,
  statement: string
): Promise<void> {
  const parameters = Object.fromEntries(param.map(parameterOf))
  const format = json ? 'JSONEachRow' : (wanted ?? (terminal.output.isTTY ? 'PrettyCompact' : 'TabSeparatedWithNames'))
  const own = { password: madePassword(), seconds, ports: [0], unconfined: true }
  await withAnalyst(terminal, own, async (analyst, snapshot) => {
    const { takenAt, position } = snapshot
    const bytes = await analyst.ask(statement, { format, parameters })
    terminal.errors.write(`Snapshot of ${takenAt}: ${position}\n`)
    const answer = json ? `${document({ takenAt, position }, Buffer.from(bytes).toString())}\n` : bytes
    await writeContent(terminal, [answer])
  })
}

/** Rows stay texts, because JSON.parse would round integers above 2^53. */
function document(facts: object, lines: string): string {
  const rows = lines.split('\n').filter((line) => line !== '')
  return JSON.stringify({ ...facts, rows: [] }).replace(/\[\]\}$/, () => `[${rows.join(',')}]}`)
}

async function serve(terminal: Terminal, { json, port, native, unconfined = false, seconds }: Options): Promise<void> {
  const ports = [wholeNumber('--port', port, 0, 65_535)]
  if (native !== undefined)
    ports.push(wholeNumber('--native', native === true ? String(NATIVE_PORT) : native, 0, 65_535))
  const given = terminal.config().SQL_PASSWORD
  const password = given ?? madePassword()
  const stopped = signalled()
  const stop = new AbortController()
  void stopped.then(() => stop.abort())
  let opened: readonly number[] = []
  let retryMs = RESTART_MS
  // Statements of one client, or a sign-in that the native port refuses, can end the process, also while it starts.
  while (!stop.signal.aborted) {
    const own = { password, seconds, ports: opened.length > 0 ? opened : ports, unconfined }
    const reason = await withAnalyst(terminal, own, async (analyst) => {
      const isFirst = opened.length === 0
      opened = analyst.ports
      retryMs = RESTART_MS
      if (isFirst) announce(terminal, json, opened, given === undefined ? password : undefined)
      const stopping = new AbortController()
      const renewing = renew(terminal, analyst, stopping.signal)
      const ended = await Promise.race([stopped, analyst.ended])
      stopping.abort()
      await renewing
      return ended
    }).catch((error: unknown) => {
      if (opened.length > 0) return errorMessage(error)
      const [, used] = /Address already in use: \S+:(\d+)/.exec(errorMessage(error)) ?? []
      if (used === undefined) throw error
      const option = Number(used) === ports[0] ? '--port' : '--native'
      throw new FailureError(`Another process uses port ${used}; ${option} 0 selects a free one.`)
    })
    if (reason === undefined) return
    terminal.errors.write(`The process of ClickHouse has ended, and is started again: ${reason}\n`)
    await pause(retryMs, stop.signal)
    retryMs = Math.min(2 * retryMs, RETRY_MS)
  }
}

/** Prints the addresses, and the password if it was made. */
function announce(terminal: Terminal, json: boolean | undefined, ports: readonly number[], password?: string): void {
  const [url, ...others] = ports.map((each, at) => `${at === 0 ? 'http' : 'clickhouse'}://127.0.0.1:${each}`)
  const made = password === undefined ? {} : { password }
  print(terminal, json, { url, ...(others.length > 0 && { native: others[0] }), user: ANALYST, ...made }, [
    `SQL is served at ${[url, ...others].join(' and ')}, for the user ${ANALYST}. Ctrl-C stops it.`,
    ...(password === undefined ? [] : [`Its password, until then: ${password}`])
  ])
}

/** Shows a new snapshot from time to time. One that fails is repeated; the view `snapshot` says how old the last is. */
async function renew(terminal: Terminal, analyst: Analyst, stopping: AbortSignal): Promise<void> {
  let ms = RENEW_MS
  for (;;) {
    await pause(ms, stopping)
    if (stopping.aborted) return
    try {
      const snapshot = await snapshotOf(terminal)
      await analyst.show(snapshot).finally(() => rm(snapshot.directory, { recursive: true, force: true }))
      ms = RENEW_MS
    } catch (error) {
      terminal.errors.write(`No newer snapshot, which is tried again: ${errorMessage(error)}\n`)
      ms = RETRY_MS
    }
  }
}

/** Returns 32 characters. */
const madePassword = (): string => randomBytes(24).toString('base64url')

function parameterOf(text: string): [string, string] {
  const at = text.indexOf('=')
  if (at < 1) throw new UsageError(`--param takes name=value; got ${JSON.stringify(text)}.`)
  return [text.slice(0, at), text.slice(at + 1)]
}
