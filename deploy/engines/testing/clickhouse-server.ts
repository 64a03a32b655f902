import { mkdirSync } from 'node:fs'
import { asker } from '../src/clickhouse/ask.js'
import { startChild } from '../src/clickhouse/child.js'

/** A ClickHouse server in a separate process, whose user has all rights. */
export type ClickHouseServer = {
  readonly url: string
  /** Runs one statement. */
  readonly ask: ReturnType<typeof asker>
  /** Kills it, as a crash does: it has no other end. What it has answered is stored. */
  kill(): Promise<void>
  /** Stops or continues the process. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void
}

/** Of every start, so that a restarted server keeps its address. */
const PASSWORD = 'testing'
/** The rights of tests that make, empty or inspect tables by themselves. */
export const ALL_RIGHTS = 'GRANT ALL ON *.*'

const MEMORY_BYTES = 3 * 2 ** 30

/** Returns the address of a server that is, or will be, started on this port. */
export const clickHouseUrl = (port: number): string => `http://gamenet:${PASSWORD}@127.0.0.1:${port}`

/** Starts a server on a directory. A given port lets a restarted server keep its address. */
export const startClickHouseServer = async (options: {
  readonly path: string
  readonly port?: number
}): Promise<ClickHouseServer> => {
  mkdirSync(options.path, { recursive: true })
  const child = await startChild({
    memoryBytes: MEMORY_BYTES,
    password: PASSWORD,
    grants: ALL_RIGHTS,
    ...options
  })
  return {
    url: clickHouseUrl(child.ports[0] ?? 0),
    ask: asker(child, PASSWORD),
    kill: () => child.kill(),
    signal: (signal) => void process.kill(child.pid, signal)
  }
}
