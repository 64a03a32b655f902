import type { z } from 'zod'
import type { Fields } from './importable.js'

/** The value of a row by a schema, or the fault. */
export type Judged<Value> = { readonly value: Value } | { readonly fault: string }

/** Validates a row by a schema. The first fault is reported with its field and value. */
export function judged<Value>(schema: z.ZodType<Value>, fields: Fields): Judged<Value> {
  const parsed = schema.safeParse(fields)
  if (parsed.success) return { value: parsed.data }
  const [issue] = parsed.error.issues
  const [field] = issue?.path ?? []
  const place = issue?.path.map(String).join('.') || 'the row'
  if (field !== undefined && fields[String(field)] === undefined) return { fault: `${String(field)} is missing` }
  const found = (issue?.path ?? []).reduce<unknown>(
    (value, key) => (typeof value === 'object' && value !== null ? (value as Fields)[String(key)] : undefined),
    fields
  )
  return { fault: `${place} is ${shown(found)}: ${issue?.message ?? 'it does not match the schema'}` }
}

/** Formats a value for a sentence. */
export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'missing'
  return text.length > 80 ? `${text.slice(0, 80)}…` : text
}
