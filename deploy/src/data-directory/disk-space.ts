import { readFile, stat, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { bytesText } from '@gamenet/schemas'

/** One file system, named by the first path on it. */
export type DiskSpace = {
  readonly path: string
  /** The requested paths on it. */
  readonly paths: readonly string[]
  /** Bytes that this user may still write; 0 with hardly any inode left, and if it is read-only. */
  readonly freeBytes: number
  /** Inodes, if hardly any is left. */
  readonly lastInodes?: number
  /** The kernel makes a file system read-only after an error of its disk. */
  readonly isReadOnly?: boolean
  readonly sizeBytes: number
}

/** Returns the distinct file systems of paths. A path that does not exist yet is on its parent's file system. */
export type ReadSpace = (paths: readonly string[]) => Promise<DiskSpace[]>

/** An insert of the engine makes some dozen files. */
const INODES_MIN = 100

export const readSpace: ReadSpace = async (paths) => {
  const disks = new Map<number, DiskSpace>()
  const readOnly = await readOnlyDevices()
  for (const path of paths) {
    const there = await nearest(path)
    const disk = disks.get(there.device)
    if (disk !== undefined) {
      disks.set(there.device, { ...disk, paths: [...disk.paths, path] })
      continue
    }
    const { bavail, blocks, bsize, files, ffree } = await statfs(there.path)
    // Without an inode no file can be made. Some file systems count none.
    const areInodesUsed = files > 0 && ffree < INODES_MIN
    const isReadOnly = readOnly.has(there.device)
    const space = {
      freeBytes: areInodesUsed || isReadOnly ? 0 : bavail * bsize,
      ...(areInodesUsed && { lastInodes: ffree }),
      ...(isReadOnly && { isReadOnly })
    }
    disks.set(there.device, { path, paths: [path], ...space, sizeBytes: blocks * bsize })
  }
  return [...disks.values()]
}

/** A mount: the device, then after a dash the type, the source and the options of its file system. */
const MOUNT = /^\d+ \d+ (\d+):(\d+) .* - \S+ \S+ (\S+)$/gm
const READ_ONLY = /(^|,)(emergency_)?ro(,|$)/

/**
 * Returns the devices, numbered as `stat` does, whose file systems are read-only; none where the kernel lists no
 * mounts.
 */
async function readOnlyDevices(): Promise<ReadonlySet<number>> {
  const mounts = await readFile('/proc/self/mountinfo', 'utf8').catch(() => '')
  const found = [...mounts.matchAll(MOUNT)].filter(([, , , options = '']) => READ_ONLY.test(options))
  return new Set(found.map(([, major, minor]) => deviceOf(Number(major), Number(minor))))
}

/** Combines the numbers of a device as the C library of Linux does. */
function deviceOf(major: number, minor: number): number {
  return (minor & 0xff) + ((major & 0xfff) << 8) + (minor >>> 8) * 2 ** 20
}

async function nearest(path: string): Promise<{ path: string; device: number }> {
  const found = await stat(path).catch(() => undefined)
  if (found !== undefined) return { path, device: found.dev }
  const parent = dirname(path)
  if (parent === path) throw new Error(`The free space of ${path} cannot be measured: it does not exist.`)
  return nearest(parent)
}

/** Returns what is left on a disk, after "the disk has". */
export function freeText({
  freeBytes,
  lastInodes,
  isReadOnly
}: Omit<DiskSpace, 'path' | 'paths' | 'sizeBytes'>): string {
  if (isReadOnly) return 'no space, because it is mounted read-only (dmesg)'
  return lastInodes === undefined
    ? `${bytesText(freeBytes)} free`
    : `${lastInodes} inodes free, which new files need (df -i)`
}
