/** However quiet a board is, it is visited once a day. */
const PERIOD_MAX_S = 86_400
const GROWTH = 1.5
const DOUBLINGS_MAX = 10
/** Visits that fell due together drift apart by up to this part of their period; none comes before it is over. */
const SPREAD = 0.2
/** The first visits come together, all boards having been found at once; the second are spread over a whole period. */
const SPREAD_FIRST = 1

/** How long the next visit keeps: half as long after one that found changes, half as long again after a quiet one. */
export function nextPeriodS(periodS: number, hasChanged: boolean, shortestS: number): number {
  const next = hasChanged ? periodS / 2 : periodS * GROWTH
  return Math.min(Math.max(next, shortestS), PERIOD_MAX_S)
}

/** Seconds to the next visit: the period and a part of it by chance, a day at most. `chance` is from 0 to below 1. */
export function restS(periodS: number, chance: number, isFirst = false): number {
  return Math.min(periodS * (1 + (isFirst ? SPREAD_FIRST : SPREAD) * chance), PERIOD_MAX_S)
}

/** Seconds to the next try after so many failures in a row: doubling from the shortest period on. */
export function restAfterFailureS(failures: number, shortestS: number, chance: number): number {
  return restS(Math.min(shortestS * 2 ** Math.min(failures, DOUBLINGS_MAX), PERIOD_MAX_S), chance)
}
