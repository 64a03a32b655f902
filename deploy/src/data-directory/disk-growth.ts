import { readFile, rename, writeFile } from 'node:fs/promises'
import { parseJson } from '@gamenet/schemas'
import { z } from 'zod'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
/** Interval of samples. */
const SAMPLE_MS = 10 * MINUTE_MS
/** The rate covers the last day, so that a large import does not affect it for longer. */
const WINDOW_MS = DAY_MS
/**
 * Shortest span of a rate: merges change the tables' size by some per cent, which would look like growth over less
 * time.
 */
const SPAN_MS_MIN = HOUR_MS
const SAMPLES_MIN = 4
const FORECAST_DAYS_MAX = 36_500

/** Bytes by part. Null if a part is not on a disk of this machine, or could not be measured. */
export const Used = z.object({ log: z.int().nullable(), tables: z.int().nullable(), writes: z.int().nullable() })
export type Used = z.infer<typeof Used>
export type UsedPart = keyof Used
export const USED_PARTS: readonly UsedPart[] = ['log', 'tables', 'writes']

const Sample = z.object({ atMs: z.int(), used: Used })
export type Sample = z.infer<typeof Sample>

export type Growth = {
  /** Null while unknown. */
  readonly bytesPerDay: number | null
  /** Time span of the measurement. */
  readonly measuredHours: number
}

/** Returns the combined growth of parts: the linear regression over the samples of the last day. */
export function growthOf(samples: readonly Sample[], parts: readonly UsedPart[], nowMs: number): Growth {
  const points = samples
    .filter(({ atMs }) => atMs <= nowMs && atMs > nowMs - WINDOW_MS)
    .map(({ atMs, used }) => ({ days: (atMs - nowMs) / DAY_MS, bytes: sumOf(used, parts) }))
    .filter((point): point is { days: number; bytes: number } => point.bytes !== null)
  const days = points.map((point) => point.days)
  const spanDays = points.length === 0 ? 0 : Math.max(...days) - Math.min(...days)
  const measuredHours = Math.round(spanDays * 240) / 10
  if (points.length < SAMPLES_MIN || spanDays * DAY_MS < SPAN_MS_MIN) return { bytesPerDay: null, measuredHours }
  const middle = mean(days)
  const middleBytes = mean(points.map(({ bytes }) => bytes))
  const over = points.reduce((sum, point) => sum + (point.days - middle) * (point.bytes - middleBytes), 0)
  const under = points.reduce((sum, point) => sum + (point.days - middle) ** 2, 0)
  return { bytesPerDay: Math.round(over / under), measuredHours }
}

/** Returns the days until a disk is low at this rate; null if the rate is unknown or nothing grows. */
export function daysLeft(freeBytes: number, { bytesPerDay }: Growth): number | null {
  if (bytesPerDay === null || bytesPerDay <= 0) return null
  return Math.min(FORECAST_DAYS_MAX, Math.max(0, Math.floor((10 * freeBytes) / bytesPerDay) / 10))
}

/** Sums the parts. A part on another machine counts as 0; a part that could not be measured makes the sum unknown. */
function sumOf(used: Used, parts: readonly UsedPart[]): number | null {
  return parts.reduce<number | null>((sum, part) => (sum === null ? null : addOf(sum, used[part])), 0)
}

function addOf(sum: number, bytes: number | null): number | null {
  return bytes === null ? null : sum + bytes
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

/** Samples of disk usage in a file, kept across restarts. */
export type Samples = {
  readonly all: readonly Sample[]
  isDue(nowMs: number): boolean
  add(sample: Sample): Promise<void>
}

/** Opens the samples. An unreadable file (after a crash, or of another program) is replaced. */
export async function openSamples(file: string): Promise<Samples> {
  const text = await readFile(file, 'utf8').catch(() => '[]')
  let all = z.array(Sample).safeParse(parseJson(text)).data ?? []
  return {
    get all() {
      return all
    },
    isDue: (nowMs) => {
      const last = all.at(-1)?.atMs
      return last === undefined || nowMs - last >= SAMPLE_MS || nowMs < last
    },
    add: async (sample) => {
      // After the clock was set back, earlier samples are invalid.
      all = [...all.filter(({ atMs }) => atMs < sample.atMs && atMs > sample.atMs - WINDOW_MS), sample]
      await writeFile(`${file}.new`, JSON.stringify(all))
      await rename(`${file}.new`, file)
    }
  }
}
