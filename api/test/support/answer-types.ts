import { refusals } from '@gamenet/schemas'

type Schema = {
  readonly $ref?: string
  readonly description?: string
  readonly type?: string | readonly string[]
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema | boolean
  readonly required?: readonly string[]
}

/** The text of `sdk/src/answers.ts`: a type for each named schema of the answers, and the codes of all refusals. */
export function answerTypes(schemas: Readonly<Record<string, Schema>>): string {
  const answers = Object.entries(schemas).filter(([name]) => !/Body|^Error$|^Problem$/.test(name))
  const codes = Object.keys(refusals).map((code) => `\n  | '${code}'`)
  return [
    '/* Made from docs/openapi.json and the table of refusals by api/test/docs.test.ts, which says how to refresh it. */',
    `/** The codes of refusals, explained at /docs/errors of a service. */\nexport type ErrorCode =${codes.join('')}`,
    ...answers.map(([name, schema]) => `${comment(schema, '')}export type ${name} =${definitionOf(name, schema)}`)
  ]
    .join('\n\n')
    .concat('\n')
}

/** A union that is too long for a line has a line for each alternative, as the formatter requires. */
function definitionOf(name: string, schema: Schema): string {
  const alternatives = schema.anyOf ?? schema.oneOf
  const text = ` ${typeOf(schema)}`
  if (alternatives === undefined || `export type ${name} =${text}`.length <= LINE_MAX) return text
  return alternatives.map((each) => `\n  | ${typeOf(each)}`).join('')
}

const LINE_MAX = 120

function typeOf(schema: Schema): string {
  const { $ref, const: constant, enum: words, anyOf, oneOf, type, items, properties, additionalProperties } = schema
  if ($ref !== undefined) return $ref.split('/').at(-1) ?? ''
  if (constant !== undefined) return literal(constant)
  if (words !== undefined) return words.map(literal).join(' | ')
  const alternatives = anyOf ?? oneOf
  if (alternatives !== undefined) return alternatives.map(typeOf).join(' | ')
  if (properties !== undefined) return objectType(schema, properties)
  if (typeof additionalProperties === 'object') return `Record<string, ${typeOf(additionalProperties)}>`
  if (type === 'array' && items !== undefined)
    return / \| /.test(typeOf(items)) ? `(${typeOf(items)})[]` : `${typeOf(items)}[]`
  const types = [type].flat().map((each) => TYPES[each as keyof typeof TYPES])
  if (types.every((each) => each !== undefined)) return types.join(' | ')
  throw new Error(`No type is written for ${JSON.stringify(schema)}; add it here.`)
}

const TYPES = { string: 'string', integer: 'number', number: 'number', boolean: 'boolean', null: 'null' } as const

function objectType({ required = [] }: Schema, properties: Readonly<Record<string, Schema>>): string {
  const fields = Object.entries(properties).map(
    ([name, property]) =>
      `${comment(property, '  ')}  ${name}${required.includes(name) ? '' : '?'}: ${typeOf(property)}\n`
  )
  return `{\n${fields.join('')}}`
}

function comment({ description }: Schema, indent: string): string {
  if (description === undefined) return ''
  const line = `${indent}/** ${description} */`
  if (line.length <= LINE_MAX) return `${line}\n`
  const lines = [`${indent} *`]
  for (const word of description.split(' ')) {
    const longer = `${lines.at(-1)} ${word}`
    if (longer.length <= LINE_MAX) lines[lines.length - 1] = longer
    else lines.push(`${indent} * ${word}`)
  }
  return `${indent}/**\n${lines.join('\n')}\n${indent} */\n`
}

function literal(value: unknown): string {
  return typeof value === 'string' ? `'${value}'` : JSON.stringify(value)
}
