import type { Schema } from '../open-api/example.js'
import type { Guide } from './guides.js'
import { code, escaped, inline, paragraphs } from './html.js'
import type { SampleValues } from './sample-values.js'
import { type Operation, type Parameter, type Placed, samplesOf } from './samples.js'

/** The parts of an OpenAPI document that the pages show. */
export type Described = {
  readonly info: { readonly title: string; readonly version: string; readonly description: string }
  readonly servers: readonly { readonly url: string }[]
  readonly tags: readonly { readonly name: string; readonly description: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

/** Puts pages of the reference into the frame of the site. */
export type Frame = {
  readonly headers: Readonly<Record<string, string>>
  documentOf(page: ReferencePage): string
}

/** An example in JSON is cut after this many characters. */
const EXAMPLE_CHARACTERS_MAX = 1500

/** A page of the reference, which the site puts into its frame. */
export type ReferencePage = { readonly title: string; readonly path: string; readonly html: string }

/** Returns the page at /docs: the guides, and every operation, which a script filters while words are typed. */
export function referencePage(document: Described, guides: readonly Guide[]): ReferencePage {
  const title = `${document.info.title} API`
  return {
    title,
    path: '/docs',
    html: `<h1>${title} <small>${document.info.version}</small></h1>
<p>Machine-readable: <a href="/openapi.json">openapi.json</a>, <a href="/openapi.yaml">openapi.yaml</a>,
<a href="/llms.txt">llms.txt</a>. Each page below is also Markdown, with <code>.md</code> behind its address.</p>
<section class="card"><h2>Guides</h2>
<ul>${guides.map(({ id, title }) => link(`guide/${id}`, title)).join('')}</ul></section>
<p><input name="words" class="scripted" placeholder="Filter operations" aria-label="Filter operations"></p>
<div data-filtered="words">
${taggedOperations(document).map(tagSection).join('\n')}
</div>`
  }
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
          ({ method, path, summary, operationId }) => `- [${method} ${path}](${base}/docs/${operationId}): ${summary}`
        )
      ].join('\n')
    ),
    `## Machine-readable\n\n- [OpenAPI](${base}/openapi.json): all parameters, answers and refusals\n`
  ].join('\n\n')
}

/** Returns the page of one operation, or undefined. */
export function operationPage(
  document: Described,
  operationId: string,
  values: SampleValues
): ReferencePage | undefined {
  const operation = operationOf(document, operationId)
  if (operation === undefined) return undefined
  const schemas = schemasOf(document, operation)
  const content = [
    operationSection(operation, document.servers[0]?.url ?? '', values),
    ...(schemas.length === 0 ? [] : ['<h2>Schemas</h2>', ...schemas.map(schemaSection)])
  ].join('\n')
  return below(operation.summary, operationId, content)
}

/** Returns the same as Markdown, for language models. */
export function operationText(document: Described, operationId: string, values: SampleValues): string | undefined {
  const operation = operationOf(document, operationId)
  if (operation === undefined) return undefined
  const { method, path, summary, description = '', parameters = [] } = operation
  const rows = parameters.map(
    ({ name, required, description: text = '' }) => `- \`${name}\`${required ? ' (required)' : ''}: ${text}`
  )
  const samples = samplesOf(operation, document.servers[0]?.url ?? '', values)
  return [
    `# ${summary}\n\n\`${method} ${path}\`\n\n${description}`,
    ...(rows.length === 0 ? [] : [`## Parameters\n\n${rows.join('\n')}`]),
    ...samples.map(({ language, text }) => `## ${language}\n\n\`\`\`\n${text}\n\`\`\``)
  ].join('\n\n')
}

/** Returns the page of one guide. */
export function guidePage({ id, title, text }: Guide): ReferencePage {
  return below(title, `guide/${id}`, `<h1>${title}</h1>${paragraphs(text)}`)
}

/** A page below /docs; links to guides and operations lead to their pages. */
function below(title: string, name: string, content: string): ReferencePage {
  const html = content.replaceAll('href="#guide-', 'href="/docs/guide/').replace(/href="#(?!schema-)/g, 'href="/docs/')
  return { title, path: `/docs/${name}`, html: `<p><a href="/docs">All operations</a> ›</p>\n${html}` }
}

/** The schemas that an operation names, and those that these name. */
function schemasOf({ components: { schemas } }: Described, operation: Placed): (readonly [string, Schema])[] {
  const found = new Set<string>()
  const collect = (value: unknown): void => {
    for (const [, name = ''] of JSON.stringify(value).matchAll(/#\/components\/schemas\/([\w]+)/g)) {
      if (found.has(name)) continue
      found.add(name)
      collect(schemas[name] ?? {})
    }
  }
  collect(operation)
  return [...found].flatMap((name) => (schemas[name] === undefined ? [] : [[name, schemas[name]] as const]))
}

function operationOf(document: Described, operationId: string): Placed | undefined {
  return taggedOperations(document)
    .flatMap(({ operations }) => operations)
    .find((each) => each.operationId === operationId)
}

function taggedOperations(document: Described) {
  const placed: readonly Placed[] = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, path, method: method.toUpperCase() }))
  )
  return document.tags.map((tag) => ({ ...tag, operations: placed.filter(({ tags }) => tags[0] === tag.name) }))
}

