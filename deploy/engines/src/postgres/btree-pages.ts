import { PAGE_BYTES } from './page-checksums.js'

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
/** The state of an item that is in use, in bits 15 and 16. */
const IN_USE = 1

/**
 * Returns whether an index, read as far as it is readable, refers to no page beyond the end of its table and of itself: neither was cut.
 * False if a page is so damaged that it may hide references.
 */
export const showsWholeTable = (bytes: Buffer, tablePages: number): boolean => {
  const beyond: number[] = []
  for (let at = 0; at < bytes.length; at += PAGE_BYTES) {
    const page = bytes.subarray(at, at + PAGE_BYTES)
    if (page.length < PAGE_BYTES) return false
    if (page.every((byte) => byte === 0)) continue
    const end = page.readUInt16LE(12)
    if (page.readUInt16LE(16) !== NEIGHBOURS_AT || end > NEIGHBOURS_AT) return false
    const [next, flags] = [page.readUInt32LE(NEIGHBOURS_AT + 4), page.readUInt16LE(NEIGHBOURS_AT + 12)]
    if ((flags & WITHOUT_ITEMS) !== 0) continue
    if (next * PAGE_BYTES >= bytes.length) return false
    if ((flags & LEAF) !== 0) beyond.push(...pagesOfRows(page, end, next).filter((row) => row >= tablePages))
  }
  // A single reference to a far page is a damaged one.
  return beyond.length === 0 || (beyond.length === 1 && beyond[0] !== tablePages)
}

function pagesOfRows(page: Buffer, end: number, next: number): number[] {
  const pages: number[] = []
  // The first item of a page with a right neighbour is the limit of its keys.
  for (let item = ITEMS_AT + (next === 0 ? 0 : 4); item < end; item += 4) {
    const pointer = page.readUInt32LE(item)
    if (((pointer >>> 15) & 3) === IN_USE) pages.push(pageOfLastRow(page, pointer & 0x7fff) ?? 0)
  }
  return pages
}

/** Returns the number of the page of an item's last row; undefined if the item is unreadable. */
const pageOfLastRow = (page: Buffer, item: number): number | undefined => {
  const pageOf = (row: number) =>
    row + ROW_BYTES > NEIGHBOURS_AT ? undefined : page.readUInt16LE(row) * 0x10000 + page.readUInt16LE(row + 2)
  const [offset, info] = [pageOf(item), item + 8 > NEIGHBOURS_AT ? 0 : page.readUInt16LE(item + 6)]
  if (offset === undefined || (info & HAS_OTHER_FORM) === 0) return offset
  const list = page.readUInt16LE(item + 4)
  return (list & IS_LIST) === 0 ? undefined : pageOf(item + offset + ((list & LIST_LENGTH) - 1) * ROW_BYTES)
}
