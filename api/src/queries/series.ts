import { Refusal } from '@gamenet/schemas'
import { z } from 'zod'

/*
 * window      a half-open time range, in milliseconds since 1970
 * bucket      a range of `width` seconds; the first begins in 1970, UTC, or, if it is a week, on the Monday before
 * raw         width 0: the samples themselves
 */

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** A half-open time range, milliseconds since 1970. */
export type Window = { readonly fromMs: number; readonly toMs: number }

/** Default bucket widths of series in seconds. */
export const SERIES_WIDTHS = [300, 900, 3600, 21_600, 86_400, 604_800] as const
/** Limits of a requested bucket width, in seconds. */
export const RESOLUTION_SECONDS_MIN = 60
export const RESOLUTION_SECONDS_MAX = 604_800
/** Maximum number of buckets in a default series: the pixels of a wide screen. */
const BUCKETS_MAX = 2000
const RAW_SPAN_MS_MAX = DAY_MS
/** Maximum number of points in an answer: about 60 MB of JSON. */
export const POINTS_MAX = 1_000_000

/**
 * 1 January 1970 is a Thursday: buckets of a week begin this many seconds earlier, on a Monday. All others begin with
 * 1970.
 */
export const MONDAY_SHIFT_SECONDS = 259_200
export const WEEK_SECONDS = 604_800

/** Returns the number of buckets of a width (seconds) that a window touches, including partly covered ones. */
export function bucketsTouched(window: Window, widthSeconds: number): number {
  const widthMs = widthSeconds * 1000
  const shiftMs = widthSeconds === WEEK_SECONDS ? MONDAY_SHIFT_SECONDS * 1000 : 0
  return Math.ceil((window.toMs + shiftMs) / widthMs) - Math.floor((window.fromMs + shiftMs) / widthMs)
}

/**
 * Returns the bucket width of a series in seconds, 0 for samples: the requested one; else samples up to a span of 24
 * hours; else the finest of {@link SERIES_WIDTHS} with at most 2,000 buckets in the window; else a week.
 * @param spanMs the requested length: a window that ends now is up to a minute longer
 */
export function seriesWidth(window: Window, spanMs: number, resolution: 'raw' | number | undefined): number {
  if (resolution !== undefined) return resolution === 'raw' ? 0 : resolution
  if (spanMs <= RAW_SPAN_MS_MAX) return 0
  return SERIES_WIDTHS.find((width) => bucketsTouched(window, width) <= BUCKETS_MAX) ?? RESOLUTION_SECONDS_MAX
}

/** Returns the refusal of a series with too many points; it names the finest resolution that surely fits. */
export function tooManyPoints(window: Window, widthSeconds: number): Refusal {
  const fitting = [RESOLUTION_SECONDS_MIN, ...SERIES_WIDTHS].find(
    (width) => width > widthSeconds && bucketsTouched(window, width) <= POINTS_MAX
  )
  const request = widthSeconds === 0 ? 'raw' : String(widthSeconds)
  return new Refusal('answer_too_large', [
    `resolution=${request} gives more than ${POINTS_MAX} points in this window; ` +
      `resolution=${fitting ?? RESOLUTION_SECONDS_MAX} fits`
  ])
}

const Ms = z.int().nonnegative()

/** A window divided for reading: `[firstHour, lastHour)` are its whole hours, the rest are its edges. Milliseconds. */
export const HourCut = z.object({ from: Ms, to: Ms, firstHour: Ms, lastHour: Ms })
export type HourCut = z.infer<typeof HourCut>

/** As {@link HourCut}; within the whole hours, `[firstDay, lastDay)` are whole days. */
export const DayCut = HourCut.extend({ firstDay: Ms, lastDay: Ms })
export type DayCut = z.infer<typeof DayCut>

/** Divides a window into whole hours and edges. An empty part lies at the end of the window. */
export function cutAtHours({ fromMs, toMs }: Window): HourCut {
  const { first, last } = whole(fromMs, toMs, HOUR_MS)
  return { from: fromMs, to: toMs, firstHour: first, lastHour: last }
}

/** Returns the window without whole hours, so that everything is read from the samples. */
export function uncut({ fromMs, toMs }: Window): HourCut {
  return { from: fromMs, to: toMs, firstHour: toMs, lastHour: toMs }
}

/** Divides a window into whole days, the whole hours around them, and the edges. */
export function cutAtDays(window: Window): DayCut {
  const hours = cutAtHours(window)
  const { first, last } = whole(hours.firstHour, hours.lastHour, DAY_MS)
  return { ...hours, firstDay: first, lastDay: last }
}

function whole(from: number, to: number, unit: number): { first: number; last: number } {
  const first = Math.ceil(from / unit) * unit
  const last = Math.floor(to / unit) * unit
  return first < last ? { first, last } : { first: to, last: to }
}
