import { bytesText, pause } from '@gamenet/schemas'
import { z } from 'zod'
import {
  daysLeft,
  growthOf,
  openSamples,
  type Sample,
  type Samples,
  USED_PARTS,
  Used,
  type UsedPart
} from './disk-growth.js'
import { type DiskGuard, type DiskGuardOptions, type GuardedDisk, openDiskGuard } from './disk-guard.js'
import { readUsed, type UsedOf } from './disk-usage.js'

const SAMPLE_LOOK_MS = 60_000
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
      isReadOnly: z.boolean(),
      /** Growth of its parts over the last day; null while unknown. */
      growthBytesPerDay: z.int().nullable(),
      /** Time span of the growth measurement. */
      measuredHours: z.number(),
      /** Days until it is low at this rate; null while the rate is unknown, and when nothing grows. */
      daysLeft: z.number().nullable()
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
  /** File with the samples of disk usage. */
  readonly samplesFile: string | undefined
  readonly usedOf: UsedOf
  readonly guard: Omit<DiskGuardOptions, 'paths'>
}

/** Watches the data directory's disks and records their growth. */
export async function openDisk(options: DiskOptions): Promise<Disk> {
  const paths = [options.directory, ...Object.values(options.directories)].filter((path) => path !== undefined)
  const guard = await openDiskGuard({ ...options.guard, paths })
  const samples = await samplesOf(options.samplesFile)
  let last: { readonly at: number; readonly used: Promise<Used> } | undefined
  const used = () => {
    const now = performance.now()
    if (last === undefined || now - last.at > USED_AGE_MS_MAX) last = { at: now, used: readUsed(options.usedOf) }
    return last.used
  }
  const stopping = new AbortController()
  const sampling = sample(samples, used, stopping.signal)
  return {
    ...guard,
    used,
    status: async () => {
      const [disks, now] = await Promise.all([guard.look(), used()])
      return { used: now, disks: disks.map((disk) => statusOf(disk, options.directories, samples?.all ?? [])) }
    },
    close: async () => {
      stopping.abort()
      await sampling
      await guard.close()
    }
  }
}

async function samplesOf(file: string | undefined): Promise<Samples | undefined> {
  return file === undefined ? undefined : await openSamples(file)
}

async function sample(samples: Samples | undefined, used: () => Promise<Used>, signal: AbortSignal): Promise<void> {
  if (samples === undefined) return
  while (!signal.aborted) {
    await pause(SAMPLE_LOOK_MS, signal, { ref: false })
    if (signal.aborted || !samples.isDue(Date.now())) continue
    // On a full disk the sample is lost; the next one is tried again.
    await samples.add({ atMs: Date.now(), used: await used() }).catch(() => undefined)
  }
}

function statusOf(
  { path, paths, freeBytes, sizeBytes, freeMinBytes, isLow, isFull, isReadOnly = false }: GuardedDisk,
  directories: DiskOptions['directories'],
  samples: readonly Sample[]
): DiskStatus['disks'][number] {
  const parts = USED_PARTS.filter((part) => paths.includes(directories[part] ?? ''))
  const growth = growthOf(samples, parts, Date.now())
  return {
    path,
    parts: [...parts],
    freeBytes,
    sizeBytes,
    freeMinBytes,
    isLow,
    isFull,
    isReadOnly,
    growthBytesPerDay: growth.bytesPerDay,
    measuredHours: growth.measuredHours,
    daysLeft: daysLeft(freeBytes - freeMinBytes, growth)
  }
}

const PART_NAMES = { log: 'log', tables: 'tables', writes: 'Postgres' } as const

/** Formats the status for an operator. */
export function diskLines({ used, disks }: DiskStatus): string[] {
  const sizes = USED_PARTS.map((part) => {
    const bytes = used[part]
    return `${PART_NAMES[part]} ${bytes === null ? 'not known here' : bytesText(bytes)}`
  })
  return [`Disk: ${sizes.join(', ')}`, ...disks.flatMap((disk) => [freeLine(disk), growthLine(disk)])]
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

function growthLine({ growthBytesPerDay: growth, measuredHours, daysLeft: days }: DiskStatus['disks'][number]): string {
  if (growth === null) return `  growth: unknown; it needs an hour of measurements, there are ${measuredHours} h`
  const measured = `(measured over ${measuredHours} h)`
  if (days === null) return `  growth: none ${measured}`
  return `  growth: ${bytesText(growth)} a day ${measured}; low in ${days} days at this rate`
}
