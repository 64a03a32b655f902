import { randomUUID } from 'node:crypto'
import { access, constants, type FileHandle, open, rm } from 'node:fs/promises'
import { join } from 'node:path'

/** Bytes in a memory file, whose path is valid only in this process. */
export type MemoryFile = {
  readonly path: string
  /** Frees the memory. */
  close(): Promise<void>
}

/** Linux's folder for files in memory. In a container it may have 64 MiB, or be missing. */
const MEMORY_FOLDER = '/dev/shm'

/**
 * Creates a memory file with these bytes. It is unlinked before its first byte is written, so that no other process can
 * open it and a crash leaves nothing behind. Returns undefined if the system has no such folder, or no space in it.
 */
export const memoryFile = async (bytes: Uint8Array, folder = MEMORY_FOLDER): Promise<MemoryFile | undefined> => {
  let handle: FileHandle | undefined
  try {
    const name = join(folder, `gamenet-${randomUUID()}`)
    handle = await open(name, 'wx', 0o600)
    await rm(name)
    const path = `/proc/self/fd/${handle.fd}`
    await access(path, constants.R_OK)
    await handle.writeFile(bytes)
    const made = handle
    return { path, close: () => made.close() }
  } catch {
    await handle?.close()
    return undefined
  }
}
