/*
 * point     [instant in seconds since 1970, count]
 * gap       a stretch in which counts are missing: drawn as nothing, never as 0
 */

/** Distances between points on either side of which the usual one is learnt. */
const NEIGHBOURS = 7
/** Scrapes come a little late; one that is missing makes the distance twice the usual one. */
const TOLERANCE = 1.75
/** No source counts more rarely than hourly: an hour without a sample is missing. */
const USUAL_SECONDS_MAX = 3600

/** The instants (seconds since 1970) and counts of an answer of `{recorded_at, <field>}`. */
export function pointsOf(body, field) {
  const instants = new Array(body.length)
  const counts = new Array(body.length)
  body.forEach((point, index) => {
    instants[index] = Date.parse(`${point.recorded_at.replace(' ', 'T')}Z`) / 1000
    counts[index] = point[field]
  })
  return { instants, counts }
}

/**
 * Puts a null into every gap. Points follow each other when they are not further apart than the resolution says; where
 * that is finer than the samples are (hourly history in buckets of 15 minutes, or samples themselves), than is usual
 * on either side of them.
 */
export function withGaps({ instants, counts }, resolutionSeconds) {
  const distances = instants.slice(1).map((instant, index) => instant - instants[index])
  const table = { instants: [], counts: [], gaps: 0 }
  instants.forEach((instant, index) => {
    table.instants.push(instant)
    table.counts.push(counts[index])
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

/** The larger of the medians on both sides, so that nothing breaks where hourly history meets samples by the minute. */
function usualAround(distances, index) {
  const before = distances.slice(Math.max(0, index - NEIGHBOURS), index)
  const after = distances.slice(index + 1, index + 1 + NEIGHBOURS)
  return Math.min(USUAL_SECONDS_MAX, Math.max(median(before), median(after)) || USUAL_SECONDS_MAX)
}

function median(values) {
  if (values.length === 0) return 0
  return values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)]
}
