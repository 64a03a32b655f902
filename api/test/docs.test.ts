import { readFileSync, writeFileSync } from 'node:fs'
import { refusals } from '@gamenet/schemas'
import { test } from 'tap'
import { z } from 'zod'
import { openApi } from '../src/open-api/document.js'
import { formatParameter } from '../src/request/format.js'
import { actions, endpoints } from '../src/routes/endpoints.js'
import { breakingChanges } from './support/breaking-changes.js'
import { testApp } from './support/test-app.js'

const root = new URL('../../../', import.meta.url)

test('docs/errors.md lists every refusal as the source has it, and nothing else', async (t) => {
  const text = readFileSync(new URL('docs/errors.md', root), 'utf8')
  const rows = [...text.matchAll(/^\| `([a-z]+(?:_[a-z]+)*)` \| (\d{3}) \| (.*?) \| (.*?) \|$/gm)].map(
    ([, code, status, message, when]) => [code, { status: Number(status), message, when }]
  )
  const listed = Object.entries(refusals).map(([code, { status, message, when }]) => [code, { status, message, when }])
  t.same(Object.fromEntries(rows), Object.fromEntries(listed))
  for (const [code, { message, ...more }] of Object.entries(refusals)) {
    const [first = '', ...rest] = message.split('%s')
    const example = 'example' in more ? more.example : message
    t.ok(example.startsWith(first) && example.endsWith(rest.at(-1) ?? '') && !example.includes('%s'), code)
  }
  const { app } = await testApp(t)
  const { statusCode, headers, body } = await app.inject('/docs/errors')
  t.equal(statusCode, 200)
  t.equal(headers['content-type'], 'text/html; charset=utf-8')
  t.same(
    [...body.matchAll(/<h2 id="(\w+)">/g)].map(([, code]) => code),
    Object.keys(refusals)
  )
})

type Operation = {
  operationId: string
  summary: string
  parameters?: { name: string; in: string; required: boolean; example?: unknown; schema: Record<string, unknown> }[]
  responses: Record<
    string,
    { $ref?: string; description?: string; content?: Record<string, { example?: unknown; examples?: unknown }> }
  >
}
type Document = {
  openapi: string
  paths: Record<string, Record<string, Operation>>
  components: { responses: Document['paths'][string][string]['responses']; headers: Record<string, unknown> }
}

test('/openapi.json describes every answer of every endpoint, with an example', async (t) => {
  const { app } = await testApp(t, { endpoints, actions })
  const { statusCode, headers, body } = await app.inject('/openapi.json')
  t.equal(statusCode, 200)
  t.equal(headers['content-type'], 'application/json; charset=utf-8')
  const again = await app.inject({ url: '/openapi.json', headers: { 'if-none-match': String(headers.etag) } })
  t.equal(again.statusCode, 304)
  const document: Document = JSON.parse(body)
  t.equal(document.openapi, '3.1.0')
  const operations = Object.values(document.paths).flatMap((path) => Object.values(path))
  t.equal(new Set(operations.map(({ operationId }) => operationId)).size, operations.length, 'ids are unique')
  t.equal(operations.length, endpoints.length + actions.length + 4)
  const each = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation }))
  )
  for (const { path, method, operation } of each) {
    t.match(operation.summary, /\w/, path)
    t.equal('requestBody' in operation, method !== 'get', path)
    for (const [status, given] of Object.entries(operation.responses)) {
      const response =
        given.$ref === undefined ? given : document.components.responses[String(given.$ref.split('/').at(-1))]
      t.match(response?.description, /\w/, `${path} ${status}`)
      const { example, examples = example } = response?.content?.['application/json'] ?? {}
      t.equal(examples === undefined, status === '304' || status === '206', `${path} ${status}`)
    }
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
    const described = (operation.parameters ?? []).filter((each) => each.in === 'path')
    t.same(described.map(({ name }) => name).sort(), inPath.sort(), path)
    t.ok(described.every(({ required }) => required))
    const instants = (operation.parameters ?? []).filter(({ schema }) => /\[Tt\]/.test(String(schema.pattern)))
    const hasZone = (operation.parameters ?? []).some(({ name }) => name === 'tz')
    t.equal(
      hasZone || operation.operationId === 'getDailyOnline' || instants.length === 0,
      true,
      `${path} has days of tz`
    )
    for (const each of operation.parameters ?? []) {
      t.ok(Object.keys(each.schema).length > 0, `${path} ${each.name} has a schema`)
      t.ok('example' in each, `${path} ${each.name} has an example`)
      t.equal(
        'pattern' in each.schema || 'enum' in each.schema || each.schema.format === 'date',
        each.schema.type === 'string',
        `${path} ${each.name} has a pattern`
      )
    }
  }
  for (const ref of new Set(body.match(/#\/components\/[\w/-]+/g))) {
    const found = ref
      .slice(2)
      .split('/')
      .reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], document)
    t.ok(found, ref)
  }
})

