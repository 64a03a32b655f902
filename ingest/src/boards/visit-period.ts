/** Longest period: every board is visited once a day. */
const PERIOD_MAX_S = 86_400
const GROWTH = 1.5
const DOUBLINGS_MAX = 10
/**
 * Share of the period by which the next visit is delayed at random, so that visits that fell due together drift apart.
 */
const SPREAD = 0.2
/**
 * The same for the first visit: all boards are found at once, so their second visits are spread over a whole period.
 */
const SPREAD_FIRST = 1

/** Returns the next period: half of the last one after changes, one and a half times as long without. */
export function nextPeriodS(periodS: number, hasChanged: boolean, shortestS: number): number {
  const next = hasChanged ? periodS / 2 : periodS * GROWTH
  return Math.min(Math.max(next, shortestS), PERIOD_MAX_S)
}

/** Returns the seconds to the next visit: the period plus a random part of it, at most a day. `chance` is in [0, 1). */
export function restS(periodS: number, chance: number, isFirst = false): number {
  return Math.min(periodS * (1 + (isFirst ? SPREAD_FIRST : SPREAD) * chance), PERIOD_MAX_S)
}

/** Returns the seconds to the next attempt after `failures` in a row, doubling from the shortest period. */
export function restAfterFailureS(failures: number, shortestS: number, chance: number): number {
  return restS(Math.min(shortestS * 2 ** Math.min(failures, DOUBLINGS_MAX), PERIOD_MAX_S), chance)
}
