import { readFileSync } from 'node:fs'
import { refusals } from '@gamenet/schemas'
import { test } from 'tap'
import { z } from 'zod'
import { actions, endpoints } from '../src/routes/endpoints.js'
import { testApp } from './support/test-app.js'

const root = new URL('../../../', import.meta.url)

test('docs/errors.md lists every refusal as the source has it, and nothing else', async (t) => {
  const text = readFileSync(new URL('docs/errors.md', root), 'utf8')
  const rows = [...text.matchAll(/^\| `([a-z]+(?:_[a-z]+)*)` \| (\d{3}) \| (.*?) \| (.*?) \|$/gm)].map(
    ([, code, status, message, when]) => [code, { status: Number(status), message, when }]
  )
  t.same(Object.fromEntries(rows), refusals)
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
  parameters?: { name: string; in: string; required: boolean; schema: Record<string, unknown> }[]
  responses: Record<string, { $ref?: string; description?: string; content?: Record<string, { example?: unknown }> }>
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
  t.equal(operations.length, endpoints.length + actions.length + 2)
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
      if (status !== '304') t.not(response?.content?.['application/json']?.example, undefined, `${path} ${status}`)
    }
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
    const described = (operation.parameters ?? []).filter((each) => each.in === 'path')
    t.same(described.map(({ name }) => name).sort(), inPath.sort(), path)
    t.ok(described.every(({ required }) => required))
    for (const each of operation.parameters ?? [])
      t.ok(Object.keys(each.schema).length > 0, `${path} ${each.name} has a schema`)
  }
  for (const ref of new Set(body.match(/#\/components\/[\w/-]+/g))) {
    const found = ref
      .slice(2)
      .split('/')
      .reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], document)
    t.ok(found, ref)
  }
})

test('the example of every endpoint and action is one of its answers', async (t) => {
  for (const { operationId, response, example } of [...endpoints, ...actions]) {
    const parsed = z.safeParse(response, example)
    t.ok(parsed.success, `${operationId} ${parsed.success ? '' : z.prettifyError(parsed.error)}`)
  }
  for (const { operationId, body, bodyExample } of actions) t.ok(body.safeParse(bodyExample).success, operationId)
})

test('an action documents its session, its fields and its other methods', async (t) => {
  const { app } = await testApp(t, { endpoints, actions })
  const { paths, components } = (await app.inject('/openapi.json')).json()
  const { patch, put } = paths['/api/profile/{username}']
  t.equal(put, undefined)
  t.match(patch.description, / PUT does the same\.$/)
  t.match(Object.keys(patch.responses), ['200', '400', '401', '403', '413', '415', '429', '500', '502', '503'])
  const { schema } = patch.requestBody.content['application/json']
  t.same(schema.additionalProperties, false)
  t.match(Object.keys(schema.properties), ['avatar_url', 'avatar_hue', 'chat_profile_url', 'display_name_override'])
  t.match(schema.properties, { sessionKey: { type: 'string' }, social_links: { type: 'array', maxItems: 10 } })
  const { get, post } = paths['/api/profile/{username}/reputation']
  t.same(post.requestBody.content['application/json'].schema.required, ['stars'])
  t.same(get.security, [{}, { sessionKey: [] }, { sessionKeyInQuery: [] }])
  t.same(Object.keys(components.securitySchemes), ['sessionKey', 'sessionKeyInQuery'])
})

test('/docs is a page that loads nothing from elsewhere and runs no inline script', async (t) => {
  const { app } = await testApp(t, { endpoints })
  const { statusCode, headers, body } = await app.inject('/docs')
  t.equal(statusCode, 200)
  t.equal(headers['content-type'], 'text/html; charset=utf-8')
  const policy = String(headers['content-security-policy'])
  t.match(policy, "default-src 'none'")
  t.match(policy, "script-src 'self';")
  t.match(policy, "frame-ancestors 'none'")
  t.notMatch(body, /<script(?![^>]*src=)/)
  t.notMatch(body, /(?:src|href)="(?:https?:)?\/\//)
  const loaded = [...body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, url]) => String(url))
  t.ok(loaded.length >= 5)
  for (const url of loaded) {
    const { pathname } = new URL(url, 'http://x/docs')
    t.equal((await app.inject(pathname)).statusCode, 200, pathname)
  }
})
