import { instantOf, isStorableMs } from '@gamenet/schemas'
import { importRefused } from './import-refused.js'

/*
 * A smaller number is refused as an epoch: 20200101 is meant as a date, not as a second of August 1970. The border
 * between the units follows from the limits: 1e11 s and 1e14 ms are the year 5138, 1e11 ms and 1e14 µs are 3 March
 * 1973.
 */
const EPOCH_SECONDS_MIN = 1e8
const EPOCH_MILLISECONDS_MIN = 1e11
const EPOCH_MICROSECONDS_MIN = 1e14

const DAY = String.raw`(\d{4})([-/])(\d{2})\2(\d{2})`
const CLOCK = String.raw`(\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?`
const ZONE = String.raw` ?([Zz]|UTC|GMT)|([+-])(\d{2})(?::?(\d{2}))?`
const WRITTEN = new RegExp(`^${DAY}(?:[Tt ]${CLOCK}(?:${ZONE})?)?$`)
const EPOCH = /^\d{1,17}(?:\.\d{1,9})?$/
/** `01/04/2022` is in January or in April. */
const DAY_OR_MONTH_FIRST = /^\d{1,2}[./-]\d{1,2}[./-]\d{2,4}(?!\d)/

/**
 * Longest distance of an instant into the future: clocks differ by up to a minute. The current value of a board or a
 * list is its newest event, so an event from the future would hide all events until then.
 */
export const AHEAD_OF_NOW_MS_MAX = 60_000

/** A parsed instant (milliseconds since 1970, and canonical text), or the fault. */
export type ReadTime = { readonly ms: number; readonly instant: string } | { readonly fault: string }

/** A time of day without a zone, as milliseconds since 1970 if it were UTC. */
export type WallTime = { readonly wallMs: number }

/** Parses the times of a file. */
export type TimeReader = (text: string) => ReadTime | WallTime

/**
 * Parses a time of a file: ISO 8601 with `Z`, `UTC` or an offset; without one, or with a blank instead of `T`, as UTC;
 * a date as its first instant; epoch seconds (1e8 to 1e11), milliseconds (to 1e14) or microseconds. Finer digits than a
 * millisecond are truncated. Days outside the calendar are faults.
 */
export function readTime(text: string): ReadTime {
  if (text !== lastText) {
    lastTime = inUtc(readLocalTime(text))
    lastText = text
  }
  return lastTime
}

/** Returns a wall time as UTC. */
export const inUtc = (time: ReadTime | WallTime): ReadTime => ('wallMs' in time ? stored(time.wallMs) : time)

/** Cache of the last row's time: files list all titles of one minute one after another. */
let lastText = ''
let lastTime = inUtc(readLocalTime(''))

/** Parses as {@link readTime} does, but leaves times without a zone to the caller. */
export function readLocalTime(text: string): ReadTime | WallTime {
  const match = WRITTEN.exec(text)
  if (match !== null) {
    const [, year, , month, day, hour = '00', minute = '00', second = '00', fraction, zone, sign, hours, minutes] =
      match
    const offset = sign === undefined ? zone && 'Z' : `${sign}${hours}${minutes ?? '00'}`
    return timeOfParts({ year, month, day, hour, minute, second, fraction, offset })
  }
  if (EPOCH.test(text)) return readEpoch(Number(text))
  if (DAY_OR_MONTH_FIRST.test(text))
    return { fault: 'expected a time with the year first; --time-format reads others, such as %d/%m/%Y or %m/%d/%Y' }
  return {
    fault:
      'expected a time as ISO 8601, as YYYY-MM-DD HH:MM:SS in UTC, or as epoch seconds or milliseconds; ' +
      '--time-format reads other forms, such as %d.%m.%Y %H:%M or %B %Y'
  }
}

/** Parses a number as epoch seconds, milliseconds or microseconds, depending on its size; see {@link readTime}. */
export function readEpoch(value: number): ReadTime {
  if (!(value >= EPOCH_SECONDS_MIN))
    return {
      fault: 'an epoch time before 3 March 1973 may be a date in digits; write it as ISO 8601, or give --time-format'
    }
  // Rounded to the microsecond first: 1489212000.001 * 1000 is slightly less than a whole number.
  if (value < EPOCH_MILLISECONDS_MIN) return stored(Math.floor(Math.round(value * 1e6) / 1e3))
  return stored(Math.floor(value < EPOCH_MICROSECONDS_MIN ? value : value / 1e3))
}

