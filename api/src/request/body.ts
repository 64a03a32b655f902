import { isVisible, Refusal } from '@gamenet/schemas'
import { z } from 'zod'
import { isPlainText, PLAIN_TEXT_PATTERN, shown } from './parameters.js'

/*
 * Fields of a JSON body are not coerced. Errors use the wording of parameters: `<path> must be <allowed>; got <value>`.
 * Chain `.optional()` or `.default(…)`.
 */

/** Returns the body as an object of fields. Refuses all other JSON. */
export function readBody(body: unknown): Readonly<Record<string, unknown>> {
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) return body as Record<string, unknown>
  throw new Refusal('request_invalid', [`the body must be a JSON object; ${whatCame(body)}`])
}

/** An integer, both bounds included. */
export function bodyInteger({ min, max }: { min: number; max: number }) {
  const allowed = `an integer from ${min} to ${max}`
  return bodyField(allowed, { type: 'integer', minimum: min, maximum: max }, (raw) =>
    typeof raw === 'number' && Number.isInteger(raw) && raw >= min && raw <= max ? raw : undefined
  )
}

/** 1 to `max` characters, no control characters. */
export function bodyText({ max }: { max: number }) {
  const allowed = `1 to ${max} characters without control characters`
  const described = { type: 'string', minLength: 1, maxLength: max, pattern: PLAIN_TEXT_PATTERN }
  return bodyField(allowed, described, (raw) => (typeof raw === 'string' && isPlainText(raw, max) ? raw : undefined))
}

/**
 * An array of `min` to `max` objects; `what` is their plural. Their unknown fields are ignored, unless they are strict.
 */
export function bodyObjects<Shape extends z.ZodRawShape>(
  what: string,
  { min, max, isStrict = false }: { min: number; max: number; isStrict?: boolean },
  shape: Shape
) {
  const error = ({ input }: { input?: unknown }) => `must be an object; ${whatCame(input)}`
  const one = isStrict ? strictFields(shape, error) : z.object(shape, { error })
  const objects = z.array(one).min(min).max(max)
  const { $schema: _, ...described } = z.toJSONSchema(objects, { io: 'input', unrepresentable: 'any' })
  const list = bodyField(`an array of ${min} to ${max} ${what}`, described, (raw) =>
    Array.isArray(raw) && raw.length >= min && raw.length <= max ? (raw as unknown[]) : undefined
  )
  return list.pipe(objects)
}

/**
 * A field that `read` parses; undefined means invalid. `allowed` describes valid values for readers, `jsonSchema` for
 * programs.
 */
export function bodyField<Value>(
  allowed: string,
  jsonSchema: Record<string, unknown>,
  read: (raw: unknown) => Value | undefined
) {
  const schema = z.unknown().transform((raw, context): Value => {
    const value = read(raw)
    if (value !== undefined) return value
    context.addIssue({ code: 'custom', message: `must be ${allowed}; ${whatCame(raw)}` })
    return z.NEVER
  })
  return schema.meta(jsonSchema)
}

/** An object with exactly these fields. */
export function strictFields<Shape extends z.ZodRawShape>(
  shape: Shape,
  error: (issue: { input?: unknown }) => string | undefined = () => undefined
) {
  const known = Object.keys(shape).join(', ')
  return z.strictObject(shape, {
    error: (issue) =>
      issue.code === 'unrecognized_keys'
        ? `${(issue.keys as string[]).map(shown).join(', ')} is not a known field; expected ${known}`
        : error(issue)
  })
}

/**
 * Unicode's bidirectional controls (UAX 9): they change the direction of the following text, also on the page around
 * it.
 */
const BIDI = '\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069'
/**
 * Text of several lines, as a pattern of JSON Schema: no control characters except line breaks and tabs, no
 * bidirectional controls.
 */
export const PROSE_PATTERN = `^[^\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f${BIDI}]*$`
const PROSE = new RegExp(PROSE_PATTERN, 'u')

/** Returns whether a text of several lines is valid: at most `max` characters (code points), no unpaired surrogates. */
export function isProse(given: string, max: number): boolean {
  return PROSE.test(given) && !/\p{Cs}/u.test(given) && given.length <= 2 * max && [...given].length <= max
}

const LINE = `[^\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029${BIDI}]*`
/** What `trim` removes; `\s` has other characters in other languages. */
const SPACES = '[\\t-\\r \\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000\\ufeff]*'
/** A name on one line, as a pattern of JSON Schema, which cannot require a visible character. */
export const NAME_PATTERN = `^${LINE}$`
/** A name that is trimmed. */
export const TRIMMED_NAME_PATTERN = `^${SPACES}${LINE}${SPACES}$`
const NAME = new RegExp(NAME_PATTERN, 'u')

/**
 * Returns whether a name on one line is valid: 1 to `max` characters (code points), at least one visible, no control
 * characters or bidirectional controls.
 */
export function isName(given: string, max: number): boolean {
  return (
    isVisible(given) &&
    NAME.test(given) &&
    !/\p{Cs}/u.test(given) &&
    given.length <= 2 * max &&
    [...given].length <= max
  )
}

function whatCame(raw: unknown): string {
  if (raw === undefined) return 'it is missing'
  if (Array.isArray(raw)) return `got an array of ${raw.length}`
  if (typeof raw === 'object' && raw !== null) return 'got an object'
  if (typeof raw === 'string') return raw === '' ? 'it is empty' : `got the text ${shown(raw)}`
  return `got ${String(raw)}`
}
