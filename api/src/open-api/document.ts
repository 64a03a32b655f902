import { refusals } from '@gamenet/schemas'
import { z } from 'zod'
import { Components, type Json, jsonSchema, pascal } from '../answers/components.js'
import { type Action, type Endpoint, pathParameters } from '../answers/endpoint.js'
import { DATASETS_PATH } from '../datasets/paths.js'
import { FILE_FORMATS, formatParameter } from '../request/format.js'
import { otherPath } from '../request/other-path.js'
import { CURSOR_CHARACTERS_MAX } from '../stream/cursor.js'
import { DATASETS_TAG, datasetsOperation } from './datasets.js'
import { exampleOf } from './example.js'
import { refusalCodes, refused } from './refused.js'
import { streamContent, streamRoute } from './stream.js'

/** Returns the OpenAPI 3.1 document, from the same values that answer requests. `publicUrl` is `{base_url}`. */
export function openApi(
  endpoints: readonly Endpoint[],
  actions: readonly Action[],
  { publicUrl, version }: { publicUrl: string; version: string }
): Json {
  const components = new Components()
  components.add('Error', ERROR)
  components.add('Problem', PROBLEM)
  const paths: Record<string, Json> = {}
  const put = (path: string, method: string, operation: Json): void => {
    const template = path.replace(/:(\w+)/g, '{$1}')
    paths[template] = { ...paths[template], [method.toLowerCase()]: operation }
  }
  for (const endpoint of endpoints) put(endpoint.path, endpoint.method ?? 'GET', operation(endpoint, components))
  for (const action of actions) put(action.path, action.method, actionOperation(action, components))
  put(streamRoute.path, 'GET', stream(components))
  put(DATASETS_PATH, 'GET', datasetsOperation(components))
  put('/healthz', 'GET', health('getHealth', 'ok', components))
  put('/readyz', 'GET', health('getReadiness', 'ready', components))
  const tags = new Set([...[...endpoints, ...actions].flatMap(({ tags }) => tags), DATASETS_TAG])
  return {
    openapi: '3.1.0',
    info: {
      title: 'Gamenet Stats',
      version,
      description: DESCRIPTION,
      contact: { name: 'Gamenet Stats', url: `${publicUrl}/docs` },
      license: { name: 'MIT', identifier: 'MIT' }
    },
    servers: [{ url: publicUrl, description: 'This service.' }],
    tags: [...new Set([...tags, ...streamRoute.tags, 'Service'])].map((name) => ({
      name,
      description: TAGS[name] ?? name
    })),
    paths,
    components: { ...components.all(), headers: HEADERS, securitySchemes: SECURITY_SCHEMES }
  }
}

const DESCRIPTION = `Statistics about an online game network: counts of players and lobbies over time, live and by
title.

All answers are JSON in UTF-8. Every answer that is not 2xx or 304 is \`{"error": "<sentence>"}\`; its stable code is
in the header \`X-Error-Code\`, and \`/docs/errors\` explains it. Clients whose \`Accept\` prefers
\`application/problem+json\` get problem details. The connection itself can refuse any request: \`request_malformed\`,
\`host_invalid\`, \`host_missing\` (400), \`path_unknown\` (404), \`method_not_allowed\` (405), \`request_timeout\`
(408), \`expectation_failed\` (417), \`headers_too_large\` (431).

All GET routes answer HEAD too. Unknown query parameters are ignored and named in \`X-Unknown-Parameters\`; a known one
that is empty, malformed, out of range or given twice is 400.
Bodies are JSON and are taken as they are: "3" is not a number.
Times are UTC. Send \`If-None-Match\` with the last \`ETag\`: as long as nothing has changed you get 304. A missing
sample is absent, never 0.`

const TAGS: Readonly<Record<string, string>> = {
  Network: 'The network as a whole.',
  Titles: 'Games and their players.',
  Calendar: 'Counts by days, weeks, months and years of a time zone.',
  Questions: 'Questions of this service’s operator.',
  Leaderboards: 'Boards of games, now and at any instant, their changes and records.',
  Matches: 'Lobbies and matches of games.',
  Search: 'Entries by player or time.',
  Players: 'Names on boards.',
  Profiles: 'Users of the network.',
  Achievements: 'What users can reach, and who did.',
  Stream: 'Events as they are recorded.',
  [DATASETS_TAG]: 'Published tables as files, for analysis.',
  Service: 'The service itself.'
}

function operation(endpoint: Endpoint, components: Components): Json {
  const { operationId, tags, summary, deprecated, method, answerTo, table } = endpoint
  return {
    operationId,
    tags,
    summary,
    description: descriptionOf(endpoint),
    ...(deprecated === undefined ? {} : { deprecated: true }),
    ...(method === 'POST' ? posted(endpoint, components) : { parameters: parametersOf(withFormat(endpoint)) }),
    security: answerTo === undefined ? [] : [{}, ...SECURED, { sessionKeyInQuery: [] }],
    responses: {
      200: answered(endpoint, components),
      ...(method === 'POST' ? {} : { 304: components.response('NotModified', NOT_MODIFIED) }),
      ...(method === 'POST' || table === undefined ? {} : { 206: components.response('PartOfFile', PART_OF_FILE) }),
      ...refused(refusalCodes(endpoint), components)
    }
  }
}

