import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { asker } from '../src/clickhouse/ask.js'
import { startChild } from '../src/clickhouse/child.js'

/** A ClickHouse server in a separate process, whose user has all rights. */
export type ClickHouseServer = {
  readonly url: string
  /** Runs one statement. */
  readonly ask: ReturnType<typeof asker>
  /** Kills it, as a crash does: it has no other end. What it has answered is stored. */
  kill(): Promise<void>
  /** Kills it and removes its directory, unless that was given. */
  stop(): Promise<void>
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

/** Starts a server on a directory; default: a temporary one. A given port lets a restarted server keep its address. */
export const startClickHouseServer = async (
  options: { readonly path?: string | undefined; readonly port?: number } = {}
): Promise<ClickHouseServer> => {
  const path = options.path ?? mkdtempSync(join(tmpdir(), 'gamenet-clickhouse-'))
  mkdirSync(path, { recursive: true })
  const ports = [options.port ?? 0]
  const child = await startChild({ memoryBytes: MEMORY_BYTES, password: PASSWORD, grants: ALL_RIGHTS, path, ports })
  return {
    url: clickHouseUrl(child.ports[0] ?? 0),
    ask: asker(child, PASSWORD),
    kill: () => child.kill(),
    stop: async () => {
      await child.kill()
      if (options.path === undefined) rmSync(path, { recursive: true, force: true })
    },
    signal: (signal) => void process.kill(child.pid, signal)
  }
}
