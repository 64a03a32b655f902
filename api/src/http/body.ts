import { Refusal } from '@gamenet/schemas'
import { z } from 'zod'
import { isPlainText, shown } from './parameters.js'

/*
 * A field of a JSON body is taken as it is: nothing is coerced, and what it must be is said in the words of the
 * parameters: `<path> must be <allowed>; got <what came>`. Chain `.optional()` or `.default(…)`.
 */

/** The body as an object of fields. Refuses every other JSON. */
export function readBody(body: unknown): Readonly<Record<string, unknown>> {
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) return body as Record<string, unknown>
  throw new Refusal('request_invalid', [`the body must be a JSON object; ${whatCame(body)}`])
}

/** An integer, both bounds included. */
export function bodyInteger({ min, max }: { min: number; max: number }) {
  const allowed = `an integer from ${min} to ${max}`
  return field(allowed, { type: 'integer', minimum: min, maximum: max }, (raw) =>
    typeof raw === 'number' && Number.isInteger(raw) && raw >= min && raw <= max ? raw : undefined
  )
}

/** 1 to `max` characters, no control characters. */
export function bodyText({ max }: { max: number }) {
  const allowed = `1 to ${max} characters without control characters`
  return field(allowed, { type: 'string', minLength: 1, maxLength: max }, (raw) =>
    typeof raw === 'string' && isPlainText(raw, max) ? raw : undefined
  )
}

/** A title's id, 8 hexadecimal digits of any case; lower case comes out. */
export function bodyTitleId() {
  return field('8 hexadecimal digits', { type: 'string', pattern: '^[0-9a-fA-F]{8}$' }, (raw) =>
    typeof raw === 'string' && /^[0-9a-fA-F]{8}$/.test(raw) ? raw.toLowerCase() : undefined
  )
}

/** An array of `min` to `max` objects; `what` names them in the plural. Unknown fields of theirs are ignored. */
export function bodyObjects<Shape extends z.ZodRawShape>(
  what: string,
  { min, max }: { min: number; max: number },
  shape: Shape
) {
  const objects = z
    .array(z.object(shape, { error: ({ input }) => `must be an object; ${whatCame(input)}` }))
    .min(min)
    .max(max)
  const { $schema: _, ...described } = z.toJSONSchema(objects, { io: 'input', unrepresentable: 'any' })
  const list = field(`an array of ${min} to ${max} ${what}`, described, (raw) =>
    Array.isArray(raw) && raw.length >= min && raw.length <= max ? (raw as unknown[]) : undefined
  )
  return list.pipe(objects)
}

function field<Value>(allowed: string, jsonSchema: Record<string, unknown>, read: (raw: unknown) => Value | undefined) {
  const schema = z.unknown().transform((raw, context): Value => {
    const value = read(raw)
    if (value !== undefined) return value
    context.addIssue({ code: 'custom', message: `must be ${allowed}; ${whatCame(raw)}` })
    return z.NEVER
  })
  return schema.meta(jsonSchema)
}

function whatCame(raw: unknown): string {
  if (raw === undefined) return 'it is missing'
  if (Array.isArray(raw)) return `got an array of ${raw.length}`
  if (typeof raw === 'object' && raw !== null) return 'got an object'
  if (typeof raw === 'string') return raw === '' ? 'it is empty' : `got the text ${shown(raw)}`
  return `got ${String(raw)}`
}
