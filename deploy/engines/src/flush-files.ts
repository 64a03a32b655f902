import { closeSync, fsyncSync, mkdirSync, openSync } from 'node:fs'
import { lstat, open, readdir } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'

/**
 * Files flushed together, so that the disk writes many at once: a new cluster of 1,000 files takes 0.1 s, one by one
 * 0.3 s.
 */
const TOGETHER = 16

/** Flushes all files and folders under a path: contents and directory entries. */
export const flushTree = async (path: string): Promise<void> => {
  const paths: string[] = []
  await collect(path, paths)
  const next = paths.values()
  const flushRest = async (): Promise<void> => {
    for (const each of next) await flushPath(each)
  }
  await Promise.all(Array.from({ length: TOGETHER }, flushRest))
}

/** Flushes the content of a file, or the entries of a folder. */
export const flushPath = async (path: string): Promise<void> => {
  const file = await open(path, 'r')
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Creates a folder if missing, durably. */
export const makeFolder = (path: string): void => {
  const first = mkdirSync(path, { recursive: true })
  if (first === undefined) return
  for (let made = resolve(path); made.length >= resolve(first).length; made = dirname(made)) flushNow(dirname(made))
}

/** As `flushPath`, synchronously. */
export const flushNow = (path: string): void => {
  const fd = openSync(path, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

const collect = async (path: string, paths: string[]): Promise<void> => {
  const found = await lstat(path)
  if (found.isDirectory()) for (const name of await readdir(path)) await collect(join(path, name), paths)
  if (found.isDirectory() || found.isFile()) paths.push(path)
}
