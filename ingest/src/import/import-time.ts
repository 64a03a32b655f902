import { instantOf, isStorableMs } from '@gamenet/schemas'

/*
 * A smaller number is refused as an epoch: 20200101 is meant as a date, not as a second of August 1970. The border
 * between seconds and milliseconds follows from the limits: 1e11 s is the year 5138, 1e11 ms is 3 March 1973.
 */
const EPOCH_SECONDS_MIN = 1e8
const EPOCH_MILLISECONDS_MIN = 1e11

const WRITTEN =
  /^(\d{4})-(\d{2})-(\d{2})(?:[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?(?: ?([Zz])|([+-])(\d{2})(?::?(\d{2}))?)?)?$/
const EPOCH = /^\d{1,17}(?:\.\d{1,9})?$/

/**
 * Longest distance of an instant into the future: clocks differ by up to a minute. The current value of a board or a
 * list is its newest event, so an event from the future would hide all events until then.
 */
export const AHEAD_OF_NOW_MS_MAX = 60_000

/** A parsed instant (milliseconds since 1970, and canonical text), or the fault. */
export type ReadTime = { readonly ms: number; readonly instant: string } | { readonly fault: string }

/**
 * Parses a time of a file: ISO 8601 with `Z` or an offset; without one, or with a blank instead of `T`, as UTC; a date
 * as its first instant; epoch seconds (1e8 to 1e11) or milliseconds (from 1e11). Finer digits than a millisecond are
 * truncated. Days outside the calendar are faults.
 */
export function readTime(text: string): ReadTime {
  if (text !== lastText) {
    lastTime = timeOf(text)
    lastText = text
  }
  return lastTime
}

/** Cache of the last row's time: files list all titles of one minute one after another. */
let lastText = ''
let lastTime = timeOf('')

function timeOf(text: string): ReadTime {
  const match = WRITTEN.exec(text)
  if (match !== null) return readWritten(text, match)
  if (EPOCH.test(text)) return readEpoch(Number(text))
  return {
    fault: 'expected a time as ISO 8601, as YYYY-MM-DD HH:MM:SS in UTC, or as epoch seconds or milliseconds'
  }
}

/** Parses a number as epoch seconds or milliseconds, depending on its size; see {@link readTime}. */
export function readEpoch(value: number): ReadTime {
  if (!(value >= EPOCH_SECONDS_MIN)) {
    return { fault: 'an epoch time before 3 March 1973 may be a date in digits; write it as ISO 8601' }
  }
  // Rounded to the microsecond first: 1489212000.001 * 1000 is slightly less than a whole number.
  const ms = value < EPOCH_MILLISECONDS_MIN ? Math.round(value * 1e6) / 1e3 : value
  return stored(Math.floor(ms))
}

function readWritten(text: string, match: RegExpExecArray): ReadTime {
  const [, year, month, day, hour = '00', minute = '00', second = '00', fraction = '', , sign, hours, minutes] = match
  const milliseconds = fraction === '' ? 0 : Number(fraction.padEnd(3, '0').slice(0, 3))
  const offsetMinutes = sign === undefined ? 0 : Number(hours) * 60 + Number(minutes ?? 0)
  const date = Number(day)
  const isOnCalendar = date >= 1 && date <= daysIn(Number(year), Number(month))
  if (!isOnCalendar) return { fault: `there is no day ${text.slice(0, 10)}` }
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return { fault: 'there is no such time of day' }
  if (Number(hours ?? 0) > 23 || Number(minutes ?? 0) > 59) return { fault: 'there is no such UTC offset' }
  const wall = Date.UTC(Number(year), Number(month) - 1, date, Number(hour), Number(minute), Number(second))
  if (milliseconds === 0 && offsetMinutes === 0 && isStorableMs(wall)) {
    // The fast path for the usual format: formatting the number again costs as much as parsing the text.
    return { ms: wall, instant: `${text.slice(0, 10)}T${hour}:${minute}:${second}Z` }
  }
  return stored(wall + milliseconds - (sign === '-' ? -offsetMinutes : offsetMinutes) * 60_000)
}

function stored(ms: number): ReadTime {
  if (!isStorableMs(ms)) return { fault: 'expected a time between 1970 and 2105' }
  return { ms, instant: instantOf(ms) }
}

const DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

function daysIn(year: number, month: number): number {
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
  return month === 2 && isLeap ? 29 : (DAYS[month - 1] ?? 0)
}