test('the example of every parameter and answer is valid', async (t) => {
  const { paths } = served()
  for (const { method = 'GET', path, operationId, response } of [...endpoints, ...actions]) {
    const operation = paths[path.replace(/:(\w+)/g, '{$1}')]?.[method.toLowerCase()]
    const { example } = operation?.responses[200]?.content?.['application/json'] ?? {}
    const parsed = z.safeParse(response, example)
    t.ok(parsed.success, `${operationId} ${parsed.success ? '' : z.prettifyError(parsed.error)}`)
    t.notMatch(JSON.stringify(example), '"text"', `${operationId}: open-api/example.ts has a value for every text`)
    t.match(z.globalRegistry.get(response)?.id, /^[A-Z]/, `${operationId} answers a named schema`)
  }
  for (const { operationId, body, bodyExample } of actions) t.ok(body.safeParse(bodyExample).success, operationId)
  for (const { method = 'GET', path, input } of endpoints) {
    const operation = paths[path.replace(/:(\w+)/g, '{$1}')]?.[method.toLowerCase()]
    for (const { name, example } of operation?.parameters ?? []) {
      t.ok(
        z.safeParse((input.shape[name] ?? formatParameter) as z.ZodType, String(example)).success,
        `${path} ${name} ${example}`
      )
    }
  }
})

type Shape = {
  readonly $ref?: string
  readonly type?: string
  readonly items?: Shape
  readonly anyOf?: readonly Shape[]
  readonly properties?: Readonly<Record<string, Shape>>
  readonly additionalProperties?: Shape | boolean
}

/** Answers about one thing whose lists are a part of it, and the list of datasets, which are files themselves. */
const NO_LISTS = ['getMatchStats', 'getLobbyStats', 'getProfile', 'getDatasets', 'getReadiness']

test('every answer that is a list, or rows by key, also comes in the four formats of files', async (t) => {
  const { paths, components } = JSON.parse(JSON.stringify(served())) as Document & {
    components: { schemas: Record<string, Shape> }
  }
  const named = (shape: Shape = {}): Shape => components.schemas[String(shape.$ref?.split('/').at(-1))] ?? shape
  const isList = (shape: Shape): boolean =>
    shape.type === 'array' || typeof shape.additionalProperties === 'object' || (shape.anyOf ?? []).some(isList)
  const isListed = (given: Shape | undefined): boolean => {
    const shape = named(given)
    return isList(shape) || Object.values(shape.properties ?? {}).some((each) => isList(named(each)))
  }
  const lists = Object.values(paths)
    .flatMap(({ get }) => (get === undefined ? [] : [get]))
    .filter(({ responses }) => isListed((responses[200]?.content?.['application/json'] as { schema?: Shape })?.schema))
  const formats = ['text/csv', 'application/x-ndjson', 'application/vnd.apache.parquet']
  const lacking = lists.filter(({ operationId, responses }) => {
    const types = Object.keys(responses[200]?.content ?? {}).map((type) => type.split(';', 1)[0] ?? '')
    const all = operationId === 'stream' ? formats.slice(1, 2) : [...formats, 'application/vnd.apache.arrow.stream']
    return !all.every((type) => types.includes(type))
  })
  t.ok(lists.length > 40)
  t.same(lacking.map(({ operationId }) => operationId).sort(), [...NO_LISTS].sort())
})

