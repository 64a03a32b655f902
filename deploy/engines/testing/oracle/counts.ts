/*
 * Counts of titles and of the network, computed only from the samples, with loops and maps: no SQL, no rollup of a
 * rollup.
 */

const HOUR_MS = 3_600_000

/** One observation of a metric or title; a later one of the same instant replaces it. */
export type Sample = { readonly key: string; readonly ms: number; readonly value: number }

/** Returns one sample per key and instant, oldest first: of several the last one. */
export function newestSamples(samples: readonly Sample[]): Sample[] {
  const newest = new Map<string, Sample>()
  for (const sample of samples) newest.set(`${sample.key}@${sample.ms}`, sample)
  return [...newest.values()].sort((a, b) => a.ms - b.ms)
}

/** A bucket of samples; `activeHours` are those with a value above 0. */
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

/** Returns the statistics of samples by key and bucket of `widthMs`. */
export function rollupsOf(samples: readonly Sample[], widthMs: number): Rollup[] {
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
