import { METHODS } from 'node:http'
import { Refusal } from '@gamenet/schemas'
import type { FastifyInstance, RouteOptions } from 'fastify'
import { PREFLIGHT_HEADERS } from './headers.js'

/** The methods of each path with a route, collected as routes are added. */
export type PathMethods = Map<string, Set<string>>

/** Collects the methods of routes that are added from now on, including those of plugins. */
export function gatherPathMethods(app: FastifyInstance): PathMethods {
  const paths: PathMethods = new Map()
  app.addHook('onRoute', ({ url, method }: RouteOptions & { url: string }) => {
    const methods = paths.get(url) ?? new Set<string>()
    for (const each of [method].flat()) methods.add(each.toUpperCase())
    paths.set(url, methods)
  })
  return paths
}

/** Adds answers for the other methods of the paths: OPTIONS lists the allowed ones, all others get 405. */
export function addOtherMethods(app: FastifyInstance, paths: PathMethods): void {
  const known = METHODS.filter((method) => method !== 'CONNECT')
  for (const method of known) {
    if (!app.supportedMethods.includes(method)) app.addHttpMethod(method, { hasBody: false })
  }
  for (const [url, methods] of [...paths]) {
    if (url === '*' || url === '/*') continue
    const allowed = [...new Set([...methods, ...(methods.has('GET') ? ['HEAD'] : []), 'OPTIONS'])].sort().join(', ')
    if (!methods.has('OPTIONS')) {
      app.options(url, async (_request, reply) => {
        await reply
          .code(204)
          .headers({ Allow: allowed, 'Access-Control-Allow-Methods': allowed, ...PREFLIGHT_HEADERS })
          .send()
      })
    }
    const others = known.filter((method) => method !== 'OPTIONS' && !methods.has(method))
    // Refused before the body is read.
    app.route({
      url,
      method: others.filter((method) => !(method === 'HEAD' && methods.has('GET'))),
      onRequest: async (request, reply) => {
        void reply.header('Allow', allowed)
        throw new Refusal('method_not_allowed', [request.method, allowed])
      },
      handler: async () => undefined
    })
  }
}
