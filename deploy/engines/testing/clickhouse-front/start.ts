import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

/** The front in a separate process. */
export type FrontProcess = {
  readonly url: string
  /** Lets the front close its engine; resolves when the process has ended. */
  stop(): Promise<void>
  /** Kills it, as a crash does. */
  kill(): Promise<void>
  /** Stops or continues the process. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void
}

const MAIN = fileURLToPath(new URL('./main.js', import.meta.url))
/** One thread per connection and some for files. */
const THREADS = 32
const START_MS = 120_000

/** Starts the front on a directory. A given port lets a restarted front keep its address. */
export const startClickHouseFront = async (options: {
  readonly path: string
  readonly port?: number
  readonly breaksOff?: boolean
}): Promise<FrontProcess> => {
  const args = ['--path', options.path, '--port', String(options.port ?? 0)]
  if (options.breaksOff === true) args.push('--break-off')
  // The test runner's options apply to its own processes only.
  const environment = ['-u', 'NODE_OPTIONS', `UV_THREADPOOL_SIZE=${THREADS}`]
  const child = spawn('env', [...environment, process.execPath, MAIN, ...args])
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-4000)
  })
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill(signal)
    await exited
  }
  const late = setTimeout(() => child.kill('SIGKILL'), START_MS)
  const url = await firstLine(child)
  clearTimeout(late)
  if (url === undefined) throw new Error(`The ClickHouse front did not start: ${errors}`)
  return { url, stop: () => end('SIGTERM'), kill: () => end('SIGKILL'), signal: (signal) => void child.kill(signal) }
}

const firstLine = async (child: ChildProcess): Promise<string | undefined> => {
  if (child.stdout === null) return undefined
  for await (const line of createInterface({ input: child.stdout })) return line
  return undefined
}
