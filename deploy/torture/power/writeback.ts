import { closeSync, fstatSync, fsyncSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs'
import { open, readdir } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { chance } from '../world.js'

/*
 * What of the pages that nobody flushed has reached a disk when its power goes: any of them, and of the last ones any of their
 * sectors.
 */

const PAGE = 4096
/** Of files whose pages were being written. */
const TORN_SHARE = 0.5

/** Flushes a half of the directories under `root`, which one follows from the numbers. */
export async function flushHalf(root: string, ...of: readonly number[]): Promise<void> {
  for await (const { directory, files } of directoriesUnder(root)) {
    if (chance(...of, ...Buffer.from(relative(root, directory))) < 0.5) continue
    for (const file of files) await flush(join(directory, file))
    await flush(directory)
  }
}

async function flush(path: string): Promise<void> {
  try {
    const file = await open(path)
    await file.sync().finally(() => file.close())
  } catch (error) {
    // The service may be at work.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

/** What files hold as their processes see it, whether it is on the disk or not; by what stays when they are renamed. */
export type Contents = ReadonlyMap<string, Buffer>

export async function contentsUnder(root: string): Promise<Contents> {
  const contents = new Map<string, Buffer>()
  for await (const path of filesUnder(root)) {
    const file = openSync(path, 'r')
    contents.set(identityOf(file), bytesOf(file))
    closeSync(file)
  }
  return contents
}

/**
 * Tears the writes that a cut has lost: of a page that was not flushed, each unit of so many bytes is as it was or as it was to be, and a
 * file may end anywhere in what was appended to it. Gives how many files it tore.
 */
export async function tear(root: string, before: Contents, unit: number, ...of: readonly number[]): Promise<number> {
  let torn = 0
  for await (const path of filesUnder(root)) {
    const seeds = [...of, ...Buffer.from(relative(root, path))]
    if (chance(...seeds, 1) > TORN_SHARE) continue
    const file = openSync(path, 'r+')
    const lost = before.get(identityOf(file))
    if (lost !== undefined && tearFile(file, lost, unit, seeds)) torn += 1
    closeSync(file)
  }
  return torn
}

function tearFile(file: number, lost: Buffer, unit: number, seeds: readonly number[]): boolean {
  const kept = bytesOf(file)
  if (lost.length < kept.length || lost.equals(kept)) return false
  const appended = Math.floor(chance(...seeds, 2) * (lost.length - kept.length + 1))
  const torn = Buffer.alloc(kept.length + appended)
  kept.copy(torn)
  for (let at = 0; at < torn.length; at += unit) {
    // Pages are written in any order; of most of them the whole or nothing has reached the disk.
    const page = Math.floor(at / PAGE)
    const isTorn = chance(...seeds, page, 3) < 0.3
    const isWritten = isTorn ? chance(...seeds, at, 4) < 0.5 : chance(...seeds, page, 5) < 0.5
    if (isWritten) lost.copy(torn, at, at, Math.min(at + unit, torn.length))
  }
  ftruncateSync(file, torn.length)
  writeSync(file, torn, 0, torn.length, 0)
  fsyncSync(file)
  return !torn.equals(kept)
}

/** An inode's number alone is given again. */
function identityOf(file: number): string {
  const { ino, birthtimeNs } = fstatSync(file, { bigint: true })
  return `${ino} ${birthtimeNs}`
}

function bytesOf(file: number): Buffer {
  const bytes = Buffer.alloc(fstatSync(file).size)
  for (let at = 0; at < bytes.length; ) {
    const read = readSync(file, bytes, at, bytes.length - at, at)
    if (read === 0) break
    at += read
  }
  return bytes
}

async function* filesUnder(root: string): AsyncIterable<string> {
  for await (const { directory, files } of directoriesUnder(root)) for (const file of files) yield join(directory, file)
}

async function* directoriesUnder(directory: string): AsyncIterable<{ directory: string; files: string[] }> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => [])
  yield { directory, files: entries.filter((entry) => entry.isFile()).map(({ name }) => name) }
  for (const entry of entries) if (entry.isDirectory()) yield* directoriesUnder(join(directory, entry.name))
}
