import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { StatementRefused } from './check-select.js'

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
  readonly limits: AnalystLimits
}
/** The bytes of an answer, and its number of rows. */
export type AnalystRows = { readonly bytes: Uint8Array; readonly rows: number }
export type AnalystAnswer =
  | AnalystRows
  | { readonly error: string; readonly isRefused: boolean }
  | { readonly isReady: true }

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
  run(call: Omit<AnalystCall, 'limits'>): Promise<AnalystRows>
  close(): Promise<void>
}

/** Starts the process of a snapshot. */
export async function openAnalyst(setup: AnalystSetup): Promise<Analyst> {
  const { limits } = setup
  let child: ChildProcess | undefined = await start(setup)
  const run: Analyst['run'] = async (call) => {
    if (child === undefined || hasEnded(child)) child = await start(setup)
    const own = child
    const timer = setTimeout(() => own.kill('SIGKILL'), 2000 * limits.seconds)
    try {
      const answer = await answerOf(own, { ...call, limits } satisfies AnalystCall)
      if ('bytes' in answer) return answer
      if (!('error' in answer)) throw new Error('the process of the statement was started twice')
      throw answer.isRefused ? new StatementRefused(answer.error) : new StatementFailed(answer.error)
    } finally {
      clearTimeout(timer)
      if (hasEnded(own)) child = undefined
    }
  }
  return {
    run,
    close: async () => {
      if (child === undefined || hasEnded(child)) return
      const exited = once(child, 'exit')
      child.kill('SIGKILL')
      await exited
    }
  }
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null
}

const CHILD = fileURLToPath(new URL('./analyst-child.js', import.meta.url))
const THREADS = 4

async function start(setup: AnalystSetup): Promise<ChildProcess> {
  const child = fork(CHILD, [], {
    // Without the service's environment, which contains its secrets.
    env: { UV_THREADPOOL_SIZE: String(THREADS) },
    execArgv: [],
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'pipe', 'ipc']
  })
  const answer = await answerOf(child, setup)
  if ('isReady' in answer) return child
  throw new StatementFailed('error' in answer ? answer.error : 'The process of statements did not start.')
}

/** Sends a message and returns the next one that the process sends. */
async function answerOf(child: ChildProcess, message: AnalystSetup | AnalystCall): Promise<AnalystAnswer> {
  let errors = ''
  const collect = (text: Buffer) => {
    errors = (errors + text).slice(-1000)
  }
  child.stderr?.on('data', collect)
  const ended = new AbortController()
  try {
    child.send(message)
    return await Promise.race([
      once(child, 'message', { signal: ended.signal }).then(([answer]) => answer as AnalystAnswer),
      once(child, 'exit', { signal: ended.signal }).then(([code, signal]) => {
        const limit = 'limits' in message && 'statement' in message ? message.limits.seconds * 2 : undefined
        throw new StatementFailed(
          signal === 'SIGKILL' && limit !== undefined
            ? `The statement was killed: it exceeded twice its time or the memory of the machine (${limit} s).`
            : `The process of the statement has ended (${signal ?? code}). ${errors}`.trim()
        )
      })
    ])
  } finally {
    ended.abort()
    child.stderr?.off('data', collect)
  }
}
