import { dayText, msOf } from './text.js'

/*
 * point     an instant in milliseconds since 1970 with a value; null where data are missing
 * gap       a stretch without data: drawn as nothing, never as 0
 */

export type Point = readonly [ms: number, value: number | null]

export type Series = {
  readonly name: string
  readonly points: readonly Point[]
  /** Another scale, on the right. */
  readonly isRight?: boolean
  /** For comparisons: a dotted line without area. */
  readonly isDotted?: boolean
  /** Lowest and highest value around each point, as an area. */
  readonly band?: readonly (readonly [ms: number, low: number, high: number])[]
}

/** A series over the span that its chart shows. */
export type Line = { readonly series: Series; readonly fromMs: number; readonly toMs: number }

/** The usual distance is learnt from points up to these distances. */
const NEIGHBOURS = 7
/** Scrapes come a little late; one that is missing makes the distance twice the usual one. */
const TOLERANCE = 1.75
/** No source counts more rarely than hourly: an hour without a sample is missing. */
const USUAL_MS_MAX = 3_600_000

/** Returns one field of an answer as points, with a null in every gap. */
export function pointsOf<Row extends { readonly recorded_at: string }>(
  rows: readonly Row[],
  valueAt: (row: Row) => number,
  resolutionSeconds: number
): Point[] {
  return withGaps(
    rows.map((row) => [msOf(row.recorded_at), valueAt(row)] as const),
    resolutionSeconds * 1000
  )
}

/**
 * Inserts a null into every gap: a distance above the resolution, or above the usual distance on either side where that
 * is larger (hourly history in buckets of 15 minutes, or plain samples).
 */
export function withGaps(points: readonly (readonly [number, number])[], resolutionMs: number): Point[] {
  const distances = points.slice(1).map(([ms], index) => ms - (points[index]?.[0] ?? ms))
  return points.flatMap(([ms, value], index): Point[] => {
    const distance = distances[index]
    if (distance === undefined) return [[ms, value]]
    const step = Math.max(resolutionMs, usualAround(distances, index))
    return distance <= step * TOLERANCE
      ? [[ms, value]]
      : [
          [ms, value],
          [ms + step / 2, null]
        ]
  })
}

/** The larger of the medians on both sides, because hourly history may be followed by samples per minute. */
function usualAround(distances: readonly number[], index: number): number {
  const before = distances.slice(Math.max(0, index - NEIGHBOURS), index)
  const after = distances.slice(index + 1, index + 1 + NEIGHBOURS)
  return Math.min(USUAL_MS_MAX, Math.max(median(before), median(after)) || USUAL_MS_MAX)
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)] ?? 0
}

/** A scale from 0 to a round number above the highest value, with the values of its lines. */
export function scaleOf(highest: number): { readonly max: number; readonly lines: readonly number[] } {
  if (!(highest > 0)) return { max: 1, lines: [] }
  const raw = (highest * 1.06) / 4
  const power = 10 ** Math.floor(Math.log10(raw))
  const step = Math.max(1, ([1, 2, 2.5, 5, 10].find((factor) => factor * power >= raw) ?? 10) * power)
  const lines = Array.from({ length: Math.floor((highest * 1.06) / step) }, (_, index) => (index + 1) * step)
  return { max: highest * 1.06, lines }
}

/** The box of a drawing: what its edges mean, and its size. */
export type Box = {
  readonly fromMs: number
  readonly toMs: number
  readonly max: number
  readonly width: number
  readonly height: number
}

/** Returns the path of a line, in whole units, interrupted at gaps. A point between two gaps becomes a dot. */
export function linePath(points: readonly Point[], box: Box, isStepped = false): string {
  let path = ''
  let isDown = false
  let before = 0
  for (const [index, [ms, value]] of points.entries()) {
    if (value === null) {
      isDown = false
      continue
    }
    const [x, y] = place(ms, value, box)
    if (isDown) path += isStepped ? `H${x}V${y}` : `L${x} ${y}`
    else path += `M${x} ${y}`
    const isSingle = !isDown && (points[index + 1]?.[1] ?? null) === null
    if (isSingle) path += 'h1'
    isDown = true
    before = x
  }
  return isStepped && isDown && before < box.width ? `${path}H${box.width}` : path
}

/** A value over time as steps, oldest first. */
export type StepSeries = {
  readonly label: string
  readonly points: readonly (readonly [ms: number, value: number])[]
  readonly textOf: (value: number) => string
}

/** Returns the path of steps between their lowest and their highest value. */
export function stepsPath({ points }: StepSeries, width: number, height: number): string {
  const values = points.map(([, value]) => value)
  const [low, high] = [Math.min(...values), Math.max(...values)]
  const [fromMs, lastMs] = [points[0]?.[0] ?? 0, points.at(-1)?.[0] ?? 0]
  // The last step reaches a twentieth of the span further, to be seen.
  const toMs = lastMs + Math.max(1, (lastMs - fromMs) / 20)
  const box: Box = { fromMs, toMs, max: Math.max(1, high - low), width, height }
  return linePath(
    points.map(([ms, value]): Point => [ms, value - low]),
    box,
    true
  )
}

/** Returns the day and value of the first step and the last. */
export function stepEnds({ points, textOf }: StepSeries): string[] {
  return [points[0], points.at(-1)].map((end) => (end === undefined ? '' : `${dayText(end[0])}: ${textOf(end[1])}`))
}

/** Returns the path of the area under a line. */
export function areaPath(points: readonly Point[], box: Box): string {
  return runsOf(points)
    .map((run) => {
      const [first, last] = [run[0], run.at(-1)]
      if (first === undefined || last === undefined) return ''
      return `${linePath(run, box)}L${place(last[0], 0, box).join(' ')}L${place(first[0], 0, box).join(' ')}Z`
    })
    .join('')
}

/** Returns the path of a band between lows and highs. */
export function bandPath(band: NonNullable<Series['band']>, box: Box): string {
  if (band.length < 2) return ''
  const upper = band.map(([ms, , high]) => place(ms, high, box).join(' '))
  const lower = band.toReversed().map(([ms, low]) => place(ms, low, box).join(' '))
  return `M${[...upper, ...lower].join('L')}Z`
}

function place(ms: number, value: number, { fromMs, toMs, max, width, height }: Box): [number, number] {
  return [Math.round(((ms - fromMs) / Math.max(1, toMs - fromMs)) * width), Math.round(height - (value / max) * height)]
}

function runsOf(points: readonly Point[]): Point[][] {
  const runs: Point[][] = [[]]
  for (const point of points) {
    if (point[1] === null) runs.push([])
    else runs.at(-1)?.push(point)
  }
  return runs.filter((run) => run.length > 0)
}

/** Returns series on one list of instants, in seconds, for the browser. */
export function alignedOf(series: readonly Series[]): { x: number[]; y: (number | null | undefined)[][] } {
  const seconds = series.map(({ points }) => points.map(([ms]) => Math.round(ms / 1000)))
  const x = [...new Set(seconds.flat())].sort((a, b) => a - b)
  const y = series.map(({ points }, index) => {
    // Undefined: another line has a point at this instant. A null is a gap.
    const at = new Map(seconds[index]?.map((second, place) => [second, points[place]?.[1]]))
    return x.map((second) => at.get(second))
  })
  return { x, y }
}
