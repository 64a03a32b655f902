import {
  closeSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readSync,
  statSync,
  writeSync
} from 'node:fs'
import { open } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { chance } from '../world.js'

/*
 * What of the pages that nobody flushed has reached a disk when its power goes: any of them, and of the last ones any of their
 * sectors.
 */

const PAGE = 4096
/** Of files whose pages were being written. */
const TORN_SHARE = 0.5
/** By so much the clock of a file system may be behind. */
const CLOCK_MS = 100

/** A file system with all unchanged data flushed. */
type Root = { readonly path: string; readonly mountedMs: number }

/** Flushes a half of the directories, which one follows from the numbers. */
export async function flushHalf(root: Root, ...of: readonly number[]): Promise<void> {
  for (const { directory, files } of directoriesUnder(root)) {
    if (chance(...of, ...Buffer.from(relative(root.path, directory))) < 0.5) continue
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

export function contentsUnder(root: Root): Contents {
  const contents = new Map<string, Buffer>()
  for (const path of filesUnder(root)) {
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
export function tear(root: string, before: Contents, unit: number, ...of: readonly number[]): number {
  let torn = 0
  for (const path of filesUnder({ path: root, mountedMs: 0 })) {
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

function* filesUnder(root: Root): Iterable<string> {
  for (const { directory, files } of directoriesUnder(root)) for (const file of files) yield join(directory, file)
}

/** All directories, with those of their files that may have pages which are not flushed. */
function* directoriesUnder({ path, mountedMs }: Root): Iterable<{ directory: string; files: readonly string[] }> {
  const files: string[] = []
  const directories: string[] = []
  try {
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      if (entry.isDirectory()) directories.push(join(path, entry.name))
      else if (entry.isFile() && statSync(join(path, entry.name)).ctimeMs > mountedMs - CLOCK_MS) files.push(entry.name)
    }
  } catch (error) {
    // The service may be at work.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  yield { directory: path, files }
  for (const directory of directories) yield* directoriesUnder({ path: directory, mountedMs })
}
