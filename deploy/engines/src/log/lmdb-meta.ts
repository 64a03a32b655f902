import { closeSync, fstatSync, openSync, readSync } from 'node:fs'

/*
 * The first two pages of an LMDB file (mdb.c, `MDB_meta`). Each commit overwrites the older one: the one with the
 * higher transaction number counts. LMDB refuses a file whose meta pages are of another kind, but not one that ends
 * before its pages do: reading those ends the process.
 */

const MAGIC = 0xbeef_c0de
const DATA_VERSION = 2
const PAGE_BYTES_MAX = 65_536
const HEADER_BYTES = 24
const META_BYTES = 160

/** Whether the meta pages of a file are sound, and whether the file has all pages that they count. */
export type MetaState = 'sound' | 'short' | { readonly damage: string }

/** Reads the meta pages of an LMDB file; an empty file is sound. Throws if it cannot be read. */
export function stateOfMeta(file: string): MetaState {
  const fd = openSync(file, 'r')
  try {
    const { size } = fstatSync(fd)
    if (size === 0) return 'sound'
    const first = metaAt(fd, 0)
    const pageBytes = first?.readUInt32LE(24) ?? 0
    const isPower = (pageBytes & (pageBytes - 1)) === 0
    if (first === undefined || pageBytes < 512 || pageBytes > PAGE_BYTES_MAX || !isPower)
      return { damage: 'its first page is damaged' }
    const second = metaAt(fd, pageBytes)
    if (second === undefined || second.readUInt32LE(24) !== pageBytes)
      return { damage: 'one of its two meta pages is damaged' }
    const newest = first.readBigUInt64LE(128) >= second.readBigUInt64LE(128) ? first : second
    const pages = newest.readBigUInt64LE(120) + 1n
    if (BigInt(size) >= pages * BigInt(pageBytes)) return 'sound'
    return size % pageBytes === 0 ? 'short' : { damage: `it is truncated after ${size} bytes` }
  } finally {
    closeSync(fd)
  }
}

/** Returns a meta page after its header; undefined for any other page. */
function metaAt(fd: number, at: number): Buffer | undefined {
  const page = Buffer.alloc(HEADER_BYTES + META_BYTES)
  if (readSync(fd, page, 0, page.length, at) < page.length) return undefined
  const meta = page.subarray(HEADER_BYTES)
  const isMeta = meta.readUInt32LE(0) === MAGIC && (meta.readUInt32LE(4) & 0xffff) === DATA_VERSION
  return isMeta ? meta : undefined
}
