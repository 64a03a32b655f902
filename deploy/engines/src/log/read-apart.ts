import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { LogDamaged } from './embedded-store.js'

/** Signals by which damaged pages end a process. Others end a sound one: memory ran out, or somebody sent them. */
const OF_DAMAGE: ReadonlySet<string> = new Set(['SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGILL', 'SIGSEGV', 'SIGTRAP'])

const CHILD = fileURLToPath(new URL('./log-reading-child.js', import.meta.url))

/** `keys`: the structure of the file. `values`: the batches too, without their checksums. */
type Reads = 'keys' | 'values'

/**
 * Reads a log in a process of its own, and rejects with {@link LogDamaged} if that process meets damage or dies of it.
 * Other processes may append meanwhile.
 */
export async function readLogApart(path: string, reads: Reads, signal?: AbortSignal): Promise<void> {
  if ((statSync(join(path, 'data.mdb'), { throwIfNoEntry: false })?.size ?? 0) === 0) return
  const child = spawn(process.execPath, [CHILD, path, reads], {
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

/** Does the same while the thread waits: before a log is opened. */
export function readLogApartNow(path: string): void {
  const { status: code, signal: killedBy, stdout } = spawnSync(process.execPath, [CHILD, path], { env: {} })
  judge(path, { code, killedBy, said: stdout.toString() })
}

function judge(path: string, { code, killedBy, said }: { code: number | null; killedBy: string | null; said: string }) {
  if (code === 0) return
  const file = `The file ${join(path, 'data.mdb')} of the log`
  if (killedBy !== null && OF_DAMAGE.has(killedBy))
    throw new LogDamaged(`${file} is damaged: reading it ends in ${killedBy}`)
  if (killedBy === null && said !== '') throw new LogDamaged(`${file} is damaged: ${said.split('\n')[0]}`)
  throw new Error(`${file} could not be read by another process (${killedBy ?? `exit code ${code}`}): repeat it.`)
}
