import type { Guide } from '../open-api/guides.js'
import { code, escaped, inline, paragraphs } from './html.js'

/** The parts of an OpenAPI document that the pages show. */
export type Described = {
  readonly info: { readonly title: string; readonly version: string; readonly description: string }
  readonly servers: readonly { readonly url: string }[]
  readonly tags: readonly { readonly name: string; readonly description: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

type Operation = {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly summary: string
  readonly description?: string
  readonly deprecated?: boolean
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: Readonly<Record<string, Content>> }
  readonly security?: readonly object[]
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, Content>> }>>
}

type Parameter = {
  readonly name: string
  readonly in: string
  readonly required: boolean
  readonly description?: string
  readonly example?: unknown
  readonly schema: Schema
}

type Content = { readonly schema?: Schema; readonly example?: unknown }

type Schema = {
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

/** One operation with its place in the document. */
type Placed = Operation & { readonly path: string; readonly method: string }

/** An example in JSON is cut after this many characters. */
const EXAMPLE_CHARACTERS_MAX = 1500

/** Returns the page at /docs: the guides, every operation with code samples, and every schema. It has no script. */
export function referencePage(document: Described, guides: readonly Guide[]): string {
  const tags = taggedOperations(document)
  const base = document.servers[0]?.url ?? ''
  const links = [
    ...guides.map(({ id, title }) => link(`guide-${id}`, title)),
    ...tags.map(({ name }) => link(`tag-${name}`, name)),
    link('schemas', 'Schemas')
  ]
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${document.info.title} API</title>
<link rel="icon" href="/dashboard/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/docs/reference.css">
</head>
<body>
<nav aria-label="Contents"><a href="#top">${document.info.title}</a><ul>${links.join('')}</ul></nav>
<main id="top">
<h1>${document.info.title} API <small>${document.info.version}</small></h1>
<p>Machine-readable: <a href="/openapi.json">openapi.json</a>, <a href="/openapi.yaml">openapi.yaml</a>,
<a href="/llms.txt">llms.txt</a>.</p>
${guides.map(({ id, title, text }) => `<section id="guide-${id}"><h2>${title}</h2>${paragraphs(text)}</section>`).join('\n')}
${tags.map((tag) => tagSection(tag, base)).join('\n')}
<section id="schemas"><h2>Schemas</h2>
${Object.entries(document.components.schemas).map(schemaSection).join('\n')}
</section>
</main>
</body>
</html>
`
}

/** Returns the same for language models, in the form of llmstxt.org: a list of contents with links. */
export function llmsText(document: Described, guides: readonly Guide[]): string {
  const base = document.servers[0]?.url ?? ''
  return [
    `# ${document.info.title}`,
    `> ${document.info.description.split('\n')[0]}`,
    ...guides.map(({ title, text }) => `## ${title}\n\n${text.trim()}`),
    ...taggedOperations(document).map(({ name, operations }) =>
      [
        `## ${name}\n`,
        ...operations.map(
          ({ method, path, summary, operationId }) => `- [${method} ${path}](${base}/docs#${operationId}): ${summary}`
        )
      ].join('\n')
    ),
    `## Machine-readable\n\n- [OpenAPI](${base}/openapi.json): all parameters, answers and refusals\n`
  ].join('\n\n')
}

function taggedOperations(document: Described) {
  const placed: readonly Placed[] = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, path, method: method.toUpperCase() }))
  )
  return document.tags.map((tag) => ({ ...tag, operations: placed.filter(({ tags }) => tags[0] === tag.name) }))
}

function tagSection({ name, description, operations }: ReturnType<typeof taggedOperations>[number], base: string) {
  return `<section id="tag-${escaped(name)}"><h2>${escaped(name)}</h2>
<p>${inline(description)}</p>
${operations.map((operation) => operationSection(operation, base)).join('\n')}
</section>`
}

