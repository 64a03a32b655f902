import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isMainThread } from 'node:worker_threads'

/** The size of LMDB's lock file with its default number of readers. */
const LOCK_BYTES = 8272

/**
 * Allocates the blocks of LMDB's lock file in a directory. Otherwise a full disk, on which a mapped file cannot grow,
 * would end the process by SIGBUS. Throws ENOSPC instead. Its content counts only while LMDB has it open, in the main
 * thread first.
 */
export function allocateLock(directory: string): void {
  const path = join(directory, 'lock.mdb')
  const { size, blocks } = statSync(path, { throwIfNoEntry: false }) ?? { size: 0, blocks: 0 }
  if (!isMainThread || (size >= LOCK_BYTES && blocks * 512 >= size)) return
  writeFileSync(path, Buffer.alloc(Math.max(size, LOCK_BYTES)), { flag: size === 0 ? 'w' : 'r+', mode: 0o600 })
}
