import { bytesText } from '@gamenet/schemas'
import { z } from 'zod'
import { type DiskGuard, type DiskGuardOptions, type GuardedDisk, openDiskGuard } from './disk-guard.js'
import { readUsed, USED_PARTS, Used, type UsedOf, type UsedPart } from './disk-usage.js'

/** Measuring reads the metadata of some thousand files. */
const USED_AGE_MS_MAX = 30_000

/** The disk in `gamenet status`. */
export const DiskStatus = z.object({
  /** Bytes. Null if a part is on another machine and cannot report its size. */
  used: Used,
  /** Empty if all engines are servers. */
  disks: z.array(
    z.object({
      path: z.string(),
      /** The embedded engines with files on it. */
      parts: z.array(z.enum(USED_PARTS)),
      freeBytes: z.int(),
      sizeBytes: z.int(),
      /** The minimum of free bytes; 0 if it is disabled. */
      freeMinBytes: z.int(),
      isLow: z.boolean(),
      isFull: z.boolean(),
      isReadOnly: z.boolean()
    })
  )
})
export type DiskStatus = z.infer<typeof DiskStatus>

export type Disk = DiskGuard & {
  status(): Promise<DiskStatus>
  /** Returns the bytes by part, at most half a minute old. */
  used(): Promise<Used>
}

export type DiskOptions = {
  /** Directories of the embedded engines; undefined for a server. */
  readonly directories: Readonly<Record<UsedPart, string | undefined>>
  /** The data directory; undefined if no engine is embedded. */
  readonly directory: string | undefined
  readonly usedOf: UsedOf
  readonly guard: Omit<DiskGuardOptions, 'paths'>
}

/** Watches the data directory's disks. */
export async function openDisk(options: DiskOptions): Promise<Disk> {
  const paths = [options.directory, ...Object.values(options.directories)].filter((path) => path !== undefined)
  const guard = await openDiskGuard({ ...options.guard, paths })
  let last: { readonly at: number; readonly used: Promise<Used> } | undefined
  const used = () => {
    const now = performance.now()
    if (last === undefined || now - last.at > USED_AGE_MS_MAX) last = { at: now, used: readUsed(options.usedOf) }
    return last.used
  }
  return {
    ...guard,
    used,
    status: async () => {
      const [disks, now] = await Promise.all([guard.look(), used()])
      return { used: now, disks: disks.map((disk) => statusOf(disk, options.directories)) }
    }
  }
}

function statusOf(
  { path, paths, freeBytes, sizeBytes, freeMinBytes, isLow, isFull, isReadOnly = false }: GuardedDisk,
  directories: DiskOptions['directories']
): DiskStatus['disks'][number] {
  const parts = USED_PARTS.filter((part) => paths.includes(directories[part] ?? ''))
  return { path, parts, freeBytes, sizeBytes, freeMinBytes, isLow, isFull, isReadOnly }
}

const PART_NAMES = { log: 'log', tables: 'tables', writes: 'Postgres' } as const

/** Formats the status for an operator. */
export function diskLines({ used, disks }: DiskStatus): string[] {
  const sizes = USED_PARTS.map((part) => {
    const bytes = used[part]
    return `${PART_NAMES[part]} ${bytes === null ? 'not known here' : bytesText(bytes)}`
  })
  return [`Disk: ${sizes.join(', ')}`, ...disks.map(freeLine)]
}

function freeLine(disk: DiskStatus['disks'][number]): string {
  const { path, freeBytes, sizeBytes, freeMinBytes, isLow, isFull, isReadOnly } = disk
  if (isReadOnly) return `  ${path}: READ-ONLY: writes fail`
  const free = `  ${path}: ${bytesText(freeBytes)} of ${bytesText(sizeBytes)} free`
  if (isFull) return `${free}, FULL: writes fail`
  if (freeMinBytes === 0) return `${free}; DISK_FREE_MIN_BYTES=0, so nothing stops until the disk is full`
  if (isLow) return `${free}, LOW: below ${bytesText(freeMinBytes)} imports and merges of tables are stopped`
  return `${free}; low below ${bytesText(freeMinBytes)}`
}
