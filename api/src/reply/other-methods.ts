import { Refusal } from '@gamenet/schemas'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { PREFLIGHT_HEADERS } from './headers.js'

/** The methods that routes have. */
const METHODS = ['DELETE', 'GET', 'HEAD', 'PATCH', 'POST', 'PUT'] as const
/** The methods that any route accepts, for `OPTIONS *`. */
export const SERVER_METHODS = [...METHODS, 'OPTIONS'].sort().join(', ')

/**
 * Answers a request whose path has routes for other methods: OPTIONS lists the allowed ones, all others get 405, before
 * the body is read. Returns false for other requests. Routes for each refused method would take half of the time in
 * which the API opens.
 */
export function answersOtherMethod(app: FastifyInstance, request: FastifyRequest, reply: FastifyReply): boolean {
  const { url = '' } = request.raw
  if (!request.is404 || url === '*') return false
  const methods = METHODS.filter((method) => app.findRoute({ method, url }) !== null)
  if (methods.length === 0) return false
  const allowed = [...methods, 'OPTIONS'].sort().join(', ')
  void reply.header('Allow', allowed)
  if (request.method !== 'OPTIONS') throw new Refusal('method_not_allowed', [request.method, allowed])
  void reply
    .code(204)
    .headers({ 'Access-Control-Allow-Methods': allowed, ...PREFLIGHT_HEADERS })
    .send()
  return true
}
