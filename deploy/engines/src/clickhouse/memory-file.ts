import { randomUUID } from 'node:crypto'
import { access, constants, type FileHandle, open, rm } from 'node:fs/promises'
import { join } from 'node:path'

/** Bytes as a file in memory, which has a path in this process alone. */
export type MemoryFile = {
  readonly path: string
  /** Gives the memory back. */
  close(): Promise<void>
}

/** Where Linux keeps files in memory. In a container it may have room for 64 MiB, or not be there. */
const MEMORY_FOLDER = '/dev/shm'

/**
 * Makes a file of bytes that no disk holds. It is unlinked before its first byte is written, so that no other process can open it
 * and a crash leaves nothing behind. Gives undefined where the system has no such place, or no room in it.
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
