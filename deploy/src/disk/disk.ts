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
/** Measuring walks over some thousand files. */
const USED_AGE_MS_MAX = 30_000

/** What `gamenet status` prints about the disk. */
export const DiskStatus = z.object({
  /** Bytes. Null where a part is not on a disk of this machine and cannot be asked for its size. */
  used: Used,
  /** None where all engines are servers. */
  disks: z.array(
    z.object({
      path: z.string(),
      /** Which of the embedded engines keep their files on it. */
      parts: z.array(z.enum(USED_PARTS)),
      freeBytes: z.int(),
      sizeBytes: z.int(),
      /** Below that it is low; 0 when that is turned off. */
      freeMinBytes: z.int(),
      isLow: z.boolean(),
      /** Of the parts on it, over the last day; null while it is not known. */
      growthBytesPerDay: z.int().nullable(),
      /** Over how long the growth was measured. */
      measuredHours: z.number(),
      /** Until it is low at this rate; null while the rate is not known, and when nothing grows. */
      daysLeft: z.number().nullable()
    })
  )
})
export type DiskStatus = z.infer<typeof DiskStatus>

export type Disk = DiskGuard & {
  status(): Promise<DiskStatus>
  /** Bytes by part, as they were half a minute ago at most. */
  used(): Promise<Used>
}

export type DiskOptions = {
  /** Where embedded engines keep their files; a server has no directory. */
  readonly directories: Readonly<Record<UsedPart, string | undefined>>
  /** Of the whole data directory; undefined where no engine is embedded. */
  readonly directory: string | undefined
  /** Where samples of what is used are kept. */
  readonly samplesFile: string | undefined
  readonly usedOf: UsedOf
  readonly guard: Omit<DiskGuardOptions, 'paths'>
}

/** Watches the data directory's disks, and keeps how fast what is on them grows. */
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
    // On a full disk it is not kept; the next one is tried again.
    await samples.add({ atMs: Date.now(), used: await used() }).catch(() => undefined)
  }
}

function statusOf(
  { path, paths, freeBytes, sizeBytes, freeMinBytes, isLow }: GuardedDisk,
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
    growthBytesPerDay: growth.bytesPerDay,
    measuredHours: growth.measuredHours,
    daysLeft: daysLeft(freeBytes - freeMinBytes, growth)
  }
}

const PART_NAMES = { log: 'log', tables: 'tables', writes: 'Postgres' } as const

/** What an operator reads of it. */
export function diskLines({ used, disks }: DiskStatus): string[] {
  const sizes = USED_PARTS.map((part) => {
    const bytes = used[part]
    return `${PART_NAMES[part]} ${bytes === null ? 'not known here' : bytesText(bytes)}`
  })
  return [`Disk: ${sizes.join(', ')}`, ...disks.flatMap((disk) => [freeLine(disk), growthLine(disk)])]
}

function freeLine({ path, freeBytes, sizeBytes, freeMinBytes, isLow }: DiskStatus['disks'][number]): string {
  const free = `  ${path}: ${bytesText(freeBytes)} of ${bytesText(sizeBytes)} free`
  if (freeMinBytes === 0) return `${free}; DISK_FREE_MIN_BYTES=0, so nothing stops before it is full`
  if (isLow) return `${free}, LOW: below ${bytesText(freeMinBytes)} imports and merges of tables stand still`
  return `${free}; low below ${bytesText(freeMinBytes)}`
}

function growthLine({ growthBytesPerDay: growth, measuredHours, daysLeft: days }: DiskStatus['disks'][number]): string {
  if (growth === null) return `  growth: not known yet; an hour of measuring is needed, ${measuredHours} h are there`
  const measured = `(measured over ${measuredHours} h)`
  if (days === null) return `  growth: none ${measured}`
  return `  growth: ${bytesText(growth)} a day ${measured}; low in ${days} days at this rate`
}
