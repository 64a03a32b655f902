import type { Readable } from 'node:stream'
import {
  ANALYST_FORMATS,
  ANALYST_LIMITS,
  STATEMENT_LENGTH_MAX,
  StatementFailed,
  StatementRefused
} from '@gamenet/engines/sql'
import { type Command, Option } from 'commander'
import { FailureError, UsageError } from '../../config.js'
import { withData } from '../../reach.js'
import { signalled } from '../../terminal/signalled.js'
import { addCommand, print, type Terminal, writeContent } from '../../terminal/terminal.js'
import { openSnapshot, type SnapshotAnalyst } from './analyst-snapshot.js'
import { takeSqlSnapshot } from './operation.js'
import { openSqlPort } from './sql-port.js'

const SECONDS = 30
const SECONDS_MAX = 86_400
const PORT = 8123
/** A snapshot of a port is replaced when it is older. */
const SNAPSHOT_MS_MAX = 600_000

type Options = { json?: boolean; format?: string; param: string[]; seconds: string; serve?: boolean; port: string }

export function addSql(program: Command, terminal: Terminal): void {
  const collect = (value: string, all: string[]) => [...all, value]
  addCommand(program, 'sql', 'SELECT from the datasets, on a snapshot of embedded tables, in a process of its own')
    .argument('[statement]', 'the SELECT; without it or with -, standard input')
    .addOption(new Option('--format <name>', "ClickHouse's name of the answer's format").conflicts('json'))
    .option('--param <name=value>', 'a value of {name: Type}; may be repeated', collect, [])
    .option('--seconds <n>', 'time limit of a statement; it is killed at twice that', String(SECONDS))
    .option('--serve', "a read-only port on loopback with ClickHouse's HTTP interface; its password is SQL_PASSWORD")
    .option('--port <n>', 'the port; 0 selects a free one', String(PORT))
    .action(async (given: string | undefined, options: Options) => {
      const seconds = wholeNumber('--seconds', options.seconds, 1, SECONDS_MAX)
      const open = async (): Promise<SnapshotAnalyst> => {
        const snapshot = await withData(terminal, (operations) => operations.run(takeSqlSnapshot, { pid: process.pid }))
        return await openSnapshot(snapshot, { ...ANALYST_LIMITS, seconds })
      }
      if (options.serve) await serve(terminal, options, open)
      else
        await ask(
          terminal,
          options,
          given === undefined || given === '-' ? await statementOf(terminal.input) : given,
          open
        )
    })
}

/** Reads a statement from standard input, which may be endless. */
async function statementOf(input: Readable): Promise<string> {
  const decoder = new TextDecoder()
  let statement = ''
  for await (const chunk of input) {
    statement += decoder.decode(chunk, { stream: true })
    if (statement.length > STATEMENT_LENGTH_MAX)
      throw new UsageError(`The statement on standard input is longer than ${STATEMENT_LENGTH_MAX} characters.`)
  }
  return statement + decoder.decode()
}

async function ask(
  terminal: Terminal,
  { json = false, format: wanted, param }: Options,
  statement: string,
  open: () => Promise<SnapshotAnalyst>
): Promise<void> {
  const parameters = Object.fromEntries(param.map(parameterOf))
  const name = wanted ?? (terminal.output.isTTY ? 'PrettyCompact' : 'TabSeparatedWithNames')
  const format = json ? 'JSONEachRow' : ANALYST_FORMATS.find((each) => each === name)
  if (format === undefined)
    throw new UsageError(`--format takes ${ANALYST_FORMATS.join(', ')}; got ${JSON.stringify(name)}.`)
  const analyst = await open()
  try {
    const { takenAt, position } = analyst
    const { bytes } = await analyst.run({ statement, format, parameters })
    terminal.errors.write(`Snapshot of ${takenAt}: ${position}\n`)
    const answer = json ? `${document({ takenAt, position }, Buffer.from(bytes).toString())}\n` : bytes
    await writeContent(terminal, [answer])
  } catch (error) {
    if (error instanceof StatementRefused) throw new UsageError(error.message)
    if (error instanceof StatementFailed) throw new FailureError(error.message)
    throw error
  } finally {
    await analyst.close()
  }
}

/** Rows stay texts, because JSON.parse would round integers above 2^53. */
function document(facts: object, lines: string): string {
  const rows = lines.split('\n').filter((line) => line !== '')
  return JSON.stringify({ ...facts, rows: [] }).replace(/\[\]\}$/, () => `[${rows.join(',')}]}`)
}

async function serve(
  terminal: Terminal,
  { json, port: wanted }: Options,
  open: () => Promise<SnapshotAnalyst>
): Promise<void> {
  const port = wholeNumber('--port', wanted, 0, 65_535)
  const { SQL_PASSWORD: password } = terminal.config()
  if (password === undefined)
    throw new UsageError(
      'gamenet sql --serve asks its clients for a password: set SQL_PASSWORD (or SQL_PASSWORD_FILE).'
    )
  const stopped = signalled()
  let current = await open()
  const server = await openSqlPort({
    port,
    password,
    analyst: async () => {
      if (Date.now() - Date.parse(current.takenAt) > SNAPSHOT_MS_MAX) {
        const next = await open()
        await current.close()
        current = next
      }
      return current
    }
  })
  const address = server.address()
  const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : port}`
  print(terminal, json, { url }, [`SQL is served at ${url}, for any user name with the password. Ctrl-C stops it.`])
  await stopped
  server.close()
  server.closeAllConnections()
  await current.close()
}

function parameterOf(text: string): [string, string] {
  const at = text.indexOf('=')
  if (at < 1) throw new UsageError(`--param takes name=value; got ${JSON.stringify(text)}.`)
  return [text.slice(0, at), text.slice(at + 1)]
}

function wholeNumber(option: string, text: string, min: number, max: number): number {
  if (/^\d{1,5}$/.test(text) && Number(text) >= min && Number(text) <= max) return Number(text)
  throw new UsageError(`${option} takes a whole number from ${min} to ${max}; got ${JSON.stringify(text)}.`)
}
