/*
 * What the answers about counts mean, computed from the samples alone with loops and maps: no SQL, no rollup, no
 * bucket that begins anywhere but at its start.
 */

export const MINUTE_MS = 60_000
export const HOUR_MS = 3_600_000
export const DAY_MS = 86_400_000

/** One observation of a metric or title; a later one of the same instant replaces it. */
export type Fact = { readonly key: string; readonly ms: number; readonly value: number }

/** The samples that count, oldest first. */
export function foldOf(facts: readonly Fact[]): Fact[] {
  const newest = new Map<string, Fact>()
  for (const fact of facts) newest.set(`${fact.key}@${fact.ms}`, fact)
  return [...newest.values()].sort((a, b) => a.ms - b.ms)
}

export type Rollup = {
  key: string
  fromMs: number
  min: number
  max: number
  maxAtMs: number
  sum: bigint
  samples: number
  last: number
  lastAtMs: number
  activeHours: number
}

/** Samples summed up by key and stretch of `widthMs`. */
export function rollupsOf(samples: readonly Fact[], widthMs: number): Rollup[] {
  const rollups = new Map<string, Rollup & { active: Set<number> }>()
  for (const { key, ms, value } of samples) {
    const fromMs = Math.floor(ms / widthMs) * widthMs
    const found = rollups.get(`${key}@${fromMs}`)
    const rollup = found ?? {
      key,
      fromMs,
      min: value,
      max: value,
      maxAtMs: ms,
      sum: 0n,
      samples: 0,
      last: value,
      lastAtMs: ms,
      activeHours: 0,
      active: new Set<number>()
    }
    rollups.set(`${key}@${fromMs}`, rollup)
    rollup.min = Math.min(rollup.min, value)
    if (value > rollup.max || (value === rollup.max && ms < rollup.maxAtMs)) {
      rollup.max = value
      rollup.maxAtMs = ms
    }
    rollup.sum += BigInt(value)
    rollup.samples += 1
    if (ms >= rollup.lastAtMs) {
      rollup.last = value
      rollup.lastAtMs = ms
    }
    if (value > 0) rollup.active.add(Math.floor(ms / HOUR_MS))
    rollup.activeHours = rollup.active.size
  }
  return [...rollups.values()].map(({ active: _active, ...rollup }) => rollup)
}

export const hoursOf = (samples: readonly Fact[]): Rollup[] => rollupsOf(samples, HOUR_MS)
export const titleDaysOf = (samples: readonly Fact[]): Rollup[] => rollupsOf(samples, DAY_MS)

/** The samples inside a half-open window. */
export function within(samples: readonly Fact[], fromMs: number, toMs: number): Fact[] {
  return samples.filter(({ ms }) => fromMs <= ms && ms < toMs)
}

/** The points of a series with the count in `column`; width 0 for the samples. */
export function seriesOf(samples: readonly Fact[], widthSeconds: number, column: string): Record<string, unknown>[] {
  if (widthSeconds === 0) return samples.map(({ ms, value }) => ({ recorded_at: second(ms), [column]: value }))
  return rollupsOf(samples, widthSeconds * 1000)
    .sort((a, b) => a.fromMs - b.fromMs)
    .map(({ fromMs, ...rollup }) => ({ recorded_at: second(fromMs), [column]: rollup.max, ...statisticsOf(rollup) }))
}

/** The fields of a bucket besides its peak. */
export function statisticsOf({ min, sum, samples }: Pick<Rollup, 'min' | 'sum' | 'samples'>) {
  return { min, average: rounded(sum, BigInt(samples), 1), samples }
}

/** `YYYY-MM-DD HH:MM:SS`, floored. */
export function second(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19).replace('T', ' ')
}

/** A quotient with so many decimals, halves up, exact. */
export function rounded(numerator: bigint, denominator: bigint, decimals: number): number {
  const scale = 10n ** BigInt(decimals)
  return Number((numerator * scale * 2n + denominator) / (denominator * 2n)) / Number(scale)
}
