import { stat, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { bytesText } from '@gamenet/schemas'

/** One file system, named by the first path on it. */
export type DiskSpace = {
  readonly path: string
  /** The requested paths on it. */
  readonly paths: readonly string[]
  /** Bytes that this user may still write; 0 with hardly any inode left. */
  readonly freeBytes: number
  /** Inodes, if hardly any is left. */
  readonly lastInodes?: number
  readonly sizeBytes: number
}

/** Returns the distinct file systems of paths. A path that does not exist yet is on its parent's file system. */
export type ReadSpace = (paths: readonly string[]) => Promise<DiskSpace[]>

/** An insert of the engine makes some dozen files. */
const INODES_MIN = 100

export const readSpace: ReadSpace = async (paths) => {
  const disks = new Map<number, DiskSpace>()
  for (const path of paths) {
    const there = await nearest(path)
    const disk = disks.get(there.device)
    if (disk !== undefined) {
      disks.set(there.device, { ...disk, paths: [...disk.paths, path] })
      continue
    }
    const { bavail, blocks, bsize, files, ffree } = await statfs(there.path)
    // Without an inode no file can be made. Some file systems count none.
    const space = files > 0 && ffree < INODES_MIN ? { freeBytes: 0, lastInodes: ffree } : { freeBytes: bavail * bsize }
    disks.set(there.device, { path, paths: [path], ...space, sizeBytes: blocks * bsize })
  }
  return [...disks.values()]
}

async function nearest(path: string): Promise<{ path: string; device: number }> {
  const found = await stat(path).catch(() => undefined)
  if (found !== undefined) return { path, device: found.dev }
  const parent = dirname(path)
  if (parent === path) throw new Error(`The free space of ${path} cannot be measured: it does not exist.`)
  return nearest(parent)
}

/** Returns what is left on a disk, after "the disk has". */
export function freeText({ freeBytes, lastInodes }: Pick<DiskSpace, 'freeBytes' | 'lastInodes'>): string {
  return lastInodes === undefined
    ? `${bytesText(freeBytes)} free`
    : `${lastInodes} inodes free, which new files need (df -i)`
}
