import { readFileSync } from 'node:fs'
import type { Components } from '../answers/components.js'
import { DATASETS_PATH, EXCLUDED } from '../datasets/paths.js'

/** The part of a JSON Schema that examples and pages read. */
export type Schema = {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly description?: string
  readonly default?: unknown
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly minimum?: number
  readonly maximum?: number
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: Schema | boolean
}

/**
 * Values of one imaginary evening, each with the fields that have it: `field`, `Schema.field`, or the schema of plain
 * items; in camel case, with a `2` behind it in the second item of a list. Undefined is left out.
 */
const VALUES: readonly (readonly [unknown, string])[] = [
  ...JSON.parse(readFileSync(new URL('../../../src/open-api/example-values.json', import.meta.url), 'utf8')),
  [undefined, 'revealedName revealedDescription LeaderboardRow.details'],
  [undefined, 'Leaderboard.asOf Leaderboard.knownAt LeaderboardRecords.knownAt'],
  [`${DATASETS_PATH}/title-count/2026-02.parquet`, 'url'],
  [EXCLUDED, 'excluded']
]
const VALUE_OF = new Map(VALUES.flatMap(([value, names]) => names.split(' ').map((name) => [name, value] as const)))
const BY_FORMAT: Readonly<Record<string, string>> = { 'date-time': '2026-03-14T20:00:00.000Z', date: '2026-03-14' }
/** Of every other number, unless its schema forbids it. */
const NUMBER = 12
/** Lists with two items of each kind. */
const PAIRS = ['players', 'entries']

/** Returns an example of a schema's value: lists have an item of each kind, and every field is there. */
export function exampleOf(schema: Schema, components: Components): unknown {
  return exampleIn(schema, { components, owner: '', field: '', nth: '' })
}

/** `owner` is the schema around the field; the field of an item is that of its list. */
type Place = {
  readonly components: Components
  readonly owner: string
  readonly field: string
  readonly nth: '' | '2'
}

function exampleIn(shape: Schema, place: Place): unknown {
  const { components, owner, field, nth } = place
  const names = [`${owner}.${field}`, field === '' ? owner : field].map(camel)
  const key = [...names.map((name) => `${name}${nth}`), ...names].find((name) => VALUE_OF.has(name))
  const value = VALUE_OF.get(key ?? '')
  if (key !== undefined && (value === undefined || typeof value === 'object')) return value
  const { $ref, properties, additionalProperties, items, anyOf, oneOf = anyOf } = shape
  if ($ref !== undefined) {
    const name = nameOf($ref)
    return exampleIn(components.named(name), { ...place, owner: name, field: '' })
  }
  if (properties !== undefined) {
    const fields = Object.entries(properties)
    return Object.fromEntries(fields.map(([name, each]) => [name, exampleIn(each, { ...place, field: name })]))
  }
  if (typeof additionalProperties === 'object') return { 'Halo 3': exampleIn(additionalProperties, place) }
  if (items !== undefined) {
    const item = items.$ref === undefined ? items : (components.named(nameOf(items.$ref)) as Schema)
    const kinds = item.oneOf ?? item.anyOf ?? [items]
    const each = PAIRS.includes(field) ? (['', '2'] as const) : ([''] as const)
    return each.flatMap((nth) => kinds.map((kind) => exampleIn(kind, { ...place, nth })))
  }
  return oneOf?.[0] === undefined ? scalar(shape, value) : exampleIn(oneOf[0], place)
}

function scalar({ type, format = '', minimum = 0, maximum = NUMBER, ...shape }: Schema, value: unknown): unknown {
  if (shape.const !== undefined) return shape.const
  if (shape.enum !== undefined) return shape.enum.includes(value) ? value : shape.enum[0]
  if (type?.includes('string')) return String(value ?? BY_FORMAT[format] ?? 'text')
  if (type?.includes('boolean')) return typeof value === 'boolean' ? value : true
  if (!/integer|number/.test(String(type))) return null
  return typeof value === 'number' ? value : Math.max(minimum, Math.min(maximum, NUMBER))
}

const nameOf = (reference: string): string => reference.split('/').at(-1) ?? ''

const camel = (name: string): string => name.replace(/_([a-z0-9])/g, (_, first: string) => first.toUpperCase())
