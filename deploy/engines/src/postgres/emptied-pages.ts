import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { bytesOf, PAGE_BYTES, SEGMENT_PAGES, zeroPages } from './page-checksums.js'

/*
 * The layout of a B-tree index (src/include/access/nbtree.h): each page ends with 16 bytes about its neighbours; each item of a leaf
 * refers to a row, or to a list of rows with the same key.
 */

const NEIGHBOURS_AT = PAGE_BYTES - 16
const ITEMS_AT = 24
const LEAF = 1
/** Deleted, half dead, or with facts about the whole index. */
const WITHOUT_ITEMS = 4 | 16 | 8
const HAS_OTHER_FORM = 0x2000
const IS_LIST = 0x2000
const LIST_LENGTH = 0x0fff
const ROW_BYTES = 6

/**
 * Returns the pages of zeros in a file of a table to which B-tree indexes refer, so that rows were overwritten there. PostgreSQL reads
 * such a page as a new one, without an error. Without a reference it is one: added before a crash, and not written.
 * The files are named relative to the directory; those of a running database must be at the state of a checkpoint.
 */
export function emptiedPages(directory: string, table: string, indexes: readonly string[]): number[] {
  const first = Number(/\.(\d+)$/.exec(table)?.[1] ?? 0) * SEGMENT_PAGES
  const zero = new Set(zeroPages(bytesOf(join(directory, table))).map((page) => first + page))
  const referred = new Set<number>()
  for (const index of indexes)
    for (let segment = 0; segment === 0 || existsSync(join(directory, `${index}.${segment}`)); segment += 1) {
      const bytes = bytesOf(join(directory, segment === 0 ? index : `${index}.${segment}`))
      for (let at = 0; at + PAGE_BYTES <= bytes.length; at += PAGE_BYTES)
        for (const page of pagesOfRows(bytes.subarray(at, at + PAGE_BYTES))) if (zero.has(page)) referred.add(page)
    }
  return [...referred].sort((a, b) => a - b)
}

/** Returns the numbers of the pages of all rows that a page of an index refers to; a damaged reference is any number. */
function pagesOfRows(page: Buffer): number[] {
  const flags = page.readUInt16LE(NEIGHBOURS_AT + 12)
  if ((flags & LEAF) === 0 || (flags & WITHOUT_ITEMS) !== 0) return []
  const hasRightNeighbour = page.readUInt32LE(NEIGHBOURS_AT + 4) !== 0
  const end = Math.min(page.readUInt16LE(12), NEIGHBOURS_AT)
  const pages: number[] = []
  // The first item of a page with a right neighbour is the limit of its keys.
  for (let pointer = ITEMS_AT + (hasRightNeighbour ? 4 : 0); pointer + 4 <= end; pointer += 4) {
    const item = page.readUInt32LE(pointer) & 0x7fff
    if (item + 8 > NEIGHBOURS_AT) continue
    const list = page.readUInt16LE(item + 4)
    const isList = (page.readUInt16LE(item + 6) & HAS_OTHER_FORM) !== 0 && (list & IS_LIST) !== 0
    const [from, count] = isList ? [item + page.readUInt16LE(item + 2), list & LIST_LENGTH] : [item, 1]
    for (let row = from; row < from + count * ROW_BYTES && row + ROW_BYTES <= NEIGHBOURS_AT; row += ROW_BYTES)
      pages.push(page.readUInt16LE(row) * 0x10000 + page.readUInt16LE(row + 2))
  }
  return pages
}
