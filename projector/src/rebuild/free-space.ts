import { bytesText } from '@gamenet/schemas'
import type { Store } from '../store/operation.js'
import { readDisks } from '../store/table.js'

/** Returns the bytes of a disk of this size that stay free for urgent writes; 0 if it may be filled. */
export type ReservedBytes = (diskBytes: number) => number

export type FreeSpace = {
  /** Free bytes of the fullest disk of the tables; null if the engine reports none. */
  readonly bytesFree: number | null
  /** A sentence if they do not suffice. */
  readonly obstacles: string[]
}

/** Returns whether the disks of the tables have space for these bytes besides the reserved ones. */
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
  const need = needed === 0 ? '' : `; it needs ${bytesText(needed)}`
  return (
    `The disk of the tables has ${bytesText(free)} free${need}, and ${bytesText(kept)} stay free for urgent ` +
    `writes (DISK_FREE_MIN_BYTES). Free some space, or drop the tables of an earlier rebuild (gamenet rebuild status).`
  )
}