/** The digits of a time; `offset` is `Z` or `+HHMM`. */
export type TimeParts = Readonly<
  Record<'year' | 'month' | 'day' | 'hour' | 'minute' | 'second' | 'fraction' | 'offset', string | undefined>
>

/** Returns the time of digits, or the reason why there is none. */
export function timeOfParts(parts: TimeParts): ReadTime | WallTime {
  const { year, month = '01', day = '01', hour = '00', minute = '00', second = '00', fraction = '', offset } = parts
  const milliseconds = fraction === '' ? 0 : Number(fraction.padEnd(3, '0').slice(0, 3))
  const date = Number(day)
  const isOnCalendar = date >= 1 && date <= daysIn(Number(year), Number(month))
  if (!isOnCalendar) return { fault: `there is no day ${year}-${month}-${day}` }
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return { fault: 'there is no such time of day' }
  const wallMs =
    Date.UTC(Number(year), Number(month) - 1, date, Number(hour), Number(minute), Number(second)) + milliseconds
  if (offset === undefined) return { wallMs }
  if (offset === 'Z') return stored(wallMs)
  const [hours, minutes] = [Number(offset.slice(1, 3)), Number(offset.slice(3))]
  if (hours > 23 || minutes > 59) return { fault: 'there is no such UTC offset' }
  return stored(wallMs - (offset.startsWith('-') ? -1 : 1) * (hours * 60 + minutes) * 60_000)
}

/** Returns an instant that tables can store, else the fault. */
export function stored(ms: number): ReadTime {
  if (!isStorableMs(ms)) return { fault: 'expected a time between 1970 and 2105' }
  return { ms, instant: instantOf(ms) }
}

const DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

function daysIn(year: number, month: number): number {
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
  return month === 2 && isLeap ? 29 : (DAYS[month - 1] ?? 0)
}

/** The directives of strptime, as regular expressions. Fields without a name are skipped. */
const DIRECTIVES: Readonly<Record<string, string>> = {
  Y: '(?<year>\\d{4})',
  y: '(?<century>\\d{2})',
  m: '(?<month>\\d{1,2})',
  d: '(?<day>\\d{1,2})',
  b: '(?<name>[A-Za-z]{3,9})\\.?',
  B: '(?<name>[A-Za-z]{3,9})\\.?',
  a: '[A-Za-z]+\\.?',
  A: '[A-Za-z]+\\.?',
  H: '(?<hour>\\d{1,2})',
  I: '(?<half>\\d{1,2})',
  p: '(?<noon>[AaPp])\\.?[Mm]\\.?',
  M: '(?<minute>\\d{1,2})',
  S: '(?<second>\\d{1,2})',
  f: '(?<fraction>\\d{1,9})',
  z: '(?<offset>[Zz]|[+-]\\d{2}:?\\d{2})',
  '%': '%'
}
const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']

/** Returns the reader of times in a format of strptime, `%d/%m/%Y %H:%M`. Throws `import_refused`. */
export function formatReader(format: string): TimeReader {
  const source = format.replace(/%(.?)|[\\^$.*+?()[\]{}|]/gs, (text, letter?: string) => {
    if (letter === undefined) return `\\${text}`
    const directive = DIRECTIVES[letter]
    if (directive !== undefined) return directive
    const known = Object.keys(DIRECTIVES).map((each) => `%${each}`)
    throw importRefused(`--time-format has ${JSON.stringify(text)}; expected ${known.join(' ')}`)
  })
  if (!/%[Yy]/.test(format) || !/%[mbB]/.test(format) || /%(.)(?=.*%\1)/s.test(format))
    throw importRefused(`--time-format ${JSON.stringify(format)} must have year (%Y) and month (%m or %B), each once`)
  const pattern = new RegExp(`^${source}$`)
  return (text) => {
    const parts = pattern.exec(text)?.groups
    if (parts === undefined) return { fault: `expected a time as ${format}` }
    const { century, name, half, noon, offset } = parts
    const month = name === undefined ? parts.month : String(MONTHS.indexOf(name.slice(0, 3).toLowerCase()) + 1)
    const hour = half === undefined ? parts.hour : String((Number(half) % 12) + (/p/i.test(noon ?? '') ? 12 : 0))
    return timeOfParts({
      year: parts.year ?? `${Number(century) < 70 ? 20 : 19}${century}`,
      month,
      day: parts.day,
      hour,
      minute: parts.minute,
      second: parts.second,
      fraction: parts.fraction,
      offset: offset?.toUpperCase().replace(':', '')
    })
  }
}
