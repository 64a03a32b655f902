/*
 * point     [instant in seconds since 1970, count]
 * gap       a stretch in which counts are missing: drawn as nothing, never as 0
 */

/** The usual distance is learnt from points up to these distances. */
const NEIGHBOURS = 7
/** Scrapes come a little late; one that is missing makes the distance twice the usual one. */
const TOLERANCE = 1.75
/** No source counts more rarely than hourly: an hour without a sample is missing. */
const USUAL_SECONDS_MAX = 3600

/**
 * @typedef {{ readonly recorded_at: string } & Readonly<Record<string, string | number>>} Point one sample or bucket of
 * an answer
 */
/**
 * @typedef {{ instants: number[], counts: (number | null)[] }} Series instants in seconds since 1970; a null is a gap
 */

/**
 * The series of one field of an answer.
 * @param {readonly Point[]} body
 * @param {string} field
 */
export function pointsOf(body, field) {
  /** @type {number[]} */
  const instants = new Array(body.length)
  /** @type {number[]} */
  const counts = new Array(body.length)
  body.forEach((point, index) => {
    instants[index] = Date.parse(`${point.recorded_at.replace(' ', 'T')}Z`) / 1000
    counts[index] = Number(point[field])
  })
  return { instants, counts }
}

/**
 * Inserts a null into every gap. A gap is a distance above the resolution, or above the usual distance on either side
 * where that is larger (hourly history in buckets of 15 minutes, or plain samples).
 * @param {{ instants: number[], counts: number[] }} points
 * @param {number} resolutionSeconds
 * @returns {Series & { gaps: number }}
 */
export function withGaps({ instants, counts }, resolutionSeconds) {
  const distances = instants.slice(1).map((instant, index) => instant - (instants[index] ?? instant))
  /** @type {Series & { gaps: number }} */
  const table = { instants: [], counts: [], gaps: 0 }
  instants.forEach((instant, index) => {
    table.instants.push(instant)
    table.counts.push(counts[index] ?? null)
    const distance = distances[index]
    if (distance === undefined) return
    const step = Math.max(resolutionSeconds, usualAround(distances, index))
    if (distance <= step * TOLERANCE) return
    table.instants.push(instant + step / 2)
    table.counts.push(null)
    table.gaps += 1
  })
  return table
}

/**
 * The larger of the medians on both sides, because hourly history may be followed by samples per minute.
 * @param {readonly number[]} distances
 * @param {number} index
 */
function usualAround(distances, index) {
  const before = distances.slice(Math.max(0, index - NEIGHBOURS), index)
  const after = distances.slice(index + 1, index + 1 + NEIGHBOURS)
  return Math.min(USUAL_SECONDS_MAX, Math.max(median(before), median(after)) || USUAL_SECONDS_MAX)
}

/** @param {number[]} values */
function median(values) {
  if (values.length === 0) return 0
  return values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)] ?? 0
}
