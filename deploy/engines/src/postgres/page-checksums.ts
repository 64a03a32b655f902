import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { errorCode } from '@gamenet/schemas'

/*
 * PostgreSQL's data checksums (src/include/storage/checksum_impl.h): 32 parallel sums over the words of a page, each with
 * its own initial value, folded into 16 bits with the number of the page.
 */

export const PAGE_BYTES = 8192
export const SEGMENT_PAGES = 131_072
const SUMS = 32
const PRIME = 16_777_619
const WORDS = PAGE_BYTES / 4
/** Bytes 8 and 9 contain the checksum. */
const CHECKSUM_WORD = 2
const STARTS = Uint32Array.of(
  ...[0x5b1f36e9, 0xb8525960, 0x02ab50aa, 0x1de66d2a, 0x79ff467a, 0x9bb9f8a3, 0x217e7cd2, 0x83e13d2c],
  ...[0xf8d4474f, 0xe39eb970, 0x42c6ae16, 0x993216fa, 0x7b093b5d, 0x98daff3c, 0xf718902a, 0x0b1c9cdb],
  ...[0xe58f764b, 0x187636bc, 0x5d7b3bb1, 0xe73de7de, 0x92bec979, 0xcca6c0b2, 0x304a0979, 0x85aa43d4],
  ...[0x783125bb, 0x6ca8eaa2, 0xe407eac6, 0x4b5cfc3e, 0x9fbf8c76, 0x15ca20be, 0xf2ca9fd3, 0x959bd756]
)

/** A page that is read while PostgreSQL writes it looks damaged, so files with damaged pages are read again. */
const READ_AGAIN_MAX = 3
const READ_AGAIN_MS = 20

/** A file of tables or indexes, and its damaged pages. `isCut`: it ends within a page, before its pages do, or is missing. */
export type PageFault = {
  readonly filenode: number
  readonly file: string
  readonly pages: readonly number[]
  readonly isCut?: true
}

export type CheckedPages = {
  /** Pages with wrong checksums. */
  readonly faults: readonly PageFault[]
  /** Files of rows with pages of zeros: added and not written before a crash, written in memory only, or overwritten. */
  readonly zeroed: readonly Pick<PageFault, 'filenode' | 'file'>[]
}

/**
 * Verifies every page of the database's own tables and indexes, also while PostgreSQL writes to them. After each file,
 * awaits `onBytes` with its size.
 */
export async function checkPages(dir: string, onBytes: (bytes: number) => Promise<void>): Promise<CheckedPages> {
  const faults: PageFault[] = []
  const zeroed: Pick<PageFault, 'filenode' | 'file'>[] = []
  for (const folder of [...namesIn(join(dir, 'base')).map((name) => join('base', name)), 'global']) {
    for (const name of namesIn(join(dir, folder))) {
      const [, filenode, segment = '0'] = /^(\d+)(?:_(?:vm|fsm))?(?:\.(\d+))?$/.exec(name) ?? []
      if (filenode === undefined) continue
      const file = join(folder, name)
      const bytes = bytesOf(join(dir, file))
      const first = Number(segment) * SEGMENT_PAGES
      let pages = damagedPages(bytes, first)
      for (let again = 0; pages.length > 0 && again < READ_AGAIN_MAX; again += 1) {
        await pause(READ_AGAIN_MS)
        const still = new Set(damagedPages(bytesOf(join(dir, file)), first))
        pages = pages.filter((page) => still.has(page))
      }
      const isCut = bytes.length % PAGE_BYTES !== 0
      if (pages.length > 0) faults.push({ filenode: Number(filenode), file, pages, ...(isCut && { isCut }) })
      if (!name.includes('_') && zeroPages(bytes).length > 0) zeroed.push({ filenode: Number(filenode), file })
      await onBytes(bytes.length)
    }
  }
  return { faults, zeroed }
}

/** Returns the names in a folder; none if it is missing, without which PostgreSQL does not start. */
function namesIn(path: string): string[] {
  return existsSync(path) ? readdirSync(path) : []
}

/** Returns the numbers of the pages of zeros, from the start of the file. */
export function zeroPages(bytes: Buffer): number[] {
  const pages: number[] = []
  for (let at = 0; at + PAGE_BYTES <= bytes.length; at += PAGE_BYTES)
    if (ZEROS.equals(bytes.subarray(at, at + PAGE_BYTES))) pages.push(at / PAGE_BYTES)
  return pages
}

const ZEROS = Buffer.alloc(PAGE_BYTES)

/** Returns the bytes of a file; none if it has been deleted with its table or index. */
export function bytesOf(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
    return Buffer.alloc(0)
  }
}

function damagedPages(bytes: Buffer, first: number): number[] {
  const damaged: number[] = []
  for (let at = 0; at < bytes.length; at += PAGE_BYTES) {
    const page = bytes.subarray(at, at + PAGE_BYTES)
    const number = first + at / PAGE_BYTES
    if (page.length < PAGE_BYTES) damaged.push(number)
    else if (!ZEROS.equals(page) && page.readUInt16LE(8) !== checksumOf(page, number)) damaged.push(number)
  }
  return damaged
}

function checksumOf(page: Buffer, number: number): number {
  const sums = Int32Array.from(STARTS)
  const words = new Int32Array(WORDS + 2 * SUMS)
  words.set(new Int32Array(page.buffer, page.byteOffset, WORDS))
  words[CHECKSUM_WORD] = (words[CHECKSUM_WORD] ?? 0) & 0xffff_0000
  for (let word = 0; word < words.length; word += 1) {
    const mixed = (sums[word % SUMS] ?? 0) ^ (words[word] ?? 0)
    sums[word % SUMS] = Math.imul(mixed, PRIME) ^ (mixed >>> 17)
  }
  const folded = (sums.reduce((all, sum) => all ^ sum, 0) ^ number) >>> 0
  return (folded % 65_535) + 1
}
