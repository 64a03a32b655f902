import { Refusal } from '@gamenet/schemas'
import { z } from 'zod'
import type { Action, Endpoint } from '../../answers/endpoint.js'
import { otherPath } from '../request/other-path.js'

type Json = Record<string, unknown>

/** Returns the OpenAPI 3.1 document of the endpoints. `publicUrl` is `{base_url}`. */
export function openApi(
  endpoints: readonly Endpoint[],
  actions: readonly Action[],
  { publicUrl, version }: { publicUrl: string; version: string }
): Json {
  const paths: Record<string, Json> = {}
  for (const endpoint of endpoints) {
    const path = templateOf(endpoint.path)
    paths[path] = { ...paths[path], [endpoint.method === 'POST' ? 'post' : 'get']: operation(endpoint) }
  }
  for (const action of actions) {
    const path = templateOf(action.path)
    paths[path] = { ...paths[path], [action.methods[0].toLowerCase()]: actionOperation(action) }
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Gamenet Stats', version, description: DESCRIPTION, license: { name: 'MIT', identifier: 'MIT' } },
    servers: [{ url: publicUrl }],
    tags: [...new Set([...endpoints, ...actions].flatMap(({ tags }) => tags))].map((name) => ({ name })),
    paths: { ...paths, ...HEALTH_PATHS },
    components: { schemas: { Error: ERROR }, headers: HEADERS, responses: RESPONSES, securitySchemes: SECURITY_SCHEMES }
  }
}

const DESCRIPTION = `Statistics about an online game network: counts of players and lobbies over time, live and per title.

All answers are JSON in UTF-8. Every answer that is not 2xx or 304 is \`{"error": "<sentence>"}\`. All GET routes answer
HEAD too. Unknown query parameters are ignored; a known one that is empty, malformed, out of range or given twice is 400.
Bodies are JSON and are taken as they are: "3" is no number.
Times are UTC. Send \`If-None-Match\` with the last \`ETag\`: as long as nothing has changed you get 304. A missing sample
is absent, never 0.`

function templateOf(path: string): string {
  return path.replace(/:(\w+)/g, '{$1}')
}

function operation(endpoint: Endpoint): Json {
  const { operationId, tags, summary, deprecated, method } = endpoint
  const description = descriptionOf(endpoint)
  return {
    operationId,
    tags,
    summary,
    ...(description === '' ? {} : { description }),
    ...(deprecated === undefined ? {} : { deprecated: true }),
    ...(method === 'POST' ? posted(endpoint) : { parameters: parametersOf(endpoint) }),
    ...(endpoint.answerTo === undefined ? {} : { security: [{}, ...SECURED, { sessionKeyInQuery: [] }] }),
    responses: {
      200: answered(endpoint),
      ...(method === 'POST' ? POST_RESPONSES : { 304: { $ref: '#/components/responses/NotModified' } }),
      400: { $ref: '#/components/responses/BadRequest' },
      ...refused(endpoint),
      414: { $ref: '#/components/responses/UriTooLong' },
      500: { $ref: '#/components/responses/Failed' },
      503: { $ref: '#/components/responses/Unavailable' }
    }
  }
}

function descriptionOf({ path, description }: Endpoint): string {
  const other = otherPath(path)
  const alias = other === undefined ? undefined : `\`${other}\` answers the same.`
  return [description, alias].filter((sentence) => sentence !== undefined).join(' ')
}

/** Describes an action under its first method; the description names the others, because ids are unique. */
function actionOperation(action: Action): Json {
  const { operationId, tags, summary, description, methods, parameters, path, response, example, refuses = {} } = action
  const others = methods.slice(1).map((method) => ` ${method} does the same.`)
  const { description: what = 'Done.', ...schema } = jsonSchema(response, 'output')
  return {
    operationId,
    tags,
    summary,
    description: `${description}${others.join('')}`,
    security: [...SECURED, {}],
    parameters: parametersOf({ input: parameters, path }),
    requestBody: { required: true, content: { 'application/json': bodyOf(action) } },
    responses: {
      200: {
        description: what,
        headers: refs('headers', ['Cache-Control', 'X-Request-Id']),
        content: { 'application/json': { schema, example } }
      },
      400: errorResponse(
        'A field is malformed, or there is no session key.',
        new Refusal('session_key_missing').message
      ),
      401: errorResponse('The session is invalid.', new Refusal('session_invalid').message),
      403: errorResponse(
        'The username has characters that look like others.',
        new Refusal('username_unstable', ['"ﬁsh"']).message
      ),
      ...refused({ refuses }),
      ...POST_RESPONSES,
      429: errorResponse(
        'The user has exceeded the configured number of writes per minute.',
        new Refusal('write_budget_spent', ['30', '2']).message,
        ['Retry-After']
      ),
      500: { $ref: '#/components/responses/Failed' },
      503: errorResponse('The session cannot be checked, or nothing can be stored.', new Refusal('auth_away').message, [
        'Retry-After'
      ])
    }
  }
}

function bodyOf({ body, bodyExample }: Action): Json {
  const { properties, ...schema } = jsonSchema(body, 'input')
  const sessionKey = { type: 'string', description: 'Replaces the header `X-Session-Key`, which takes precedence.' }
  return { schema: { ...schema, properties: { ...(properties as Json), sessionKey } }, example: bodyExample }
}