function operationSection(operation: Placed, base: string): string {
  const { operationId, method, path, summary, description, deprecated, parameters = [], security = [] } = operation
  const marks = [
    ...(deprecated ? ['Deprecated.'] : []),
    ...(security.some((scheme) => Object.keys(scheme).length > 0)
      ? ['Takes a session: see <a href="#guide-sessions">Sessions</a>.']
      : [])
  ]
  const body = Object.values(operation.requestBody?.content ?? {})[0]
  return `<article id="${operationId}"><h3>${inline(summary)}</h3>
<p class="path"><b>${method}</b> <code>${escaped(path)}</code></p>
${[...marks, ...(description === undefined ? [] : [inline(description)])].map((text) => `<p>${text}</p>`).join('')}
${parameters.length === 0 ? '' : parameterTable(parameters)}
${body?.schema === undefined ? '' : `<p>Body: ${typeText(body.schema)}</p>`}
${answers(operation)}
<details><summary>Code samples</summary>
${samples(operation, base)
  .map(({ language, text }) => `<h4>${language}</h4>${code(text, `${operationId} in ${language}`)}`)
  .join('')}
</details></article>`
}

function parameterTable(parameters: readonly Parameter[]): string {
  const rows = parameters.map(
    ({ name, in: place, required, description = '', example, schema }) =>
      `<tr><th scope="row"><code>${escaped(name)}</code></th><td>${place}${required ? ', required' : ''}</td>` +
      `<td>${typeText(schema)}</td><td>${inline(description)}</td>` +
      `<td>${example === undefined ? '' : `<code>${escaped(String(example))}</code>`}</td></tr>`
  )
  return table(['Parameter', 'In', 'Type', 'Meaning', 'Example'], rows)
}

function answers({ responses, operationId }: Placed): string {
  const refused = Object.keys(responses).filter((status) => Number(status) >= 400)
  const content = responses['200']?.content ?? {}
  const json = content['application/json']
  const others = Object.keys(content).filter((type) => type !== 'application/json')
  const example = json?.example === undefined ? '' : cut(JSON.stringify(json.example, null, 2))
  return `<p>Answer: ${json?.schema === undefined ? '' : typeText(json.schema)}${others.length === 0 ? '' : ` ${json === undefined ? '' : 'or '}<code>${others.join('</code> <code>')}</code>`}.
Refusals: ${refused.join(', ')}.</p>
${example === '' ? '' : `<details><summary>Example</summary>${code(example, `Answer of ${operationId}`)}</details>`}`
}

function schemaSection([name, schema]: readonly [string, Schema]): string {
  const { description, properties, required = [] } = schema
  const rows = Object.entries(properties ?? {}).map(
    ([property, type]) =>
      `<tr><th scope="row"><code>${escaped(property)}</code>${required.includes(property) ? '' : '?'}</th>` +
      `<td>${typeText(type)}</td><td>${inline(type.description ?? '')}</td></tr>`
  )
  return `<article id="schema-${name}"><h3>${name}</h3>
${description === undefined ? '' : `<p>${inline(description)}</p>`}
${rows.length > 0 ? table(['Field', 'Type', 'Meaning'], rows) : `<p>${typeText(schema)}</p>`}</article>`
}

/** Returns a type as HTML: its name in JSON Schema, or a link to the schema. */
function typeText(schema: Schema): string {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.split('/').at(-1) ?? ''
    return `<a href="#schema-${name}">${name}</a>`
  }
  if (schema.const !== undefined) return `<code>${escaped(String(schema.const))}</code>`
  if (schema.enum !== undefined) return schema.enum.map((each) => `<code>${escaped(String(each))}</code>`).join(' | ')
  const choices = schema.anyOf ?? schema.oneOf
  if (choices !== undefined) return choices.map(typeText).join(' | ')
  if (schema.items !== undefined) return `array of ${typeText(schema.items)}`
  if (typeof schema.additionalProperties === 'object') return `map of ${typeText(schema.additionalProperties)}`
  const types = [schema.type ?? 'any'].flat().join(' | ')
  return escaped([types, format(schema), limits(schema)].filter((part) => part !== '').join(' '))
}

function format({ format: name }: Schema): string {
  return name === undefined || /^u?int64$/.test(name) ? '' : `(${name})`
}

function limits({ minimum, maximum, default: usual }: Schema): string {
  const lowest = minimum !== undefined && Number.isSafeInteger(minimum - 1) ? `from ${minimum}` : ''
  const highest = maximum !== undefined && Number.isSafeInteger(maximum + 1) ? `to ${maximum}` : ''
  const otherwise = usual === undefined ? '' : `, default ${JSON.stringify(usual)}`
  return `${[lowest, highest].filter((part) => part !== '').join(' ')}${otherwise}`
}

