import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import type { Action, Endpoint } from '../../answers/endpoint.js'
import { digestOf, namedTag } from '../../answers/etag.js'
import { openApi } from '../open-api/document.js'
import { JSON_TYPE, REVALIDATED } from '../reply/headers.js'
import { addErrorsPage } from './errors.js'

/**
 * The page at /docs loads nothing from other hosts, runs no inline script and cannot be framed. Swagger UI needs style
 * attributes and data: URLs for icons.
 */
const DOCS_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; " +
  "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** Adds `/openapi.json`, its page at `/docs`, and the page of error codes. */
export async function addDocs(
  app: FastifyInstance,
  needs: { endpoints: readonly Endpoint[]; actions?: readonly Action[]; publicUrl: string; version: string }
): Promise<void> {
  const document = openApi(needs.endpoints, needs.actions ?? [], needs)
  const body = Buffer.from(JSON.stringify(document))
  const tag = digestOf(body)
  app.get('/openapi.json', async (request, reply) => {
    reply.headers({ 'Content-Type': JSON_TYPE, 'Cache-Control': REVALIDATED, ETag: `"${tag}"` })
    const ifNoneMatch = request.headers['if-none-match']
    if (ifNoneMatch !== undefined && namedTag(ifNoneMatch, tag) !== undefined) return reply.code(304).send()
    return reply.send(body)
  })
  await addErrorsPage(app)
  await app.register(swagger, { mode: 'static', specification: { document: document as never } })
  await app.register(swaggerUi, {
    routePrefix: '/docs',
    staticCSP: DOCS_POLICY,
    theme: { title: 'Gamenet Stats API' },
    uiConfig: { docExpansion: 'list', deepLinking: true, tryItOutEnabled: true }
  })
}
