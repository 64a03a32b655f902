import { importRefused } from './import-refused.js'
import { type TimeReader, timeOfParts } from './import-time.js'

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
  if (!/%[Yy]/.test(format) || !/%[mbB]/.test(format) || /%(.)(?=.*%\1)/s.test(format)) {
    throw importRefused(`--time-format ${JSON.stringify(format)} must have year (%Y) and month (%m or %B), each once`)
  }
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
