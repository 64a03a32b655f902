import Fastify, { type FastifyInstance } from 'fastify'
import type { Json } from '../../answers/components.js'
import type { Action, Endpoint } from '../../answers/endpoint.js'
import { openApi } from '../open-api/document.js'
import { JSON_TYPE, REVALIDATED } from '../reply/headers.js'
import { digestOf, namedTag } from '../request/etag.js'
import { addAssets, once } from './asset.js'
import { addErrorsPage } from './errors.js'
import { guides } from './guides.js'
import { type Described, llmsText, referencePage } from './reference.js'
import { REFERENCE_STYLE } from './reference-style.js'
import { readSampleValues, type SampleNeeds, type SignIn } from './sample-values.js'

const DOCS_HEADERS = {
  'Cache-Control': 'no-cache',
  'Content-Security-Policy':
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

/**
 * Adds `/openapi.json` and `/openapi.yaml`, their page at `/docs`, `/llms.txt`, and the page of error codes. The
 * description is made for the first request, because it takes a sixth of a second.
 */
export async function addDocs(
  app: FastifyInstance,
  needs: SampleNeeds & {
    endpoints: readonly Endpoint[]
    actions: readonly Action[]
    publicUrl: string
    version: string
    signIn: SignIn
  }
): Promise<void> {
  const made = once(() => {
    const document = openApi(needs.endpoints, needs.actions, needs)
    const body = Buffer.from(JSON.stringify(document))
    return { document, body, tag: digestOf(body), described: document as unknown as Described }
  })
  const withValues = (page: typeof referencePage) => async () => {
    const values = await readSampleValues(needs, needs.signIn)
    return page(made().described, guides(needs.publicUrl, needs.version, values), values)
  }
  app.get('/openapi.json', async (request, reply) => {
    const { body, tag } = made()
    reply.headers({ 'Content-Type': JSON_TYPE, 'Cache-Control': REVALIDATED, ETag: `"${tag}"` })
    if (namedTag(request.headers['if-none-match'], tag) !== undefined) return reply.code(304).send()
    return reply.send(body)
  })
  await addErrorsPage(app)
  await addAssets(
    app,
    [
      { path: '/docs', content: withValues(referencePage) },
      { path: '/docs/reference.css', content: REFERENCE_STYLE },
      { path: '/llms.txt', content: withValues(llmsText) },
      { path: '/openapi.yaml', content: once(() => yamlOf(made().document)) }
    ],
    DOCS_HEADERS
  )
}

async function yamlOf(document: Json): Promise<string> {
  const { default: swagger } = await import('@fastify/swagger')
  const app = Fastify()
  await app.register(swagger, { mode: 'static', specification: { document: document as never } })
  await app.ready()
  return app.swagger({ yaml: true })
}
