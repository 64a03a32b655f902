import { isStorableMs, lineText, nameKey, Refusal, USERNAME_LENGTH_MAX, Username } from '@gamenet/schemas'
import { z } from 'zod'
import { startOfDay, zoneNamed } from '../queries/time-zone.js'

/*
 * A parameter is a string, an array (given more than once) or missing. Each schema describes the allowed values in its
 * error: `<name> must be <allowed>; got <value>`. Chain `.optional()` or `.default(…)`.
 */

const INTEGER = /^(?:0|-?[1-9]\d*)$/
/** A date with time and `Z` or an offset; seconds and their fraction are optional. */
const ISO_INSTANT = /^(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?(?:Z|([+-])(\d{2})(?::?(\d{2}))?)$/i
const ISO_DAY = /^\d{4}-\d{2}-\d{2}$/
/** The days from 1970 to 2105, as a pattern of JSON Schema. */
const DAY_PATTERN = '(19[7-9][0-9]|20[0-9]{2}|210[0-5])-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])'
const HOUR_PATTERN = '([01][0-9]|2[0-3])'
const TIME_PATTERN = `${HOUR_PATTERN}:[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?([Zz]|[+-]${HOUR_PATTERN}(:?[0-5][0-9])?)`
const INSTANT_PATTERN = `^${DAY_PATTERN}([Tt]${TIME_PATTERN})?$`
const SHOWN_CHARACTERS_MAX = 40
const TEXT_CHARACTERS_MAX = 500
/**
 * Control and format characters for patterns; format characters beyond the first plane, which no name has, are refused
 * anyway.
 */
const CONTROL = '\\x00-\\x1f\\x7f-\\x9f'
const FORMAT =
  '\\xad\\u0600-\\u0605\\u061c\\u06dd\\u070f\\u0890\\u0891\\u08e2\\u180e' +
  '\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u2064\\u2066-\\u206f\\ufeff\\ufff9-\\ufffb'
/** Text without control characters, as a pattern of JSON Schema. */
export const PLAIN_TEXT_PATTERN = `^[^${CONTROL}]+$`
/** A name between commas that is not blank. */
const LISTED_NAME = `[^,${CONTROL}]*[^,\\s${CONTROL}][^,${CONTROL}]*`

/** An integer in plain decimal digits, both bounds included. */
export function integer({ min, max }: { min: number; max: number }) {
  const allowed = `an integer from ${min} to ${max}`
  return parameter(allowed, { type: 'integer', minimum: min, maximum: max }, (text) => {
    const value = INTEGER.test(text) ? Number(text) : Number.NaN
    return value >= min && value <= max ? value : undefined
  })
}

/** A number in plain decimal digits. */
export function number() {
  return parameter('a number such as 1.5', { type: 'number', example: 1.5 }, (text) =>
    /^-?\d{1,15}(\.\d{1,15})?$/.test(text) ? Number(text) : undefined
  )
}

/** One of these words. */
export function oneOf<const Word extends string>(words: readonly [Word, ...Word[]]) {
  return parameter(`one of ${words.join(', ')}`, { type: 'string', enum: words }, (text) =>
    words.find((word) => word === text)
  )
}

/** Some of these words, separated by commas; returned in the order of the list, each once. */
export function someOf<const Word extends string>(words: readonly [Word, ...Word[]]) {
  const one = `(${words.join('|')})`
  const schema = { type: 'string', pattern: `^${one}(,${one})*$`, example: words.slice(0, 2).join(',') }
  return parameter(`some of ${words.join(', ')}, separated by commas`, schema, (text) => {
    const given = new Set(text.split(','))
    const found = words.filter((word) => given.has(word))
    return found.length === given.size ? found : undefined
  })
}

/**
 * An instant, ISO 8601 with `Z` or an offset, 1970 to 2105, or a day, whose first instant in the zone of the
 * parameter `tz` it is; returned in milliseconds since 1970; finer digits are truncated.
 */
export function instant({ example = '2026-03-14T20:00:00Z' }: { example?: string } = {}) {
  const allowed =
    'a day or an ISO 8601 instant between 1970 and 2105 with Z or an offset, such as 2026-03-14 or 2026-03-14T20:00:00Z'
  return parameter(allowed, { type: 'string', pattern: INSTANT_PATTERN, example }, (given, tz = 'UTC') => {
    if (!isDay(given)) return millisecondsOfIso(given)
    const ms = startOfDay(tz, given)
    return isStorableMs(ms) ? ms : undefined
  })
}

/** A day, `YYYY-MM-DD`, 1970 to 2105. */
export function date({ example = '2026-03-01' }: { example?: string } = {}) {
  const allowed = 'a day between 1970-01-02 and 2105-12-31, such as 2026-03-01'
  return parameter(allowed, { type: 'string', format: 'date', example }, (given) =>
    isDay(given) && given !== '1970-01-01' ? given : undefined
  )
}

/** The name of {@link knownAt}. */
export const KNOWN_AT = 'knownAt'

/** The instant of recording up to which an answer's events are read. */
export const knownAt = instant()
  .optional()
  .describe('The answer from what was recorded by this instant in the past, whatever was recorded later.')

/** The zone of the days that an endpoint's instants are given as. */
export const zoneOfDays = timeZone().default('UTC').describe('Time zone of instants that are given as days.')

/** The name of an IANA time zone; returned as its canonical name. */
export function timeZone() {
  const allowed = 'the name of an IANA time zone, such as Europe/Berlin'
  const pattern = '^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$'
  return parameter(allowed, { type: 'string', pattern, example: 'Europe/Berlin' }, zoneNamed)
}

/** `raw`, or the width of a bucket in seconds, 60 to 604800 (a week). */
export function resolution() {
  const allowed = 'raw or an integer from 60 to 604800'
  const schema = { oneOf: [{ const: 'raw' }, { type: 'integer', minimum: 60, maximum: 604_800 }], example: 3600 }
  return parameter(allowed, schema, (text): 'raw' | number | undefined => {
    if (text === 'raw') return 'raw'
    const value = INTEGER.test(text) ? Number(text) : Number.NaN
    return value >= 60 && value <= 604_800 ? value : undefined
  })
}

/** Free text: 1 to `max` characters (default 500), no control characters. */
export function text({ example, max = TEXT_CHARACTERS_MAX, isPath }: TextRule) {
  const plain = `1 to ${max} characters without control characters`
  const allowed = isPath === undefined ? plain : `${plain}, and no path of a file`
  return parameter(
    allowed,
    { type: 'string', minLength: 1, maxLength: max, pattern: PLAIN_TEXT_PATTERN, example },
    (given) => (isPlainText(given, max) && isPath?.test(given) !== true ? given : undefined)
  )
}

type TextRule = {
  readonly example: string
  readonly max?: number
  /** Refuses what matches; default: nothing. */
  readonly isPath?: RegExp
}

/** The name of a player, read as boards keep it: HTML white space collapsed, none at the ends. */
export function playerName() {
  return parameter(
    `1 to ${TEXT_CHARACTERS_MAX} characters without control characters`,
    { type: 'string', minLength: 1, maxLength: TEXT_CHARACTERS_MAX, pattern: PLAIN_TEXT_PATTERN, example: 'ann' },
    (given) => (isPlainText(given, TEXT_CHARACTERS_MAX) ? lineText(given) : undefined)
  )
}

/** The name of a user, read as the import of presence reads it. */
export function username() {
  const allowed = `1 to ${USERNAME_LENGTH_MAX} characters without control or format characters`
  return parameter(
    allowed,
    {
      type: 'string',
      minLength: 1,
      maxLength: USERNAME_LENGTH_MAX,
      pattern: `^[^${CONTROL}${FORMAT}]+$`,
      example: 'CalmOtter'
    },
    (given) => (Username.safeParse(given).success ? lineText(given) : undefined)
  )
}

/**
 * `start`, another word of a feed, or a cursor that the feed gave, of at most `max` characters. The feed refuses a
 * broken one itself.
 */
export function cursor({ max }: { max: number }) {
  return text({ max, example: 'start' }).meta({ pattern: '^[A-Za-z0-9_-]+$' })
}

/**
 * Returns whether a text has 1 to `max` characters (UTF-16 units), no control characters and no unpaired surrogates.
 */
export function isPlainText(given: string, max: number): boolean {
  return given !== '' && given.length <= max && !/[\p{Cc}\p{Cs}]/u.test(given)
}

/** 1 to `max` texts such as names, separated by commas. HTML white space around a text is left out. */
export function texts({ max, example }: { max: number; example: string }) {
  return listed({ min: 1, max }, example, (found) => (found.length <= max ? found : undefined))
}

/** The keys of 1 to `max` players, separated by commas; names that differ only by case count once. */
export function nameKeys({ max }: { max: number }) {
  return listed({ min: 1, max }, 'ann,bob', (names) => {
    const keys = [...new Set(names.map(nameKey))]
    return keys.length <= max ? keys : undefined
  })
}

/** Two names of players, separated by a comma, that differ not only by case. */
export function twoNames() {
  return listed({ min: 2, max: 2 }, 'ann,bob', ([first = '', second = '', ...more]) =>
    more.length === 0 && second !== '' && nameKey(first) !== nameKey(second) ? ([first, second] as const) : undefined
  )
}

function listed<Value>(
  { min, max }: { min: number; max: number },
  example: string,
  read: (texts: string[]) => Value | undefined
) {
  const count = min === max ? `${max} different` : `${min} to ${max}`
  const allowed = `${count} names separated by commas, none of them blank, without control characters`
  const pattern = `^${LISTED_NAME}(,${LISTED_NAME}){${min - 1},${max - 1}}$`
  return parameter(allowed, { type: 'string', minLength: 2 * min - 1, pattern, example }, (given) => {
    const found = given.split(',').map(lineText)
    return found.every((text) => isPlainText(text, TEXT_CHARACTERS_MAX)) ? read(found) : undefined
  })
}

/**
 * A time, `M:SS.mmm` or `SS.mmm` with any number of seconds, up to 99999:59.999; returned in milliseconds. The tables
 * have none above 71582:47.295, so every shown time can be searched.
 */
export function time() {
  const pattern = '^([0-9]{1,5}:[0-5][0-9]|[0-5]?[0-9]{1,6})\\.[0-9]{3}$'
  const allowed = 'a time such as 1:02.345 or 62.345, up to 99999:59.999'
  return parameter(allowed, { type: 'string', pattern, example: '1:02.345' }, (given) => {
    if (!new RegExp(pattern).test(given)) return undefined
    const [seconds, minutes = 0] = given.split(':').reverse()
    return Math.round((Number(minutes) * 60 + Number(seconds)) * 1000)
  })
}

/** Formats a value for an error message: quoted, cut at 40 characters, control characters escaped. */
export function shown(given: string): string {
  const characters = [...given]
  const cut = characters.length > SHOWN_CHARACTERS_MAX
  const escaped = characters
    .slice(0, SHOWN_CHARACTERS_MAX)
    .map((character) =>
      /[\p{C}\u2028\u2029]/u.test(character) ? `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}` : character
    )
  const rest = cut ? ` (the first ${SHOWN_CHARACTERS_MAX} of ${characters.length} characters)` : ''
  return `"${escaped.join('')}"${rest}`
}

/**
 * Parses path parameters and query with an endpoint's schema. Refuses the first fault in the schema's order with one
 * sentence: the parameter, the allowed values and the value.
 */
export function parseInput<Input>(schema: z.ZodType<Input>, given: Readonly<Record<string, unknown>>): Input {
  const parsed = schema.safeParse(schema instanceof z.ZodObject && 'tz' in schema.shape ? zoned(given) : given)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw new Refusal('request_invalid', [`${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`.trim()])
}

/** The text of a parameter with the zone of the request's days. */
class Zoned {
  constructor(
    readonly text: string,
    readonly tz: string | undefined
  ) {}
}

function zoned(given: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const tz = zoneNamed(String(given.tz))
  const pairs = Object.entries(given)
  return Object.fromEntries(pairs.map(([name, raw]) => [name, typeof raw === 'string' ? new Zoned(raw, tz) : raw]))
}

function parameter<Value>(
  allowed: string,
  jsonSchema: Record<string, unknown>,
  read: (text: string, tz: string | undefined) => Value | undefined
) {
  const schema = z.unknown().transform((given, context): Value => {
    const { text: raw, tz } = given instanceof Zoned ? given : { text: given, tz: undefined }
    const value = typeof raw === 'string' && raw !== '' ? read(raw, tz) : undefined
    if (value !== undefined) return value
    context.addIssue({ code: 'custom', message: `must be ${allowed}; ${whatCame(raw)}` })
    return z.NEVER
  })
  return schema.meta(jsonSchema)
}

function whatCame(raw: unknown): string {
  if (raw === undefined) return 'it is missing'
  if (Array.isArray(raw)) return `it is given ${raw.length} times`
  if (raw === '') return 'it is empty'
  const isPlusLost = typeof raw === 'string' && raw.includes(' ') && ISO_INSTANT.test(raw.replace(' ', '+'))
  return `got ${shown(String(raw))}${isPlusLost ? '; the blank was a +, which an address writes as %2B' : ''}`
}

const isDay = (given: string): boolean => ISO_DAY.test(given) && millisecondsOfIso(`${given}T00:00:00Z`) !== undefined

function millisecondsOfIso(given: string): number | undefined {
  const match = ISO_INSTANT.exec(given)
  if (match === null) return undefined
  const [, day, minute, second = '00', fraction = '', sign = '+', hours = '00', minutes = '00'] = match
  const local = `${day}T${minute}:${second}.${fraction.slice(0, 3).padEnd(3, '0')}Z`
  const localMs = Date.parse(local)
  // Date.parse accepts 30 February as 2 March and 24:00 as the next day, so the instant is formatted again and
  // compared.
  if (Number.isNaN(localMs) || new Date(localMs).toISOString() !== local) return undefined
  if (Number(hours) > 23 || Number(minutes) > 59) return undefined
  const offset = (Number(hours) * 60 + Number(minutes)) * 60_000
  const ms = sign === '-' ? localMs + offset : localMs - offset
  return isStorableMs(ms) ? ms : undefined
}
