import { closeSync, fstatSync, openSync, readSync } from 'node:fs'

/*
 * LMDB trusts its file: a damaged page crashes the process or is misread. So every page of the trees is
 * checked before LMDB opens the file, by the layout of liblmdb 1.0 (mdb.c, "Page Flags" and below).
 *
 * meta page   pages 0 and 1; the one with the higher transaction number counts
 * tree        branch pages and leaf pages; values larger than half a page are in overflow pages
 * free list   a tree whose values are numbers of pages that no other tree uses
 */

const MAGIC = 0xbeef_c0de
const DATA_VERSION = 2
const PAGE_BYTES_MAX = 65_536
const HEADER_BYTES = 24
const META_BYTES = 512
const NODE_BYTES = 8
const DB_BYTES = 48
const NO_PAGE = 0xffff_ffff_ffff_ffffn
const [BRANCH, LEAF, OVERFLOW] = [1, 2, 4]
const [BIG_DATA, SUB_DATA] = [1, 2]
const DEPTH_MAX = 32
/** Free pages may lie beyond the end of the file. */
const SPARE_PAGES = 2 ** 20

type Tree = { depth: number; branches: number; leaves: number; overflows: number; entries: number; root: bigint }

class Damage extends Error {}

/**
 * Returns the damage to the structure of an LMDB file as the end of a sentence; undefined if there is none. Values are
 * not checked, and pages with only overflow data are not read: the cost grows with the number of values, not with their
 * size.
 */
export function damageOfLmdb(file: string): string | undefined {
  const fd = openSync(file, 'r')
  const before = metasOf(fd)
  try {
    const { size } = fstatSync(fd)
    if (size > 0) new Walk(fd, size).all()
    return undefined
  } catch (error) {
    if (!(error instanceof Damage || error instanceof RangeError)) throw error
    // Another process writes to the file; pages have moved meanwhile.
    return metasOf(fd).equals(before) ? error.message : undefined
  } finally {
    closeSync(fd)
  }
}

function metasOf(fd: number): Buffer {
  const first = Buffer.alloc(META_BYTES)
  readSync(fd, first, 0, META_BYTES, 0)
  const second = Buffer.alloc(META_BYTES)
  readSync(fd, second, 0, META_BYTES, first.readUInt32LE(HEADER_BYTES + 24))
  return Buffer.concat([first, second])
}

class Walk {
  readonly #pageBytes: number
  readonly #pages: number
  readonly #used: Uint8Array
  readonly #lastTransaction: bigint
  readonly #trees: readonly [free: Tree, main: Tree]
  readonly #isCopy: boolean
  readonly #free: number[] = []
  /** Newest transaction that wrote a page of the trees: each one writes at least a root. */
  #newest = 0n
  readonly #fd: number

