import { drift, stream } from './chance.js'

const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000
const YEAR_MS = 365.2425 * DAY_MS

/**
 * Yearly mean of people online. With the season below it reproduces the sample's last week (7 to 14 March 2026, mean
 * 25,900).
 */
const LEVEL = 24_900

/** Share by which January is above the mean and July below it; the sample falls by a quarter from January to March. */
const SEASON_SHARE = 0.13

/** Mean of each UTC hour over the sample's last eight weeks, in people. */
const HOURS = [
  30425, 29279, 28655, 27754, 26199, 24179, 21858, 19960, 19266, 20149, 21477, 23091, 25302, 27980, 30041, 32189, 34330,
  35989, 37566, 38805, 38915, 38117, 35936, 32799
]

/** Mean of each weekday over the same weeks, Sunday first. */
const WEEKDAYS = [35274, 29066, 26940, 26600, 25903, 27610, 32850]

const dayShape = relative(HOURS)
const weekShape = relative(WEEKDAYS)

/** Returns the load at an instant relative to its mean, by the cycles of day and week. `aheadHours` shifts the day. */
export function fullness(ms: number, aheadHours = 0): number {
  const hours = ms / HOUR_MS + aheadHours
  // 1970-01-01 was a Thursday, 4 days after a Sunday; a weekday's mean is that of its noon.
  return between(dayShape, hours - 0.5) * between(weekShape, ms / DAY_MS + 4 - 0.5)
}

/** Returns the people online at an instant, before rounding: level, season, cycles and a slow random change. */
export function peopleOnline(seed: number, ms: number): number {
  const season = 1 + SEASON_SHARE * Math.cos((2 * Math.PI * ms) / YEAR_MS)
  const weather =
    1 +
    0.05 * drift(seed, stream.networkSlow, 0, ms, 5 * DAY_MS) +
    0.025 * drift(seed, stream.networkMiddle, 0, ms, 7 * HOUR_MS) +
    0.004 * drift(seed, stream.networkFast, 0, ms, 11 * 60_000)
  return LEVEL * season * fullness(ms) * weather
}

const REGISTERED_AT_MS = Date.UTC(2026, 2, 15)
const REGISTERED_THEN = 1_846_000
const REGISTERED_A_DAY = 310

/** Returns the registered users at an instant. They never decrease, and grow fastest in the evening. */
export function peopleRegistered(ms: number): number {
  const days = (ms - REGISTERED_AT_MS) / DAY_MS
  const wave = 0.1 * Math.sin(2 * Math.PI * (days - 0.7))
  return Math.max(0, Math.floor(REGISTERED_THEN + REGISTERED_A_DAY * (days + wave)))
}

function relative(values: readonly number[]): readonly number[] {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  return values.map((value) => value / mean)
}

/** Interpolates linearly between the points of a closed curve. */
function between(curve: readonly number[], place: number): number {
  const point = Math.floor(place)
  const index = ((point % curve.length) + curve.length) % curve.length
  const before = curve[index] ?? 1
  const after = curve[(index + 1) % curve.length] ?? 1
  return before + (after - before) * (place - point)
}