/** Returns path parameters as parameters, all other fields as the body. */
function posted({ input, path, bodyExample }: Endpoint): Json {
  const {
    properties = {},
    required = [],
    ...rest
  } = jsonSchema(input, 'input') as {
    properties?: Record<string, Json>
    required?: string[]
  }
  const isInBody = (name: string): boolean => !isPathParameter(name, path)
  const fields = Object.entries(properties).filter(([name]) => isInBody(name))
  const schema = { ...rest, properties: Object.fromEntries(fields), required: required.filter(isInBody) }
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
  return Object.entries(properties).map(([name, { description, example, ...schema }]) => {
    const isInPath = isPathParameter(name, path)
    return {
      name,
      in: isInPath ? 'path' : 'query',
      required: isInPath || (required.includes(name) && !('default' in schema)),
      ...(description === undefined ? {} : { description }),
      ...(example === undefined ? {} : { example }),
      schema
    }
  })
}

function isPathParameter(name: string, path: string): boolean {
  return new RegExp(`:${name}(?![A-Za-z0-9_])`).test(path)
}

function answered({ response, example, responseHeaders = {}, deprecated, method }: Endpoint): Json {
  const { description = 'The answer.', ...schema } = jsonSchema(response, 'output')
  const further = Object.entries(responseHeaders).map(([name, text]) => [
    name,
    { description: text, schema: { type: 'string' } }
  ])
  return {
    description,
    headers: {
      ...(method === 'POST' ? {} : refs('headers', ['ETag'])),
      ...refs('headers', ['X-Data-Version', 'Cache-Control', 'Age', 'X-Request-Id']),
      ...(deprecated === undefined ? {} : refs('headers', ['Deprecation', 'Link'])),
      ...Object.fromEntries(further)
    },
    content: { 'application/json': { schema, example } }
  }
}

function refused({ refuses = {} }: Pick<Endpoint, 'refuses'>): Json {
  return Object.fromEntries(
    Object.entries(refuses).map(([status, sentence]) => [status, errorResponse(sentence, `${sentence}`)])
  )
}

function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): Json {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any', target: 'draft-2020-12' })
  return rest
}

function refs(kind: string, names: readonly string[]): Json {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/${kind}/${name}` }]))
}

function errorResponse(description: string, error: string, headers: readonly string[] = []): Json {
  return {
    description,
    headers: refs('headers', ['X-Request-Id', ...headers]),
    content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' }, example: { error } } }
  }
}

const ERROR: Json = {
  type: 'object',
  description: 'Why there is no answer.',
  properties: { error: { type: 'string', description: 'One sentence for people; do not parse it.' } },
  required: ['error'],
  additionalProperties: false,
  example: { error: 'days must be an integer from 1 to 30; got "0".' }
}

const SECURED: Json[] = [{ sessionKey: [] }]
const SECURITY_SCHEMES: Json = {
  sessionKey: { type: 'apiKey', in: 'header', name: 'X-Session-Key', description: 'Issued by the auth service.' },
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
    'Seconds since the answer was computed; only when the tables are unavailable and the last answer is sent.',
    '42'
  ),
  'X-Request-Id': header('Identifies this request in the log of the service.', 'q3Zk0a1b.7f'),
  'Retry-After': header('Seconds after which a retry makes sense.', '1'),
  Allow: header('The methods that the path answers.', 'GET, HEAD, OPTIONS'),
  Deprecation: header('Since when the path is deprecated (RFC 9745).', '@1767225600'),
  Link: header('The path to use instead, with `rel="successor-version"`.', '</api/games>; rel="successor-version"')
}

const RESPONSES: Json = {
  NotModified: {
    description: 'Nothing has changed since the answer that `If-None-Match` names. No body.',
    headers: refs('headers', ['ETag', 'X-Data-Version', 'Cache-Control', 'X-Request-Id'])
  },
  BadRequest: errorResponse(
    'A parameter is malformed, out of range, empty or given twice.',
    String((ERROR.example as Json).error)
  ),
  UriTooLong: errorResponse('The path or query is too long.', 'The path or query is longer than 16384 characters.'),
  Failed: errorResponse(
    'The service failed; its log has the cause.',
    'The service failed; its log has the cause under request q3Zk0a1b.7f.'
  ),
  Unavailable: errorResponse(
    'The tables are unavailable, and no earlier answer is cached.',
    'The tables are unavailable at the moment; retry shortly.',
    ['Retry-After']
  )
}

const POST_RESPONSES: Json = {
  413: errorResponse('The body is too large.', 'The body is larger than 65536 bytes.'),
  415: errorResponse(
    'The body is not application/json.',
    'The body must be application/json, not compressed; got "text/xml".'
  )
}

const HEALTH_PATHS: Json = {
  '/healthz': { get: health('getHealth', 'Whether the process answers', 'ok') },
  '/readyz': {
    get: {
      ...health('getReadiness', 'Whether the service answers with data', 'ready'),
      responses: {
        ...(health('', '', 'ready').responses as Json),
        503: errorResponse(
          'It cannot; the sentence says why.',
          'The service is not ready: the tables are being created.',
          ['Retry-After']
        )
      }
    }
  }
}

function health(operationId: string, summary: string, status: string): Json {
  const schema = { type: 'object', properties: { status: { const: status } }, required: ['status'] }
  return {
    operationId,
    tags: ['Service'],
    summary,
    responses: {
      200: {
        description: 'Yes.',
        headers: refs('headers', ['X-Request-Id']),
        content: { 'application/json': { schema, example: { status } } }
      }
    }
  }
}

function header(description: string, example: string): Json {
  return { description, schema: { type: 'string' }, example }
}