  constructor(fd: number, size: number) {
    this.#fd = fd
    const first = this.#read(0, META_BYTES)
    const pageBytes = metaOf(first)?.readUInt32LE(24) ?? 0
    if (pageBytes < 512 || pageBytes > PAGE_BYTES_MAX || size < 2 * pageBytes)
      throw new Damage('its first page is damaged')
    const metas = [first, this.#read(pageBytes, META_BYTES)].map(metaOf)
    const [left, right] = metas
    if (left === undefined || right === undefined) throw new Damage('one of its two meta pages is damaged')
    const [meta, older] = left.readBigUInt64LE(128) >= right.readBigUInt64LE(128) ? [left, right] : [right, left]
    this.#lastTransaction = meta.readBigUInt64LE(128)
    const before = older.readBigUInt64LE(128)
    // Each commit overwrites the meta page of the commit before the last; a compact copy has only one.
    this.#isCopy = before === 0n
    if (!this.#isCopy && this.#lastTransaction - before !== 1n)
      throw new Damage('its two meta pages do not follow each other')
    this.#pageBytes = pageBytes
    this.#pages = Math.floor(size / pageBytes)
    this.#used = new Uint8Array(this.#pages)
    this.#used.fill(1, 0, 2)
    this.#trees = [treeOf(meta, 24), treeOf(meta, 24 + DB_BYTES)]
  }

  all(): void {
    const [free, main] = this.#trees
    this.#tree(free, true)
    this.#tree(main, false)
    if (!this.#isCopy && this.#newest !== this.#lastTransaction) throw new Damage('it lacks its newest transaction')
    for (const page of this.#free) {
      if (this.#used[page] === 1) throw new Damage(`page ${page} is in use and listed as free`)
    }
  }

  #tree(tree: Tree, isFreeList: boolean): void {
    if (tree.root === NO_PAGE) {
      if (tree.entries !== 0) throw new Damage('a tree without pages claims to have entries')
      return
    }
    const found: Tree = { depth: tree.depth, branches: 0, leaves: 0, overflows: 0, entries: 0, root: tree.root }
    if (tree.depth < 1 || tree.depth > DEPTH_MAX) throw new Damage(`a tree claims to be ${tree.depth} pages deep`)
    this.#page(tree.root, tree.depth, found, isFreeList)
    for (const what of ['branches', 'leaves', 'overflows', 'entries'] as const) {
      if (found[what] !== tree[what])
        throw new Damage(`a tree has ${found[what]} ${what}, and claims to have ${tree[what]}`)
    }
  }

  #page(number: bigint, depth: number, found: Tree, isFreeList: boolean): void {
    const page = this.#read(this.#take(number, 1) * this.#pageBytes, this.#pageBytes)
    const [flags, lower, upper] = [page.readUInt16LE(18), page.readUInt16LE(20), page.readUInt16LE(22)]
    const isOurs =
      page.readBigUInt64LE(0) === number &&
      page.readBigUInt64LE(8) <= this.#lastTransaction &&
      flags === (depth > 1 ? BRANCH : LEAF) &&
      lower <= upper &&
      upper <= this.#pageBytes - HEADER_BYTES &&
      lower % 2 === 0
    if (!isOurs) throw new Damage(`page ${number} is damaged`)
    if (page.readBigUInt64LE(8) > this.#newest) this.#newest = page.readBigUInt64LE(8)
    found[depth > 1 ? 'branches' : 'leaves'] += 1
    for (let at = HEADER_BYTES; at < HEADER_BYTES + lower; at += 2) {
      const node = HEADER_BYTES + page.readUInt16LE(at)
      if (node < HEADER_BYTES + upper || node + NODE_BYTES > this.#pageBytes)
        throw new Damage(`page ${number} is damaged`)
      const keyBytes = page.readUInt16LE(node + 6)
      const data = node + NODE_BYTES + keyBytes
      // Only the first key of a branch page may be empty.
      if (depth === 1 && keyBytes === 0) throw new Damage(`page ${number} is damaged`)
      if (depth > 1) {
        if (data > this.#pageBytes) throw new Damage(`page ${number} is damaged`)
        this.#page(BigInt(page.readUIntLE(node, 6)), depth - 1, found, isFreeList)
      } else this.#entry(page, node, data, found, isFreeList)
    }
  }

  #entry(page: Buffer, node: number, data: number, found: Tree, isFreeList: boolean): void {
    const bytes = page.readUInt32LE(node)
    const flags = page.readUInt16LE(node + 4)
    found.entries += 1
    const isBig = flags === BIG_DATA
    if (![0, BIG_DATA, SUB_DATA].includes(flags) || data + (isBig ? 24 : bytes) > this.#pageBytes)
      throw new Damage(`page ${page.readBigUInt64LE(0)} is damaged`)
    if (flags === SUB_DATA) {
      if (bytes !== DB_BYTES) throw new Damage('the entry of a database is damaged')
      this.#tree(treeOf(page, data), false)
    } else if (isBig) this.#overflow(page, data, bytes, found, isFreeList)
    else if (isFreeList) this.#addFree(page.subarray(data, data + bytes))
  }

  #overflow(page: Buffer, data: number, bytes: number, found: Tree, isFreeList: boolean): void {
    const number = page.readBigUInt64LE(data)
    const pages = Math.ceil((HEADER_BYTES + bytes) / this.#pageBytes)
    const at = this.#take(number, pages) * this.#pageBytes
    const head = this.#read(at, isFreeList ? HEADER_BYTES + bytes : HEADER_BYTES)
    const isOverflow =
      head.readBigUInt64LE(0) === number && head.readUInt16LE(18) === OVERFLOW && head.readUInt32LE(20) === pages
    if (!isOverflow || page.readBigUInt64LE(data + 16) !== BigInt(pages)) throw new Damage(`page ${number} is damaged`)
    found.overflows += pages
    if (isFreeList) this.#addFree(head.subarray(HEADER_BYTES))
  }

  /** The number of pages, then their numbers. */
  #addFree(list: Buffer): void {
    const count = Number(list.readBigUInt64LE(0))
    if ((count + 1) * 8 > list.length) throw new Damage('its list of free pages is damaged')
    for (let n = 1; n <= count; n += 1) {
      const entry = Number(list.readBigInt64LE(n * 8))
      if (entry === 0) continue
      // A negative number: this many pages from the next number on.
      if (entry < 0) n += 1
      const first = entry < 0 ? Number(list.readBigInt64LE(n * 8)) : entry
      for (let page = first; page < first + Math.max(1, -entry); page += 1) this.#free.push(page)
      if (this.#free.length > this.#pages + SPARE_PAGES) throw new Damage('its list of free pages is damaged')
    }
  }

  #take(number: bigint, pages: number): number {
    if (number + BigInt(pages) > BigInt(this.#pages))
      throw new Damage(`it is truncated: it refers to page ${number}, and has ${this.#pages}`)
    const first = Number(number)
    for (let page = first; page < first + pages; page += 1) {
      if (this.#used[page] === 1) throw new Damage(`page ${page} is used twice`)
      this.#used[page] = 1
    }
    return first
  }

  #read(at: number, bytes: number): Buffer {
    const buffer = Buffer.allocUnsafe(bytes)
    const read = readSync(this.#fd, buffer, 0, bytes, at)
    if (read < bytes) throw new Damage(`it is truncated after ${at + read} bytes`)
    return buffer
  }
}

/** Returns a meta page after its header; undefined for any other page. */
function metaOf(page: Buffer): Buffer | undefined {
  const meta = page.subarray(HEADER_BYTES)
  const isMeta = meta.readUInt32LE(0) === MAGIC && (meta.readUInt32LE(4) & 0xffff) === DATA_VERSION
  return isMeta ? meta : undefined
}

function treeOf(bytes: Buffer, at: number): Tree {
  const number = (from: number) => Number(bytes.readBigUInt64LE(at + from))
  return {
    depth: bytes.readUInt16LE(at + 6),
    branches: number(8),
    leaves: number(16),
    overflows: number(24),
    entries: number(32),
    root: bytes.readBigUInt64LE(at + 40)
  }
}