test('an action documents its session, its fields and its refusals', async (t) => {
  const { paths, components } = JSON.parse(JSON.stringify(served()))
  const { patch, put } = paths['/api/profile/{username}']
  t.same(put, { ...patch, operationId: 'putProfile', summary: 'Edit your own profile, by another method' })
  t.same(Object.keys(patch.responses), ['200', '400', '401', '403', '413', '414', '415', '429', '500', '502', '503'])
  t.same(patch.security, [{ sessionKey: [] }, {}])
  const schema = components.schemas.EditProfileBody
  t.same(patch.requestBody.content['application/json'].schema, { $ref: '#/components/schemas/EditProfileBody' })
  t.same(schema.additionalProperties, false)
  t.match(Object.keys(schema.properties), ['avatar_url', 'avatar_hue', 'chat_profile_url', 'display_name_override'])
  t.match(schema.properties, { sessionKey: { type: 'string' }, social_links: { type: 'array', maxItems: 10 } })
  const { get, post } = paths['/api/profile/{username}/reputation']
  t.equal(post.requestBody.content['application/json'].schema.$ref, '#/components/schemas/RateProfileBody')
  t.same(components.schemas.RateProfileBody.required, ['stars'])
  t.same(get.security, [{}, { sessionKey: [] }, { sessionKeyInQuery: [] }])
  t.same(paths['/api/games'].get.security, [])
  t.same(Object.keys(paths['/api/games'].get.responses), [
    '200',
    '206',
    '304',
    '400',
    '412',
    '414',
    '416',
    '429',
    '500',
    '503'
  ])
  t.same(Object.keys(components.securitySchemes), ['sessionKey', 'sessionKeyInQuery'])
})

test('no date has a pattern: openapi-generator’s client in Python cannot be imported then', (t) => {
  const both: unknown[] = []
  JSON.parse(readFileSync(new URL('docs/openapi.json', root), 'utf8'), (_key, value) => {
    if (/^date/.test(String(value?.format)) && 'pattern' in value) both.push(value)
    return value
  })
  t.same(both, [])
  t.end()
})

