import { z } from 'zod'

/*
 * instant   a point in time, UTC, to the millisecond. In events the one canonical text `YYYY-MM-DDTHH:MM:SS[.mmm]Z`, so
 *           that one instant has one spelling and event ids stay equal. Answers always show the milliseconds.
 */

const INSTANT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{3})?Z$/
const FIRST_MS = 0
/**
 * The first instant after all valid ones, milliseconds since 1970: every column type for instants can store the end of
 * 2105.
 */
export const INSTANTS_END_MS = Date.UTC(2106, 0, 1)

/** An instant in its canonical text, between 1970 and 2105. */
export const Instant = z
  .string()
  .refine(
    isCanonical,
    'expected an instant between 1970 and 2105 as YYYY-MM-DDTHH:MM:SS[.mmm]Z, whole seconds without .000'
  )
  .meta({ description: 'Instant, ISO 8601 in UTC', example: '2026-03-14T20:00:00Z' })

/** An instant as series of answers show it, floored to the second, UTC. */
export const RecordedAt = z
  .string()
  .regex(/^\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}$/)
  .meta({ description: 'Instant in UTC, `YYYY-MM-DD HH:MM:SS`', example: '2026-03-14 20:00:00' })

/** Returns the canonical text of an instant in milliseconds since 1970; whole seconds have no fraction. */
export function instantOf(ms: number): string {
  const text = new Date(ms).toISOString()
  return text.endsWith('.000Z') ? `${text.slice(0, 19)}Z` : text
}

/** An instant in answers: always with milliseconds, so that instants sort as text. */
export const ShownInstant = z.iso.datetime({ precision: 3 })

/** Returns the text of a {@link ShownInstant} in milliseconds since 1970. */
export const shownInstant = (ms: number): string => new Date(ms).toISOString()

/** Returns the milliseconds since 1970 of an instant in its canonical text. */
export const millisecondsOf = (instant: string): number => Date.parse(instant)

/** Returns whether an {@link Instant} can hold this number of milliseconds. */
export const isStorableMs = (ms: number): boolean => Number.isInteger(ms) && ms >= FIRST_MS && ms < INSTANTS_END_MS

/** The last valid text: all entries of a board, and all titles of one minute, have the same instant. */
let lastCanonical = ''

function isCanonical(text: string): boolean {
  if (text === lastCanonical) return true
  if (!isPlain(text) && !isMillisecond(text)) return false
  lastCanonical = text
  return true
}

function isMillisecond(text: string): boolean {
  if (!INSTANT.test(text)) return false
  const ms = Date.parse(text)
  return isStorableMs(ms) && instantOf(ms) === text
}

/**
 * Returns whether a text is a whole second of the first 28 days of a month from 1970 to 2099, the most frequent case,
 * for which checking the digits suffices. Parsing and formatting takes ten times as long. `Date.parse` by itself
 * accepts 30 February and 24:00:00.
 */
function isPlain(text: string): boolean {
  if (text.length !== 20) return false
  const year = twoDigits(text, 0) * 100 + twoDigits(text, 2)
  const month = twoDigits(text, 5)
  const day = twoDigits(text, 8)
  return (
    year >= 1970 &&
    year < 2100 &&
    isAt(text, 4, '-') &&
    month >= 1 &&
    month <= 12 &&
    isAt(text, 7, '-') &&
    day >= 1 &&
    day <= 28 &&
    isAt(text, 10, 'T') &&
    twoDigits(text, 11) < 24 &&
    isAt(text, 13, ':') &&
    twoDigits(text, 14) < 60 &&
    isAt(text, 16, ':') &&
    twoDigits(text, 17) < 60 &&
    isAt(text, 19, 'Z')
  )
}

const isAt = (text: string, place: number, mark: string): boolean => text.charCodeAt(place) === mark.charCodeAt(0)

/** Returns the number of two digits, or NaN, for which every comparison is false. */
function twoDigits(text: string, place: number): number {
  const tens = text.charCodeAt(place) - 48
  const ones = text.charCodeAt(place + 1) - 48
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : Number.NaN
}
