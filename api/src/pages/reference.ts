import type { Guide } from './guides.js'
import { code, escaped, inline, paragraphs } from './html.js'
import type { SampleValues } from './sample-values.js'
import { type Operation, type Parameter, type Placed, type Schema, samplesOf } from './samples.js'

/** The parts of an OpenAPI document that the pages show. */
export type Described = {
  readonly info: { readonly title: string; readonly version: string; readonly description: string }
  readonly servers: readonly { readonly url: string }[]
  readonly tags: readonly { readonly name: string; readonly description: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

/** An example in JSON is cut after this many characters. */
const EXAMPLE_CHARACTERS_MAX = 1500

/** Returns the page at /docs: the guides, every operation with code samples, and every schema. It has no script. */
export function referencePage(document: Described, guides: readonly Guide[], values: SampleValues): string {
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
<link rel="icon" href="/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/docs/reference.css">
</head>
<body>
<nav aria-label="Contents"><a href="/">Home</a>
<a href="#top">${document.info.title}</a><ul>${links.join('')}</ul></nav>
<main id="top">
<h1>${document.info.title} API <small>${document.info.version}</small></h1>
<p>Machine-readable: <a href="/openapi.json">openapi.json</a>, <a href="/openapi.yaml">openapi.yaml</a>,
<a href="/llms.txt">llms.txt</a>.</p>
${guides.map(guideSection).join('\n')}
${tags.map((tag) => tagSection(tag, base, values)).join('\n')}
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

/** Returns the page of one operation, or undefined. */
export function operationPage(document: Described, operationId: string, values: SampleValues): string | undefined {
  const operation = taggedOperations(document)
    .flatMap(({ operations }) => operations)
    .find((each) => each.operationId === operationId)
  if (operation === undefined) return undefined
  const schemas = schemasOf(document, operation)
  const content = `${operationSection(operation, document.servers[0]?.url ?? '', values)}
${schemas.length === 0 ? '' : `<section><h2>Schemas</h2>${schemas.map(schemaSection).join('\n')}</section>`}`
  return shell(`${operationId} · ${document.info.title}`, content)
}

/** Returns the same as Markdown, for language models. */
export function operationText(document: Described, operationId: string, values: SampleValues): string | undefined {
  const operation = taggedOperations(document)
    .flatMap(({ operations }) => operations)
    .find((each) => each.operationId === operationId)
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
export function guidePage(document: Described, { title, text }: Guide): string {
  return shell(`${title} · ${document.info.title}`, `<h1>${title}</h1>${paragraphs(text)}`)
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

function shell(title: string, content: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title>
<link rel="icon" href="/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/docs/reference.css">
</head>
<body>
<nav aria-label="Contents"><a href="/">Home</a> <a href="/docs">All operations</a></nav>
<main>
${content.replaceAll('href="#guide-', 'href="/docs/guide/')}
</main>
</body>
</html>
`
}

function taggedOperations(document: Described) {
  const placed: readonly Placed[] = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, path, method: method.toUpperCase() }))
  )
  return document.tags.map((tag) => ({ ...tag, operations: placed.filter(({ tags }) => tags[0] === tag.name) }))
}

function tagSection(
  { name, description, operations }: ReturnType<typeof taggedOperations>[number],
  base: string,
  values: SampleValues
) {
  return `<section id="tag-${escaped(name)}"><h2>${escaped(name)}</h2>
<p>${inline(description)}</p>
${operations.map((operation) => operationSection(operation, base, values)).join('\n')}
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
  return `<article id="${operationId}"><h3><a href="/docs/${operationId}">${inline(summary)}</a></h3>
<p class="path"><b>${method}</b> <code>${escaped(path)}</code></p>
${[...marks, ...(description === undefined ? [] : [inline(description)])].map((text) => `<p>${text}</p>`).join('')}
${parameters.length === 0 ? '' : parameterTable(parameters, values)}
${body?.schema === undefined ? '' : `<p>Body: ${typeText(body.schema)}</p>`}
${answers(operation)}
<details><summary>Code samples</summary>
${samplesOf(operation, base, values)
  .map(({ language, text }) => `<h4>${language}</h4>${code(text, `${operationId} in ${language}`)}`)
  .join('')}
</details></article>`
}

function parameterTable(parameters: readonly Parameter[], values: SampleValues): string {
  const rows = parameters.map(
    ({ name, in: place, required, description = '', example, schema }) =>
      `<tr><th scope="row"><code>${escaped(name)}</code></th><td>${place}${required ? ', required' : ''}</td>` +
      `<td>${typeText(schema)}</td><td>${inline(description)}</td>` +
      `<td>${example === undefined ? '' : `<code>${escaped(String(values.named[name] ?? example))}</code>`}</td></tr>`
  )
  return table(['Parameter', 'In', 'Type', 'Meaning', 'Example'], rows)
}

function guideSection({ id, title, text }: Guide): string {
  return `<section id="guide-${id}"><h2>${title}</h2>${paragraphs(text)}</section>`
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
  return `<p>Answer: ${types}${files}.
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

function cut(text: string): string {
  return text.length <= EXAMPLE_CHARACTERS_MAX ? text : `${text.slice(0, EXAMPLE_CHARACTERS_MAX)}\n…`
}

function table(names: readonly string[], rows: readonly string[]): string {
  const head = names.map((name) => `<th scope="col">${name}</th>`).join('')
  const table = `<table><thead><tr>${head}</tr></thead><tbody>${rows.join('')}</tbody></table>`
  return `<div class="table" tabindex="0" role="group" aria-label="${names[0]}s">${table}</div>`
}

function link(id: string, text: string): string {
  return `<li><a href="#${escaped(id)}">${escaped(text)}</a></li>`
}
