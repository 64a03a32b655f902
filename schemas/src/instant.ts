import { z } from 'zod'

/*
 * instant   a point in time, UTC, to the millisecond. On the wire the one canonical text
 *           `YYYY-MM-DDTHH:MM:SS[.mmm]Z`, so that one instant has one spelling and event ids stay equal.
 */

const INSTANT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{3})?Z$/
const FIRST_MS = 0
/** What every column type that we store instants in can hold: up to the end of 2105. */
const LAST_MS = Date.UTC(2106, 0, 1) - 1

/** An instant in its canonical text, between 1970 and 2105. */
export const Instant = z
  .string()
  .refine(isCanonical, 'expected an instant between 1970 and 2105 as YYYY-MM-DDTHH:MM:SS[.mmm]Z')
  .meta({ description: 'Instant, ISO 8601 in UTC', example: '2026-03-14T20:00:00Z' })

/** An instant as series of answers show it, floored to the second, UTC. */
export const RecordedAt = z
  .string()
  .regex(/^\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}$/)
  .meta({ description: 'Instant in UTC, `YYYY-MM-DD HH:MM:SS`', example: '2026-03-14 20:00:00' })

/** The canonical text of an instant given in milliseconds since 1970; whole seconds have no fraction. */
export function instantOf(ms: number): string {
  const text = new Date(ms).toISOString()
  return text.endsWith('.000Z') ? `${text.slice(0, 19)}Z` : text
}

/** Milliseconds since 1970 of an instant in its canonical text. */
export function millisecondsOf(instant: string): number {
  return Date.parse(instant)
}

/** True when a number of milliseconds is one that an {@link Instant} can hold. */
export function isStorableMs(ms: number): boolean {
  return Number.isInteger(ms) && ms >= FIRST_MS && ms <= LAST_MS
}

function isCanonical(text: string): boolean {
  if (!INSTANT.test(text)) return false
  const ms = Date.parse(text)
  return isStorableMs(ms) && (isPlain(text) || instantOf(ms) === text)
}

/**
 * True for whole seconds of the first 28 days of a month: no other spelling gives the same instant, so they need not be
 * formatted again, which is half the cost of checking an event. `Date.parse` takes 30 February and 24:00:00, too.
 */
function isPlain(text: string): boolean {
  return text.length === 20 && text.slice(8, 10) <= '28' && text.slice(11, 13) < '24'
}
