import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { lstatSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { makeFolder } from '../flush-files.js'
import { LogDamaged } from './embedded-store.js'
import { allocateLock } from './lmdb-lock.js'

/** Signals by which damaged pages end a process. Others end a sound one: memory ran out, or somebody sent them. */
const OF_DAMAGE: ReadonlySet<string> = new Set(['SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGILL', 'SIGSEGV', 'SIGTRAP'])

const CHILD = fileURLToPath(new URL('./log-reading-child.js', import.meta.url))

/** `keys`: the structure of the file. `values`: the batches too, without their checksums. */
export type Reads = 'keys' | 'values'

/**
 * Reads a log that nobody appends to in a process of its own, and rejects with {@link LogDamaged} if that process meets
 * damage or dies of it. `EmbeddedLog.readApart` does it for an open one.
 */
export async function readLogApart(path: string, reads: Reads, signal?: AbortSignal): Promise<void> {
  if ((statSync(join(path, 'data.mdb'), { throwIfNoEntry: false })?.size ?? 0) === 0) return
  const child = spawn(process.execPath, [CHILD, folderWithLock(path), reads], {
    env: {},
    stdio: ['ignore', 'pipe', 'ignore'],
    ...(signal === undefined ? {} : { signal })
  })
  let said = ''
  child.stdout.on('data', (text: Buffer) => {
    said += text.toString()
  })
  const [code, killedBy] = (await once(child, 'close')) as [number | null, string | null]
  judge(path, { code, killedBy, said })
}

/**
 * Does the same with all values while the thread waits: before a log is opened whose file lacks pages. Those of a large
 * batch may be missing although all keys are there.
 */
export function readLogApartNow(path: string): void {
  const {
    status: code,
    signal: killedBy,
    stdout
  } = spawnSync(process.execPath, [CHILD, folderWithLock(path), 'values' satisfies Reads], { env: {} })
  judge(path, { code, killedBy, said: stdout.toString() })
}

/**
 * Returns a folder in that of the log, with a link to its file and a lock file of its own. A process that opens LMDB's
 * file sets the newest transaction of the lock file to the one that it has read (mdb.c, `mdb_env_open2`). With the lock
 * file of a process that commits meanwhile, the next commit would begin at an older one and overwrite newer pages.
 */
function folderWithLock(path: string): string {
  const folder = join(path, 'reading')
  makeFolder(folder)
  const link = join(folder, 'data.mdb')
  if (lstatSync(link, { throwIfNoEntry: false }) === undefined) symlinkSync('../data.mdb', link)
  allocateLock(folder)
  return folder
}

function judge(path: string, { code, killedBy, said }: { code: number | null; killedBy: string | null; said: string }) {
  if (code === 0) return
  const file = `The file ${join(path, 'data.mdb')} of the log`
  if (killedBy !== null && OF_DAMAGE.has(killedBy))
    throw new LogDamaged(`${file} is damaged: reading it ends in ${killedBy}`)
  if (killedBy === null && said !== '') throw new LogDamaged(`${file} is damaged: ${said.split('\n')[0]}`)
  throw new Error(`${file} could not be read by another process (${killedBy ?? `exit code ${code}`}): repeat it.`)
}
