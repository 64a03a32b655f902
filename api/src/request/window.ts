import { Refusal, shownInstant } from '@gamenet/schemas'
import type { Window as Span } from '../queries/series.js'

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000

/** A window with its origin. */
export type Window = Span & {
  /** The requested length; a window that ends now also contains the current minute. */
  readonly spanMs: number
}

/** The parsed parameters of a window. `days` and `hours` must not have defaults; `otherwise` is the default. */
export type WindowInput = {
  readonly days?: number | undefined
  readonly hours?: number | undefined
  readonly from?: number | undefined
  readonly to?: number | undefined
}

/**
 * Returns the absolute window of an answer: `from` and `to`; only `from`, ending now; or the last `days` or `hours`,
 * by default `otherwise`. A window that ends now starts at a whole minute and ends with the current minute, so that all
 * answers of a minute are the same function of the data. Refuses `to` alone, `from` not before `to` (or now), and
 * either together with `days` or `hours`.
 */
export function window(input: WindowInput, otherwise: { days: number } | { hours: number }, nowMs: number): Window {
  const { days, hours, from, to } = input
  const length = days === undefined ? (hours === undefined ? undefined : 'hours') : 'days'
  if (length !== undefined && (from !== undefined || to !== undefined)) {
    throw refused(
      `${length} cannot be given together with ${from === undefined ? 'to' : 'from'}; give one or the other`
    )
  }
  if (to !== undefined && from === undefined)
    throw refused('to needs from; give both, or from alone for a window that ends now')
  const minute = endOfMinute(nowMs) - MINUTE_MS
  if (from !== undefined && to !== undefined) {
    if (from >= to) throw refused(`from must be before to; got ${shownInstant(from)} and ${shownInstant(to)}`)
    return { fromMs: from, toMs: to, spanMs: to - from }
  }
  if (from !== undefined) {
    if (from >= nowMs)
      throw refused(
        `from must be before now when to is not given; got ${shownInstant(from)}, now is ${shownInstant(nowMs)}`
      )
    const fromMs = Math.floor(from / MINUTE_MS) * MINUTE_MS
    return { fromMs, toMs: endOfMinute(nowMs), spanMs: Math.max(minute - fromMs, MINUTE_MS) }
  }
  const spanMs = lengthMs(days !== undefined || hours !== undefined ? { days, hours } : otherwise)
  return { fromMs: Math.max(0, minute - spanMs), toMs: endOfMinute(nowMs), spanMs }
}

/**
 * Returns the end of "now" for an answer, milliseconds since 1970: constant during a minute, and after everything
 * observed in it.
 */
export const endOfMinute = (nowMs: number): number => (Math.floor(nowMs / MINUTE_MS) + 1) * MINUTE_MS

function lengthMs(length: { days?: number | undefined; hours?: number | undefined }): number {
  return (length.days ?? 0) * DAY_MS + (length.hours ?? 0) * HOUR_MS
}

const refused = (sentence: string): Refusal => new Refusal('window_invalid', [sentence])
