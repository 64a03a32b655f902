import type { Sample } from '@gamenet/engines/testing'
import fc from 'fast-check'
import { DAY_MS, HOUR_MS, MINUTE_MS } from './plain-counts.js'

/** Start of random samples: a Sunday, more than two weeks before {@link NOW_MS}. */
export const FIRST_MS = Date.UTC(2025, 11, 28)
/** The samples cross the end of a year, because tables are partitioned by year. */
export const LAST_MS = FIRST_MS + 12 * DAY_MS
export const NOW_MS = Date.UTC(2026, 0, 8, 13, 37, 12, 345)

const spanMs = LAST_MS - FIRST_MS

/**
 * Instants that find mistakes: borders of hours and days, a millisecond before and after them, minutes, and random
 * ones.
 */
export const instantMs: fc.Arbitrary<number> = fc.oneof(
  fc.integer({ min: 0, max: spanMs }).map((ms) => FIRST_MS + ms),
  fc.integer({ min: 0, max: spanMs / MINUTE_MS }).map((minutes) => FIRST_MS + minutes * MINUTE_MS),
  fc
    .tuple(fc.integer({ min: 0, max: spanMs / HOUR_MS }), fc.integer({ min: -1, max: 1 }))
    .map(([hours, ms]) => FIRST_MS + hours * HOUR_MS + ms),
  fc
    .tuple(fc.integer({ min: 0, max: spanMs / DAY_MS }), fc.integer({ min: -1, max: 1 }))
    .map(([days, ms]) => FIRST_MS + days * DAY_MS + ms),
  // Many in one hour, so that buckets hold several and instants meet again as corrections.
  fc.integer({ min: 0, max: 240 }).map((quarters) => FIRST_MS + 5 * DAY_MS + 7 * HOUR_MS + quarters * 15_000)
)

const value: fc.Arbitrary<number> = fc.oneof(
  fc.integer({ min: 0, max: 5 }),
  fc.integer({ min: 0, max: 300_000 }),
  fc.constantFrom(0, 4_294_967_295)
)

/** Facts about a few keys, in order of arrival; the last ones correct some of the first. */
export const factsOf = (...keys: string[]): fc.Arbitrary<Sample[]> =>
  fc
    .tuple(
      fc.array(fc.record({ key: fc.constantFrom(...keys), ms: instantMs, value }), { maxLength: 100 }),
      fc.array(fc.tuple(fc.nat(), value), { maxLength: 40 })
    )
    .map(([facts, corrections]) => [
      ...facts,
      ...corrections.flatMap(([index, corrected]) => {
        const fact = facts[index % Math.max(1, facts.length)]
        return fact === undefined ? [] : [{ ...fact, value: corrected }]
      })
    ])

/** Two instants in order, sometimes far outside of all samples. */
export const windowMs: fc.Arbitrary<{ fromMs: number; toMs: number }> = fc
  .tuple(
    fc.oneof({ weight: 9, arbitrary: instantMs }, { weight: 1, arbitrary: fc.constant(Date.UTC(1999, 4, 5, 6, 7)) }),
    fc.oneof({ weight: 9, arbitrary: instantMs }, { weight: 1, arbitrary: fc.constant(Date.UTC(2041, 4, 5, 6, 7)) })
  )
  .filter(([a, b]) => a !== b)
  .map(([a, b]) => ({ fromMs: Math.min(a, b), toMs: Math.max(a, b) }))

/** Values of `resolution`: none, samples, our own widths, unusual ones. */
export const resolutions: fc.Arbitrary<string | undefined> = fc.constantFrom(
  undefined,
  'raw',
  '60',
  '61',
  '300',
  '3600',
  '5400',
  '7200',
  '21600',
  '86400',
  '90000',
  '604800'
)

export const iso = (ms: number): string => new Date(ms).toISOString()
