import { Refusal } from '@gamenet/schemas'
import { z } from 'zod'

/*
 * window      a stretch of time, half-open, in milliseconds since 1970
 * bucket      a stretch of `width` seconds that begins at a multiple of the width since 1970, UTC
 * raw         width 0: the samples themselves
 */

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** A stretch of time, half-open, milliseconds since 1970. */
export type Window = { readonly fromMs: number; readonly toMs: number }

/** Bucket widths in seconds that a series is given in unless its caller asks for another one. */
export const SERIES_WIDTHS = [300, 900, 3600, 21_600, 86_400, 604_800] as const
/** Narrowest and widest bucket that may be asked for, in seconds. */
export const RESOLUTION_SECONDS_MIN = 60
export const RESOLUTION_SECONDS_MAX = 604_800
/** A default series has no more buckets than a wide screen has pixels. */
const BUCKETS_MAX = 2000
const RAW_SPAN_MS_MAX = DAY_MS
/** The longest series that is answered at all: about 60 MB of JSON. */
export const POINTS_MAX = 1_000_000

/** Buckets of a width (seconds) that a window touches, the partly covered ones at its edges included. */
export function bucketsTouched(window: Window, widthSeconds: number): number {
  const widthMs = widthSeconds * 1000
  return Math.ceil(window.toMs / widthMs) - Math.floor(window.fromMs / widthMs)
}

/**
 * The width in seconds that a series is answered in, 0 for the samples themselves: what was asked for, else samples up
 * to a span of 24 hours, else the finest of {@link SERIES_WIDTHS} with at most 2,000 buckets in the window, else a week.
 * @param spanMs the length that was asked for: a window that ends now is up to a minute longer than that
 */
export function seriesWidth(window: Window, spanMs: number, resolution: 'raw' | number | undefined): number {
  if (resolution !== undefined) return resolution === 'raw' ? 0 : resolution
  if (spanMs <= RAW_SPAN_MS_MAX) return 0
  return SERIES_WIDTHS.find((width) => bucketsTouched(window, width) <= BUCKETS_MAX) ?? RESOLUTION_SECONDS_MAX
}

/** The refusal of a series with too many points; it names the finest resolution that surely fits. */
export function tooManyPoints(window: Window, widthSeconds: number): Refusal {
  const fitting = [RESOLUTION_SECONDS_MIN, ...SERIES_WIDTHS].find(
    (width) => width > widthSeconds && bucketsTouched(window, width) <= POINTS_MAX
  )
  const request = widthSeconds === 0 ? 'raw' : String(widthSeconds)
  return new Refusal('answer_too_large', [
    `resolution=${request} gives more than ${POINTS_MAX} points in this window; resolution=${fitting ?? RESOLUTION_SECONDS_MAX} fits`
  ])
}

const Ms = z.int().nonnegative()

/** A window cut for reading: `[firstHour, lastHour)` are its whole hours, the rest are its edges. All milliseconds. */
export const HourCut = z.object({ from: Ms, to: Ms, firstHour: Ms, lastHour: Ms })
export type HourCut = z.infer<typeof HourCut>

/** As {@link HourCut}; of the whole hours, `[firstDay, lastDay)` are whole days. */
export const DayCut = HourCut.extend({ firstDay: Ms, lastDay: Ms })
export type DayCut = z.infer<typeof DayCut>

/** Cuts a window into whole hours and edges. A part that is empty lies, empty, at the end of the window. */
export function cutAtHours({ fromMs, toMs }: Window): HourCut {
  const { first, last } = whole(fromMs, toMs, HOUR_MS)
  return { from: fromMs, to: toMs, firstHour: first, lastHour: last }
}

/** The same window with no whole hours in it, so that everything is read sample by sample. */
export function uncut({ fromMs, toMs }: Window): HourCut {
  return { from: fromMs, to: toMs, firstHour: toMs, lastHour: toMs }
}

/** Splits a window into whole days, the whole hours around them, and the edges. */
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