test('docs/openapi.json, of which the build makes the types of the SDK, is that of the service', async (t) => {
  const file = new URL('docs/openapi.json', root)
  const { version } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'))
  const document = JSON.parse(JSON.stringify(served(version)))
  if (process.env.REFRESH_OPENAPI !== undefined) {
    const [, unreleased = '', released] = readFileSync(new URL('CHANGELOG.md', root), 'utf8').split(/^## /m)
    // Before the first release no client can break.
    const committed = released === undefined ? document : JSON.parse(readFileSync(file, 'utf8'))
    const unnamed = breakingChanges(committed, document).filter(
      (change) => !unreleased.includes(`\`${change.split(' ', 1)[0]}\``)
    )
    t.same(unnamed, [], 'CHANGELOG.md names every operation or schema that breaks clients, in `backquotes`')
    if (unnamed.length === 0) writeFileSync(file, `${JSON.stringify(document, null, 2)}\n`)
  }
  const how = 'REFRESH_OPENAPI=1 npm test -- docs.test writes it again, if CHANGELOG.md names what breaks clients'
  t.same(JSON.parse(readFileSync(file, 'utf8')), document, how)
})

test('a change that breaks clients is distinguished from one that does not', async (t) => {
  const before = {
    paths: {
      '/a': {
        get: {
          operationId: 'getA',
          parameters: [{ name: 'limit', required: false, schema: { type: 'integer', maximum: 9 } }],
          responses: { 200: { content: { 'application/json': { schema: { $ref: 'A' } } } } }
        }
      }
    },
    components: {
      schemas: {
        A: { type: 'object', properties: { x: { type: 'string' }, y: { type: 'string' } }, required: ['x'] },
        ABody: { type: 'object', properties: { x: { enum: ['p', 'q'] } } }
      }
    }
  }
  const changed = (change: (document: typeof before) => void): string[] => {
    const after = structuredClone(before)
    change(after)
    return breakingChanges(before, after)
  }
  type Parameter = (typeof before.paths)['/a']['get']['parameters'][number]
  const get = (document: typeof before) => document.paths['/a'].get
  const first = (document: typeof before) => get(document).parameters[0] as Parameter
  const { A, ABody } = before.components.schemas
  const schemas = (more: object) => (document: typeof before) => Object.assign(document.components.schemas, more)
  t.same(
    changed(schemas({ B: {}, A: { ...A, properties: { ...A.properties, z: {} }, required: ['x', 'y', 'z'] } })),
    []
  )
  t.same(
    changed((document) => Object.assign(document.paths, { '/a': {} })),
    ['getA is gone from GET /a']
  )
  t.same(
    changed((document) => Object.assign(get(document), { operationId: 'b' })),
    ['getA is gone from GET /a']
  )
  t.same(
    changed((document) => get(document).parameters.pop()),
    ['getA has no limit any more']
  )
  t.same(
    changed((document) => Object.assign(first(document), { required: true })),
    ['getA requires limit']
  )
  t.same(
    changed((document) => Object.assign(first(document).schema, { maximum: 8 })),
    ['getA takes fewer values of limit']
  )
  t.same(
    changed((document) => Object.assign(get(document), { responses: {} })),
    ['getA takes or answers another schema']
  )
  t.same(changed(schemas({ A: { ...A, properties: { x: { type: 'string' } } } })), ['A has no y any more'])
  t.same(changed(schemas({ A: { ...A, required: [] } })), ['A may come without x'])
  t.same(changed(schemas({ A: { ...A, properties: { ...A.properties, x: { type: 'null' } } } })), [
    'A has a x of another type'
  ])
  t.same(changed(schemas({ ABody: { ...ABody, required: ['x'] } })), ['ABody requires x'])
  t.same(changed(schemas({ ABody: { ...ABody, properties: { x: { enum: ['p'] } } } })), [
    'ABody takes fewer values of x'
  ])
})

/** The complete description as a service of this version serves it at the default address. */
function served(version = '0.0.0'): Document {
  return openApi(endpoints, actions, { publicUrl: 'http://127.0.0.1:8080', version }) as Document
}

test('pages below /docs load nothing from elsewhere and run nothing inline; every link leads somewhere', async (t) => {
  const { app } = await testApp(t, { endpoints, actions })
  const paths = new Set(['/docs'])
  for (const path of paths) {
    const { statusCode, headers, body } = await app.inject(path)
    t.equal(statusCode, 200, path)
    if (!String(headers['content-type']).startsWith('text/html')) continue
    const policy = String(headers['content-security-policy'])
    t.match(policy, "default-src 'none'")
    t.match(policy, "frame-ancestors 'none'")
    t.notMatch(body, /<script>|style="/)
    t.equal(body.match(/<h1>/g)?.length, 1, path)
    t.ok(Buffer.byteLength(body) <= 100_000, `${path}: ${Buffer.byteLength(body)} bytes`)
    const ids = [...body.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)
    t.equal(new Set(ids).size, ids.length, `${path}: ids are unique`)
    for (const [, link = ''] of body.matchAll(/(?:src|href)="([^"]+)"/g)) {
      if (link.startsWith('#')) t.ok(ids.includes(link.slice(1)), `${path} links to ${link}`)
      else t.match(link, /^\//, path)
      if (/^\/(?:docs|openapi|llms)/.test(link)) paths.add(link.replace(/#.*/, ''))
    }
  }
  t.ok(paths.size > endpoints.length)
})

test('each operation has a page with samples in three languages, which /docs and /llms.txt name', async (t) => {
  const { app } = await testApp(t, { endpoints, actions })
  const bodyOf = async (path: string) => (await app.inject(path)).body
  const [index, text] = [await bodyOf('/docs'), await bodyOf('/llms.txt')]
  for (const { operationId } of [...endpoints, ...actions]) {
    t.ok(index.includes(`href="/docs/${operationId}"`), operationId)
    t.ok(text.includes(`/docs/${operationId})`), operationId)
    const page = await bodyOf(`/docs/${operationId}`)
    for (const language of ['curl', 'TypeScript', 'Python'])
      t.ok(page.includes(`aria-label="${operationId} in ${language}"`), `${operationId} in ${language}`)
  }
  const rating = await bodyOf('/docs/rateProfile')
  t.match(rating, "curl -X POST -H &quot;X-Session-Key: $KEY&quot; -H 'Content-Type: application/json' -d '{&quot;")
  t.match(rating, '# This service has no user with an achievement yet; the names below are inventions.')
  t.match(rating, '# This service has no auth service (AUTH_URL); nobody can sign in.')
  t.notMatch(await bodyOf('/docs/getGames'), 'inventions', 'needs no name')
  t.match(rating, /requests\.post\(/)
  const markdown = await app.inject('/docs/getGames.md')
  t.equal(markdown.headers['content-type'], 'text/markdown; charset=utf-8')
  t.match(markdown.body, /^# .*\n\n`GET \/api\/games`/)
})

test('/openapi.yaml is the document in YAML', async (t) => {
  const { app } = await testApp(t, { endpoints, actions })
  const { body, headers } = await app.inject('/openapi.yaml')
  t.equal(headers['content-type'], 'application/yaml')
  t.match(body, /^openapi: 3\.1\.0/m)
})