function descriptionOf({ path, description, summary }: Endpoint): string {
  const other = otherPath(path)
  const alias = other === undefined ? undefined : `\`${other}\` answers the same.`
  return [description ?? `${summary}.`, alias].filter((sentence) => sentence !== undefined).join(' ')
}

function actionOperation(action: Action, components: Components): Json {
  const { operationId, tags, summary, description, parameters, path, response } = action
  const { description: what = 'Done.' } = z.globalRegistry.get(response) ?? {}
  const schema = components.schema(response, 'output', `${pascal(operationId)}Answer`)
  return {
    operationId,
    tags,
    summary,
    description,
    security: [...SECURED, {}],
    parameters: parametersOf({ input: parameters, path }),
    requestBody: { required: true, content: { 'application/json': bodyOf(action, components) } },
    responses: {
      200: {
        description: what,
        headers: refs('headers', ['Cache-Control', 'X-Request-Id']),
        content: { 'application/json': { schema, example: exampleOf(schema, components) } }
      },
      ...refused(refusalCodes(action), components)
    }
  }
}

function bodyOf({ body, bodyExample, operationId }: Action, components: Components): Json {
  const sessionKey = z.string().optional().describe('Replaces the header `X-Session-Key`, which takes precedence.')
  const name = z.globalRegistry.get(body)?.id ?? `${pascal(operationId)}Body`
  const schema = components.schema(body.extend({ sessionKey }), 'input', name)
  return { schema, example: bodyExample }
}

function withFormat({ input, path, table }: Endpoint): { readonly input: z.ZodType; readonly path: string } {
  return { input: table === undefined ? input : z.object({ ...input.shape, format: formatParameter }), path }
}

/** Describes path parameters as parameters, and all other fields as the body. */
function posted({ input, path, bodyExample, operationId }: Endpoint, components: Components): Json {
  const inPath = pathParameters(path)
  const fields = Object.entries(input.shape).filter(([name]) => !inPath.has(name))
  const schema = components.schema(z.object(Object.fromEntries(fields)), 'input', `${pascal(operationId)}Body`)
  return {
    parameters: parametersOf({ input, path }).filter((parameter) => parameter.in === 'path'),
    requestBody: { required: true, content: { 'application/json': { schema, example: bodyExample } } }
  }
}

function parametersOf({ input, path }: { readonly input: z.ZodType; readonly path: string }): Json[] {
  const { properties = {}, required = [] } = jsonSchema(input, 'input') as {
    properties?: Record<string, Json>
    required?: string[]
  }
  const inPath = pathParameters(path)
  return Object.entries(properties).map(([name, { description, example, ...schema }]) => ({
    name,
    in: inPath.has(name) ? 'path' : 'query',
    required: inPath.has(name) || (required.includes(name) && !('default' in schema)),
    ...(description === undefined ? {} : { description }),
    example: example ?? schema.default ?? (schema.enum as unknown[] | undefined)?.[0] ?? schema.minimum,
    schema
  }))
}

function answered(endpoint: Endpoint, components: Components): Json {
  const { response, responseHeaders = {}, deprecated, method, operationId, table } = endpoint
  const { description = 'The answer.' } = z.globalRegistry.get(response) ?? {}
  const schema = components.schema(response, 'output', `${pascal(operationId)}Answer`)
  const further = Object.entries(responseHeaders).map(([name, text]) => [
    name,
    { description: text, schema: { type: 'string' } }
  ])
  return {
    description,
    headers: {
      ...(method === 'POST' ? {} : refs('headers', ['ETag', 'X-Unknown-Parameters'])),
      ...refs('headers', ['X-Data-Version', 'Cache-Control', 'Age', 'X-Request-Id']),
      ...(deprecated === undefined ? {} : refs('headers', ['Deprecation', 'Link'])),
      ...Object.fromEntries(further)
    },
    content: {
      'application/json': { schema, example: exampleOf(schema, components) },
      ...(table === undefined ? {} : FILES)
    }
  }
}

/** The formats of files are described by their programs' documentation; their columns are the fields of a row. */
const FILES: Json = Object.fromEntries(
  Object.entries(FILE_FORMATS).map(([name, { type }]) => [
    type.split(';', 1)[0] ?? type,
    {
      schema: name === 'csv' || name === 'ndjson' ? { type: 'string' } : { type: 'string', contentEncoding: 'binary' }
    }
  ])
)

const PART_OF_FILE: Json = { description: 'The range of the answer as a file that `Range` names.', content: FILES }

