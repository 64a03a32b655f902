import { type RefusalCode, refusals } from '@gamenet/schemas'
import { type Components, type Json, pascal } from '../answers/components.js'
import { type Action, type Endpoint, pathParameters } from '../answers/endpoint.js'
import { KNOWN_AT } from '../request/parameters.js'

const ALL: readonly RefusalCode[] = ['uri_too_long', 'internal']
const TABLES: readonly RefusalCode[] = ['engine_busy', 'engine_away', 'data_damaged', 'disk_full']
const BODY: readonly RefusalCode[] = [
  'json_malformed',
  'body_encoding_invalid',
  'body_too_large',
  'media_type_unsupported'
]
const FILES: readonly RefusalCode[] = [
  'precondition_failed',
  'range_unsatisfiable',
  'exports_per_address',
  'exports_full'
]
const SESSION: readonly RefusalCode[] = [
  'session_key_missing',
  'session_invalid',
  'session_checks_spent',
  'username_unstable',
  'write_budget_spent',
  'auth_away',
  'erasure_in_progress'
]

/**
 * Returns the refusals of a route, except those of a connection, which has no route (`request_malformed`,
 * `request_timeout`).
 */
export function refusalCodes(route: Endpoint | Action): readonly RefusalCode[] {
  const isAction = 'act' in route
  const names = Object.keys((isAction ? route.parameters : route.input).shape)
  const hasBody = isAction || route.method === 'POST'
  return [
    ...new Set<RefusalCode>([
      ...(hasBody ? BODY : (['query_encoding_invalid'] as const)),
      ...(hasBody || names.length > 0 || (!isAction && route.table !== undefined)
        ? (['request_invalid'] as const)
        : []),
      ...(hasBody ? [] : ([names.includes(KNOWN_AT) ? 'instant_in_future' : 'known_at_unsupported'] as const)),
      ...(pathParameters(route.path).size > 0 ? (['path_encoding_invalid'] as const) : []),
      ...(names.includes('titleId') ? (['title_unknown', 'game_unknown'] as const) : []),
      ...(!hasBody && !isAction && route.table !== undefined ? FILES : []),
      ...(isAction ? SESSION : []),
      ...(route.refuses ?? []),
      ...ALL,
      ...TABLES
    ])
  ]
}

/** Returns the responses of refusals by status. Equal ones are one component. */
export function refused(codes: readonly RefusalCode[], components: Components): Json {
  const statuses = [...new Set(codes.map((code) => refusals[code].status))]
  return Object.fromEntries(
    statuses.map((status) => {
      const ofStatus = codes.filter((code) => refusals[code].status === status)
      return [status, components.response(ofStatus.map(pascal).join('Or'), refusedBy(ofStatus, status))]
    })
  )
}

function refusedBy(codes: readonly RefusalCode[], status: number): Json {
  const headers = ['X-Error-Code', 'X-Request-Id', ...(status === 429 || status === 503 ? ['Retry-After'] : [])]
  const examples = Object.fromEntries(codes.map((code) => [code, { value: { error: exampleOf(code) } }]))
  return {
    description: codes.map((code) => `\`${code}\`: ${refusals[code].when}.`).join('\n\n'),
    headers: {
      ...Object.fromEntries(headers.map((name) => [name, { $ref: `#/components/headers/${name}` }])),
      Link: { $ref: '#/components/headers/ErrorLink' }
    },
    content: {
      'application/json': { schema: { $ref: '#/components/schemas/Error' }, examples },
      'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } }
    }
  }
}

/** Returns an example of the refusal's sentence. */
function exampleOf(code: RefusalCode): string {
  const refusal: { readonly message: string; readonly example?: string } = refusals[code]
  return refusal.example ?? refusal.message
}