function samples(operation: Placed, base: string): readonly { readonly language: string; readonly text: string }[] {
  const { method, operationId, parameters = [], security = [] } = operation
  const used = parameters.filter(({ required }) => required)
  const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String(used.find((each) => each.name === name)?.example ?? ''))
  )
  const query = new URLSearchParams(
    used
      .filter(({ in: place }) => place === 'query')
      .map(({ name, example }): [string, string] => [name, String(example)])
  ).toString()
  const url = `${base}${path}${query === '' ? '' : `?${query}`}`
  const body = Object.values(operation.requestBody?.content ?? {})[0]?.example
  const inBody = body === undefined ? {} : (body as Readonly<Record<string, unknown>>)
  const input = { ...Object.fromEntries(used.map(({ name, example }) => [name, example])), ...inBody }
  const key = method !== 'GET' && security.length > 0
  return [
    { language: 'curl', text: curl({ method, url, body, key }) },
    ...(isInSdk(operation) ? [{ language: 'TypeScript', text: typescript({ base, operationId, input, key }) }] : []),
    { language: 'Python', text: python({ method, url, body, key }) }
  ]
}

type Sample = { readonly method: string; readonly url: string; readonly body: unknown; readonly key: boolean }

function curl({ method, url, body, key }: Sample): string {
  const parts = [
    method === 'GET' ? '' : `-X ${method}`,
    key ? "-H 'X-Session-Key: KEY'" : '',
    body === undefined ? '' : `-H 'Content-Type: application/json' -d ${shell(JSON.stringify(body))}`
  ].filter((part) => part !== '')
  return ['curl', ...parts, shell(url)].join(' ')
}

/** Returns whether the SDK has a method with the name of the operation; the stream and lists of files have other names. */
function isInSdk({ path }: Placed): boolean {
  return path.startsWith('/api/') && !/^\/api\/(stream|data)$/.test(path)
}

function typescript({
  base,
  operationId,
  input,
  key
}: {
  readonly base: string
  readonly operationId: string
  readonly input: Readonly<Record<string, unknown>>
  readonly key: boolean
}): string {
  const given = Object.keys(input).length === 0 ? '' : JSON.stringify(input)
  const session = key ? `, { sessionKey: 'KEY' }` : ''
  return `import { gamenetClient } from '@gamenet/sdk'

const gamenet = gamenetClient({ baseUrl: '${base}' })
console.log(await gamenet.${operationId}(${given}${session}))`
}

function python({ method, url, body, key }: Sample): string {
  const further = [
    key ? "headers={'X-Session-Key': 'KEY'}" : '',
    body === undefined ? '' : `json=${pythonText(body)}`
  ].filter((part) => part !== '')
  return `import requests

answer = requests.${method.toLowerCase()}(${[pythonText(url), ...further].join(', ')})
answer.raise_for_status()
print(answer.json())`
}

/** Returns a value as a Python literal: JSON, except for three words. */
function pythonText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(pythonText).join(', ')}]`
  if (typeof value === 'object' && value !== null) {
    return `{${Object.entries(value)
      .map(([name, each]) => `${JSON.stringify(name)}: ${pythonText(each)}`)
      .join(', ')}}`
  }
  if (value === null) return 'None'
  return typeof value === 'boolean' ? (value ? 'True' : 'False') : JSON.stringify(value)
}

function shell(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

function cut(text: string): string {
  return text.length <= EXAMPLE_CHARACTERS_MAX ? text : `${text.slice(0, EXAMPLE_CHARACTERS_MAX)}\n…`
}

function table(names: readonly string[], rows: readonly string[]): string {
  const head = names.map((name) => `<th scope="col">${name}</th>`).join('')
  return `<div class="table" tabindex="0" role="group" aria-label="${names[0]}s"><table><thead><tr>${head}</tr></thead><tbody>${rows.join('')}</tbody></table></div>`
}

function link(id: string, text: string): string {
  return `<li><a href="#${escaped(id)}">${escaped(text)}</a></li>`
}