function refs(kind: string, names: readonly string[]): Json {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/${kind}/${name}` }]))
}

const ERROR: Json = {
  type: 'object',
  description: 'Why there is no answer.',
  properties: { error: { type: 'string', description: 'One sentence for people; do not parse it.' } },
  required: ['error'],
  additionalProperties: false,
  example: { error: 'days must be an integer from 1 to 30; got "0".' }
}

const PROBLEM: Json = {
  type: 'object',
  description: 'Why there is no answer, as problem details (RFC 9457).',
  properties: {
    type: { type: 'string', description: 'Where the code is explained.' },
    title: { type: 'string', description: 'The code in words.' },
    status: { type: 'integer', description: 'The status of the answer.' },
    detail: { type: 'string', description: 'One sentence for people; do not parse it.' },
    code: {
      type: 'string',
      description: 'The stable code, as in `X-Error-Code`. New ones may be added.',
      examples: Object.keys(refusals)
    }
  },
  required: ['type', 'title', 'status', 'detail', 'code'],
  example: {
    type: '/docs/errors#request_invalid',
    title: 'Request invalid',
    status: 400,
    detail: 'days must be an integer from 1 to 30; got "0".',
    code: 'request_invalid'
  }
}

const SECURED: Json[] = [{ sessionKey: [] }]
const SECURITY_SCHEMES: Json = {
  sessionKey: { type: 'apiKey', in: 'header', name: 'X-Session-Key', description: 'Of the auth service.' },
  sessionKeyInQuery: { type: 'apiKey', in: 'query', name: 'sessionKey', description: 'The header takes precedence.' }
}

const HEADERS: Json = {
  ETag: header('Identifies this answer; send it as `If-None-Match`.', '"Zt0mvZ1lq2sJ7c0gWnYyq0c6HhE-b"'),
  'X-Data-Version': header('The newest change of the data that the answer reads; opaque.', '1772000000000000'),
  'Cache-Control': header(
    'A copy may be cached and must be revalidated before each use.',
    'public, max-age=0, must-revalidate'
  ),
  Age: header(
    'Seconds since the answer was computed; only while the tables are unavailable and newer data may exist.',
    '42'
  ),
  'X-Request-Id': header('Identifies this request in the log of the service.', 'q3Zk0a1b.7f'),
  'Retry-After': header('Seconds after which a retry makes sense.', '1'),
  'X-Error-Code': header('The stable code of the refusal.', 'request_invalid'),
  'X-Unknown-Parameters': header('The query parameters that were ignored, percent-encoded.', 'day, limt'),
  ErrorLink: header('Where the code is explained, with `rel="help"`.', '</docs/errors#request_invalid>; rel="help"'),
  Deprecation: header('Since when the path is deprecated (RFC 9745).', '@1767225600'),
  Link: header('The path to use instead, with `rel="successor-version"`.', '</api/games>; rel="successor-version"')
}

const NOT_MODIFIED: Json = {
  description: 'Nothing has changed since the answer that `If-None-Match` names. No body.',
  headers: refs('headers', ['ETag', 'X-Data-Version', 'Cache-Control', 'X-Request-Id', 'X-Unknown-Parameters'])
}

/** `/api/stream`. */
function stream(components: Components): Json {
  const { operationId, tags, summary, description, refuses } = streamRoute
  const schema = { type: 'string', maxLength: CURSOR_CHARACTERS_MAX, pattern: '^[A-Za-z0-9_-]*$' }
  return {
    operationId,
    tags,
    summary,
    description,
    parameters: [
      ...parametersOf(streamRoute),
      {
        name: 'Last-Event-ID',
        in: 'header',
        required: false,
        description: 'As `EventSource` sends it: a cursor.',
        example: 'start',
        schema
      }
    ],
    security: [],
    responses: {
      200: {
        description: 'The events. A stream ends with `retry:` after about an hour; resume it from its last cursor.',
        headers: refs('headers', ['X-Unknown-Parameters', 'X-Request-Id']),
        content: streamContent(components)
      },
      ...refused(refuses, components)
    }
  }
}

/** `/healthz` and `/readyz`. */
function health(operationId: string, status: 'ok' | 'ready', components: Components): Json {
  const isReadiness = status === 'ready'
  const repairing = z.array(z.string()).optional().describe('Damaged tables that are not rebuilt yet.')
  const degraded = z
    .array(z.string())
    .optional()
    .describe('Engines that do not answer and disks that are full, while known answers are served.')
  const schema = z.object({ status: z.literal(status), ...(isReadiness ? { degraded, repairing } : {}) })
  return {
    operationId,
    tags: ['Service'],
    summary: isReadiness ? 'Whether the service answers with data' : 'Whether the process answers',
    description: isReadiness ? 'For load balancers: 503 says why not.' : 'For supervisors.',
    security: [],
    responses: {
      200: {
        description: 'Yes.',
        headers: refs('headers', ['X-Request-Id']),
        content: {
          'application/json': {
            schema: components.schema(schema, 'output', pascal(operationId.slice(3))),
            example: { status }
          }
        }
      },
      ...refused(['uri_too_long', ...(isReadiness ? (['not_ready'] as const) : [])], components)
    }
  }
}

function header(description: string, example: string): Json {
  return { description, schema: { type: 'string' }, example }
}
