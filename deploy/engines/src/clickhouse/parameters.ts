import { ClickHouseError } from './clickhouse.js'

/**
 * Returns a value as the engine reads it inside a list: a quoted string, the word NULL, numbers.
 * @throws ClickHouseError if the engine would read another value, such as that of a `Date`
 */
export const parameterText = (name: string, value: unknown): string => {
  if (value === null || value === undefined) return 'NULL'
  if (typeof value === 'string') return stringLiteral(value)
  if (typeof value === 'boolean' || typeof value === 'bigint') return String(value)
  if (typeof value === 'number') return numberText(name, value)
  if (Array.isArray(value)) return `[${value.map((element) => parameterText(name, element)).join(',')}]`
  throw new ClickHouseError(
    `Parameter ${name} is ${describe(value)}; ` +
      'it must be null, a boolean, a number, a bigint, a string or an array of these.'
  )
}

const numberText = (name: string, value: number): string => {
  if (!Number.isFinite(value)) throw new ClickHouseError(`Parameter ${name} is ${value}, which is not a finite number.`)
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
    throw new ClickHouseError(`Parameter ${name} is ${value}, an integer above 2^53; pass it as a bigint or a string.`)
  }
  return String(value)
}

const describe = (value: unknown): string => (value instanceof Date ? 'a Date' : `a ${typeof value}`)

const TEXT_ESCAPES: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  '\0': '\\0',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  "'": "\\'"
}
const ESCAPED_IN_LITERAL = /[\\'\0\b\f\n\r\t]/g

/** Returns a quoted string literal; only backslash and quote could end it. */
export const stringLiteral = (text: string): string =>
  `'${text.replace(ESCAPED_IN_LITERAL, (char) => TEXT_ESCAPES[char] ?? char)}'`

/** Returns the code of a statement: strings, quoted names and comments are replaced by blanks of the same length. */
export const codeOf = (sql: string): string => sql.replace(NOT_CODE, (text) => ' '.repeat(text.length))

/** An unclosed one extends to the end: otherwise each quote in it would begin another search, minutes for 1 MiB. */
const NOT_CODE = new RegExp(
  [`'`, '"', '`'].map((quote) => `${quote}(?:[^${quote}\\\\]|\\\\[\\s\\S]?)*(?:${quote}|$)`).join('|') +
    '|--[^\\n]*|/\\*[\\s\\S]*?(?:\\*/|$)',
  'g'
)
