/*
 * Writes `src/answers.ts`, the types of all answers and the codes of all refusals, and `src/operations.ts`, a method
 * for each operation, from docs/openapi.json. It runs before each build, without dependencies. openapi-typescript needs
 * a TypeScript before 7, and json-schema-to-typescript writes two lines of its own above each type and brings 25 MB.
 */
import { readFileSync, writeFileSync } from 'node:fs'

const TYPES = { string: 'string', integer: 'number', number: 'number', boolean: 'boolean', null: 'null' }
/** Their methods are written by hand: a stream reconnects. */
const BY_HAND = ['stream']
const { paths, components } = JSON.parse(readFileSync(new URL('../docs/openapi.json', import.meta.url), 'utf8'))
write('answers', answerTypes(components.schemas))
write('operations', operationsText())

/** An unchanged file keeps its time: the compiler then has nothing to do. */
function write(name, text) {
  const target = new URL(`src/${name}.ts`, import.meta.url)
  if (text !== written(target)) writeFileSync(target, text)
}

function written(target) {
  try {
    return readFileSync(target, 'utf8')
  } catch {
    return undefined
  }
}

function answerTypes({ Problem, ...named }) {
  const answers = Object.entries(named).filter(([name]) => !/Body$|^Error$/.test(name))
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

function operationsText() {
  const methods = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations)
      .filter(([, { operationId }]) => !BY_HAND.includes(operationId))
      .map(([method, operation]) => methodText(path.replace(/\{(\w+)\}/g, ':$1'), method.toUpperCase(), operation))
  )
  const text = methods.join(',\n\n')
  const answers = Object.keys(components.schemas).filter((name) => new RegExp(`\\b${name}\\b`).test(text))
  return `/* Made from docs/openapi.json by make-answers.mjs at each build. */
import type { ${answers.join(', ')} } from './answers.js'
import type { CallOptions, Requester } from './request.js'

/** One method for each operation of the service that answers JSON, by its \`operationId\`. */
export function operations({ get, act }: Requester) {
  return {
${text}
  }
}
`
}

function methodText(path, method, { operationId, summary, description, deprecated, parameters = [], ...operation }) {
  const answer = typeOf(operation.responses[200].content['application/json'].schema)
  const body = operation.requestBody?.content['application/json'].schema
  const fields = [
    ...parameters.filter(({ name }) => name !== 'format').map(fieldOfParameter),
    ...(body === undefined ? [] : fieldsOfBody(components.schemas[body.$ref.split('/').at(-1)]))
  ]
  const isOptional = fields.every((field) => field.isOptional)
  const type = `{\n${fields.map((field) => field.text).join('')}      }${isOptional ? ' = {}' : ''}`
  const about = `${summary}. ${description.replaceAll('\n', ' ')}${deprecated ? '\n     * @deprecated' : ''}`
  const named = `    /**\n     * ${about}\n     */\n    ${operationId}:`
  if (fields.length === 0) return `${named} (call?: CallOptions) => get<${answer}>('${path}', {}, call)`
  if (body === undefined)
    return `${named} (parameters: ${type}, call?: CallOptions) => get<${answer}>('${path}', parameters, call)`
  const names = parameters.map(({ name }) => name)
  return (
    `${named} ({ ${[...names, '...body'].join(', ')} }: ${type}, call?: CallOptions) =>\n` +
    `      act<${answer}>('${method}', '${path}', { ${names.join(', ')} }, body, call)`
  )
}

function fieldOfParameter({ name, required, description, example, schema }) {
  const { minimum, maximum, default: fallback } = schema
  const limits = [
    ...(maximum === undefined ? [] : [`${minimum} to ${maximum}`]),
    ...(fallback === undefined ? [] : [`default ${fallback}`])
  ]
  // The client encodes names itself.
  const about = `${description.replace(', percent-encoded', '')}${limits.length === 0 ? '' : ` (${limits.join(', ')})`}`
  return fieldOf(name, parameterType(schema, example), required, about)
}

function parameterType(schema, example) {
  if (schema.enum?.join() === 'true,false') return 'boolean'
  const isInstant = schema.pattern !== undefined && /^\d{4}-\d\d-\d\dT/.test(example)
  return isInstant ? 'Date | string' : typeOf(schema)
}

/** Returns the fields of a body; the session key of a call is an option. */
function fieldsOfBody({ properties, required = [] }) {
  return Object.entries(properties)
    .filter(([name]) => name !== 'sessionKey')
    .map(([name, schema]) => {
      const type = typeOf(schema)
      return fieldOf(name, type.endsWith('[]') ? `readonly ${type}` : type, required.includes(name), schema.description)
    })
}

function fieldOf(name, type, isRequired, description) {
  const field = isRequired ? `${name}: ${type}` : `${name}?: ${type} | undefined`
  return { isOptional: !isRequired, text: `${comment({ description }, '        ')}        readonly ${field}\n` }
}
