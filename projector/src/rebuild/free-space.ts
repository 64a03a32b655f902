import { bytesText } from '@gamenet/schemas'
import type { Store } from '../store/operation.js'
import { readDisks } from '../store/table.js'

/** Bytes that stay free for what cannot wait, on a disk of so many; 0 where it may be filled. */
export type ReservedBytes = (diskBytes: number) => number

export type FreeSpace = {
  /** Free bytes of the fullest disk of the tables; null where the engine has none. */
  readonly bytesFree: number | null
  /** A sentence where they do not suffice. */
  readonly obstacles: string[]
}

/** Whether the disks of the tables have so many bytes beside what stays free. */
export async function freeSpaceFor(store: Store, bytesNeeded: number, keepFree: ReservedBytes): Promise<FreeSpace> {
  const disks = await store.do(readDisks)
  const sizes = disks.map(({ free, size }) => ({ free, kept: keepFree(size) }))
  const full = sizes.find(({ free, kept }) => free < bytesNeeded + kept)
  return {
    bytesFree: sizes.length === 0 ? null : Math.min(...sizes.map(({ free }) => free)),
    obstacles: full === undefined ? [] : [refusalOf(full.free, bytesNeeded, full.kept)]
  }
}

function refusalOf(free: number, needed: number, kept: number): string {
  const asked = needed === 0 ? '' : `, of which it needs ${bytesText(needed)}`
  return `The disk of the tables has ${bytesText(free)} free${asked}, and ${bytesText(kept)} stay free for what cannot wait (DISK_FREE_MIN_BYTES): make room, or drop what an earlier rebuild left (gamenet rebuild status).`
}
