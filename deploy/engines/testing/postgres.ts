import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Certificate } from './certificate.js'
import { freePort } from './free-port.js'

/** A separate PostgreSQL server on loopback, in a temporary directory. */
export type PostgresProcess = {
  readonly url: string
  stop(): Promise<void>
  /** Kills it, as a crash does, and keeps its directory for `start`. */
  kill(): Promise<void>
  start(): Promise<void>
}

const DEBIAN_VERSIONS = '/usr/lib/postgresql'
const START_WAIT_MS = 120_000
const SAID_LENGTH = 4000

/** Returns the folder of the newest PostgreSQL programs of Debian's package; undefined if there is none. */
export const postgresPrograms = (): string | undefined => {
  if (!existsSync(DEBIAN_VERSIONS)) return undefined
  const versions = readdirSync(DEBIAN_VERSIONS).sort((a, b) => Number(b) - Number(a))
  return versions
    .map((version) => join(DEBIAN_VERSIONS, version, 'bin'))
    .find((bin) => existsSync(join(bin, 'postgres')))
}

/**
 * Starts the server. PostgreSQL refuses to run as root, so root runs it as the package's user `postgres`. Unless
 * durable, it does not flush.
 */
export const startPostgres = async (
  programs: string,
  {
    isDurable = false,
    directory,
    certificate
  }: {
    readonly isDurable?: boolean
    /** Serves connections with TLS too. */
    readonly certificate?: Certificate
    /** Kept at the end, and reused if it exists; its parents must be accessible to the user `postgres`. */
    readonly directory?: string
  } = {}
): Promise<PostgresProcess> => {
  const dir = directory ?? mkdtempSync(join(tmpdir(), 'postgres-'))
  mkdirSync(dir, { recursive: true })
  const owner = serverUser()
  if (owner !== undefined) chownSync(dir, owner.uid, owner.gid)
  const data = join(dir, 'data')
  const port = await freePort()
  const cluster = ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync', '--no-instructions']
  if (!existsSync(data)) execFileSync(join(programs, 'initdb'), cluster, { cwd: dir, stdio: 'pipe', ...owner })
  const options = [
    '-D',
    data,
    '-h',
    '127.0.0.1',
    '-p',
    String(port),
    '-k',
    dir,
    '-c',
    `fsync=${isDurable ? 'on' : 'off'}`,
    ...(certificate === undefined ? [] : tlsOptions(dir, certificate, owner))
  ]
  let server: ChildProcess | undefined
  const start = async (): Promise<void> => {
    server = spawn(join(programs, 'postgres'), options, { cwd: dir, stdio: ['ignore', 'ignore', 'pipe'], ...owner })
    await ready(server)
  }
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (server === undefined || server.exitCode !== null || server.signalCode !== null) return
    const exited = once(server, 'exit')
    server.kill(signal)
    await exited
  }
  await start()
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    start,
    // An immediate shutdown: no checkpoint, clients are disconnected.
    kill: () => end('SIGQUIT'),
    stop: async () => {
      await end('SIGINT')
      if (directory === undefined) rmSync(dir, { recursive: true, force: true })
    }
  }
}

/** PostgreSQL refuses a key that is not its own. */
const tlsOptions = (dir: string, certificate: Certificate, owner: ReturnType<typeof serverUser>): string[] => {
  const files = { ssl_key_file: certificate.keyFile, ssl_cert_file: certificate.certificateFile }
  const copied = Object.entries(files).map(([name, file]) => {
    const own = join(dir, name)
    copyFileSync(file, own)
    if (owner !== undefined) chownSync(own, owner.uid, owner.gid)
    return [name, own] as const
  })
  return [['ssl', 'on'] as const, ...copied].flatMap(([name, value]) => ['-c', `${name}=${value}`])
}

const serverUser = (): { uid: number; gid: number } | undefined => {
  if (process.getuid?.() !== 0) return undefined
  const id = (flag: string): number => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))
  return { uid: id('-u'), gid: id('-g') }
}

const ready = (server: ChildProcess): Promise<void> =>
  new Promise((resolve, reject) => {
    let said = ''
    const timer = setTimeout(() => server.kill('SIGKILL'), START_WAIT_MS)
    server.stderr?.on('data', (chunk) => {
      said = (said + String(chunk)).slice(-SAID_LENGTH)
      if (!said.includes('ready to accept connections')) return
      clearTimeout(timer)
      resolve()
    })
    server.once('exit', () => {
      clearTimeout(timer)
      reject(new Error(`PostgreSQL did not start: ${said}`))
    })
  })
