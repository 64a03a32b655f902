import { type Rollup, rollupsOf, type Sample } from '@gamenet/engines/testing'

/* The expected answers about counts, computed by the tests' oracle. */

export const MINUTE_MS = 60_000
export const HOUR_MS = 3_600_000
export const DAY_MS = 86_400_000

/** The samples inside a half-open window. */
export function within(samples: readonly Sample[], fromMs: number, toMs: number): Sample[] {
  return samples.filter(({ ms }) => fromMs <= ms && ms < toMs)
}

/** From Thursday, 1 January 1970, back to the Monday before it. */
const MONDAY_MS = -3 * DAY_MS

/** The points of a series with the count in `column`; width 0 for the samples. Buckets of a week begin on Mondays. */
export function seriesOf(samples: readonly Sample[], widthSeconds: number, column: string): Record<string, unknown>[] {
  if (widthSeconds === 0) return samples.map(({ ms, value }) => ({ recorded_at: second(ms), [column]: value }))
  const firstMs = widthSeconds === 604_800 ? MONDAY_MS : 0
  const shifted = samples.map((sample) => ({ ...sample, ms: sample.ms - firstMs }))
  return rollupsOf(shifted, widthSeconds * 1000)
    .sort((a, b) => a.fromMs - b.fromMs)
    .map(({ fromMs, ...rollup }) => ({
      recorded_at: second(fromMs + firstMs),
      [column]: rollup.max,
      ...statisticsOf(rollup)
    }))
}

/** The fields of a bucket except its peak. */
export function statisticsOf({ min, sum, samples }: Pick<Rollup, 'min' | 'sum' | 'samples'>) {
  return { min, average: rounded(sum, BigInt(samples), 1), samples }
}

/** `YYYY-MM-DD HH:MM:SS`, floored. */
export function second(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19).replace('T', ' ')
}

/** A quotient with this number of decimals, halves up, exact. */
export function rounded(numerator: bigint, denominator: bigint, decimals: number): number {
  const scale = 10n ** BigInt(decimals)
  return Number((numerator * scale * 2n + denominator) / (denominator * 2n)) / Number(scale)
}