function tagSection({ name, description, operations }: ReturnType<typeof taggedOperations>[number]): string {
  const rows = operations.map(
    ({ operationId, method, path, summary }) =>
      `<tr><th scope="row"><a href="/docs/${operationId}">${inline(summary)}</a></th>` +
      `<td>${method} <code>${escaped(path)}</code></td></tr>`
  )
  return `<section class="card"><h2>${escaped(name)}</h2>
<p>${inline(description)}</p>
${table(`Operations of ${name}`, ['Operation', 'Address'], rows)}
</section>`
}

function operationSection(operation: Placed, base: string, values: SampleValues): string {
  const { operationId, method, path, summary, description, deprecated, parameters = [], security = [] } = operation
  const marks = [
    ...(deprecated ? ['Deprecated.'] : []),
    ...(security.some((scheme) => Object.keys(scheme).length > 0)
      ? ['Takes a session: see <a href="#guide-sessions">Sessions</a>.']
      : [])
  ]
  const body = Object.values(operation.requestBody?.content ?? {})[0]
  return `<h1>${inline(summary)}</h1>
<p><b>${method}</b> <code>${escaped(path)}</code></p>
${[...marks, ...(description === undefined ? [] : [inline(description)])].map((text) => `<p>${text}</p>`).join('')}
${parameters.length === 0 ? '' : parameterTable(parameters, values)}
${body?.schema === undefined ? '' : `<p>Body: ${typeText(body.schema)}</p>`}
${answers(operation)}
<details><summary>Code samples</summary>
${samplesOf(operation, base, values)
  .map(({ language, text }) => `<h2>${language}</h2>${code(text, `${operationId} in ${language}`)}`)
  .join('')}
</details>`
}

function parameterTable(parameters: readonly Parameter[], values: SampleValues): string {
  const rows = parameters.map(
    ({ name, in: place, required, description = '', example, schema }) =>
      `<tr><th scope="row"><code>${escaped(name)}</code></th><td>${place}${required ? ', required' : ''}</td>` +
      `<td>${typeText(schema)}</td><td>${inline(description)}</td>` +
      `<td>${example === undefined ? '' : `<code>${escaped(String(values.named[name] ?? example))}</code>`}</td></tr>`
  )
  return table('Parameters', ['Parameter', 'In', 'Type', 'Description', 'Example'], rows)
}

function answers({ responses, operationId }: Placed): string {
  const refused = Object.keys(responses).filter((status) => Number(status) >= 400)
  const content = responses['200']?.content ?? {}
  const json = content['application/json']
  const others = Object.keys(content).filter((type) => type !== 'application/json')
  const example = json?.example === undefined ? '' : cut(JSON.stringify(json.example, null, 2))
  const types = json?.schema === undefined ? '' : typeText(json.schema)
  const files =
    others.length === 0 ? '' : ` ${json === undefined ? '' : 'or '}<code>${others.join('</code> <code>')}</code>`
  return `<p>Response: ${types}${files}.
<a href="/docs/errors">Errors</a>: ${refused.join(', ')}.</p>
${example === '' ? '' : `<details><summary>Example</summary>${code(example, `Response of ${operationId}`)}</details>`}`
}

function schemaSection([name, schema]: readonly [string, Schema]): string {
  const { description, properties, required = [] } = schema
  const rows = Object.entries(properties ?? {}).map(
    ([property, type]) =>
      `<tr><th scope="row"><code>${escaped(property)}</code>${required.includes(property) ? '' : '?'}</th>` +
      `<td>${typeText(type)}</td><td>${inline(type.description ?? '')}</td></tr>`
  )
  return `<section class="card" id="schema-${name}"><h3>${name}</h3>
${description === undefined ? '' : `<p>${inline(description)}</p>`}
${rows.length > 0 ? table(`Fields of ${name}`, ['Field', 'Type', 'Description'], rows) : `<p>${typeText(schema)}</p>`}
</section>`
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

const format = ({ format: name }: Schema): string => (name === undefined || /^u?int64$/.test(name) ? '' : `(${name})`)

function limits({ minimum, maximum, default: usual }: Schema): string {
  const lowest = minimum !== undefined && Number.isSafeInteger(minimum - 1) ? `from ${minimum}` : ''
  const highest = maximum !== undefined && Number.isSafeInteger(maximum + 1) ? `to ${maximum}` : ''
  const otherwise = usual === undefined ? '' : `, default ${JSON.stringify(usual)}`
  return `${[lowest, highest].filter((part) => part !== '').join(' ')}${otherwise}`
}

function cut(text: string): string {
  return text.length <= EXAMPLE_CHARACTERS_MAX ? text : `${text.slice(0, EXAMPLE_CHARACTERS_MAX)}\n…`
}

function table(label: string, names: readonly string[], rows: readonly string[]): string {
  const head = names.map((name) => `<th scope="col">${name}</th>`).join('')
  const table = `<table><thead><tr>${head}</tr></thead><tbody>${rows.join('')}</tbody></table>`
  return `<div class="scroll" tabindex="0" role="group" aria-label="${escaped(label)}">${table}</div>`
}

const link = (name: string, text: string): string => `<li><a href="/docs/${escaped(name)}">${escaped(text)}</a></li>`
