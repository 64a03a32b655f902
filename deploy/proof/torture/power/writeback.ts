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

/* Simulates which unflushed pages reach the disk before a power cut: any of them, and any sectors of the last ones. */

const PAGE = 4096
/** Share of files with torn writes. */
const TORN_SHARE = 0.5
/** Maximum lag of the clock of a file system. */
const CLOCK_MS = 100

/** A file system with all unchanged data flushed. */
type Root = { readonly path: string; readonly mountedMs: number }

/** Flushes a random half of the directories, chosen by the numbers. */
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
    // The service may change files meanwhile.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

/** The contents of files as processes see them, flushed or not, by inode, which survives a rename. */
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
 * Tears the writes that a cut has lost: each unit of an unflushed page has its old or its new content, and a file may
 * end anywhere in the appended bytes. Returns the number of torn files.
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
    // Pages are written in any order; most of them have reached the disk completely or not at all.
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

/** Inode numbers are reused; with the birth time they are unique. */
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

/** Yields all directories, each with the files that may have unflushed pages. */
function* directoriesUnder({ path, mountedMs }: Root): Iterable<{ directory: string; files: readonly string[] }> {
  const files: string[] = []
  const directories: string[] = []
  try {
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      if (entry.isDirectory()) directories.push(join(path, entry.name))
      else if (entry.isFile() && statSync(join(path, entry.name)).ctimeMs > mountedMs - CLOCK_MS) files.push(entry.name)
    }
  } catch (error) {
    // The service may delete files meanwhile.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  yield { directory: path, files }
  for (const directory of directories) yield* directoriesUnder({ path: directory, mountedMs })
}
