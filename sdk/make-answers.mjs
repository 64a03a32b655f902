/*
 * Writes `src/answers.ts`, the types of all answers and the codes of all refusals, from docs/openapi.json. It runs
 * before each build, without dependencies. openapi-typescript needs a TypeScript before 7, and
 * json-schema-to-typescript writes two lines of its own above each type and brings 25 MB.
 */
import { readFileSync, writeFileSync } from 'node:fs'

const TYPES = { string: 'string', integer: 'number', number: 'number', boolean: 'boolean', null: 'null' }
const target = new URL('src/answers.ts', import.meta.url)
const { schemas } = JSON.parse(readFileSync(new URL('../docs/openapi.json', import.meta.url), 'utf8')).components
const text = answerTypes(schemas)
// An unchanged file keeps its time: the compiler then has nothing to do.
if (text !== written()) writeFileSync(target, text)

function written() {
  try {
    return readFileSync(target, 'utf8')
  } catch {
    return undefined
  }
}

function answerTypes({ Problem, ...named }) {
  const answers = Object.entries(named).filter(([name]) => !/Body|^Error$/.test(name))
  const codes = Problem.properties.code.examples.map((code) => `\n  | '${code}'`)
  return [
    '/* Made from docs/openapi.json by make-answers.mjs at each build. */',
    `/** The codes of refusals, explained at /docs/errors of a service. */\nexport type ErrorCode =${codes.join('')}`,
    ...answers.map(([name, schema]) => `${comment(schema, '')}export type ${name} = ${typeOf(schema)}`)
  ]
    .join('\n\n')
    .concat('\n')
}

function typeOf(schema) {
  const { $ref, const: constant, enum: words, type, items, properties, additionalProperties } = schema
  const alternatives = schema.anyOf ?? schema.oneOf
  if ($ref !== undefined) return $ref.split('/').at(-1)
  if (constant !== undefined) return JSON.stringify(constant)
  if (words !== undefined) return words.map((word) => JSON.stringify(word)).join(' | ')
  if (alternatives !== undefined) return alternatives.map(typeOf).join(' | ')
  if (properties !== undefined) return objectType(schema)
  if (typeof additionalProperties === 'object') return `Record<string, ${typeOf(additionalProperties)}>`
  if (type === 'array') return `(${typeOf(items)})[]`
  const types = [type].flat().map((each) => TYPES[each])
  if (!types.includes(undefined)) return types.join(' | ')
  throw new Error(`No type is written for ${JSON.stringify(schema)}; add it in sdk/make-answers.mjs.`)
}

function objectType({ required = [], properties }) {
  const fields = Object.entries(properties).map(
    ([name, property]) =>
      `${comment(property, '  ')}  ${name}${required.includes(name) ? '' : '?'}: ${typeOf(property)}\n`
  )
  return `{\n${fields.join('')}}`
}

function comment({ description }, indent) {
  return description === undefined ? '' : `${indent}/** ${description} */\n`
}
