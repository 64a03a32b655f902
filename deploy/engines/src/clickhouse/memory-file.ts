import { randomUUID } from 'node:crypto'
import { access, constants, type FileHandle, open, rm } from 'node:fs/promises'
import { join } from 'node:path'

/** A file with bytes for the engine in this process. */
export type MemoryFile = {
  readonly path: string
  /** Frees the memory. */
  close(): Promise<void>
}

/** Linux's folder for files in memory. In a container it may have 64 MiB, or be missing. */
const MEMORY_FOLDER = '/dev/shm'

/**
 * Creates a file with these bytes in memory; where the system has no such folder, or no space in it, in another folder.
 * On Linux it is unlinked before its first byte is written, so that no other process can open it and a crash leaves
 * nothing behind.
 */
export const memoryFile = async (
  bytes: Uint8Array,
  otherFolder: string,
  folder = MEMORY_FOLDER
): Promise<MemoryFile> => {
  try {
    return await fileIn(folder, bytes)
  } catch {
    return await fileIn(otherFolder, bytes)
  }
}

const fileIn = async (folder: string, bytes: Uint8Array): Promise<MemoryFile> => {
  const name = join(folder, `gamenet-${randomUUID()}`)
  const handle = await open(name, 'wx', 0o600)
  const close = async (): Promise<void> => {
    await handle.close()
    await rm(name, { force: true })
  }
  try {
    const path = await pathWithoutName(handle, name)
    await handle.writeFile(bytes)
    return { path, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Removes the name where the system has another path to an open file. */
const pathWithoutName = async (handle: FileHandle, name: string): Promise<string> => {
  const path = `/proc/self/fd/${handle.fd}`
  try {
    await access(path, constants.R_OK)
    await rm(name)
    return path
  } catch {
    return name
  }
}
