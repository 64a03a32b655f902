import swagger from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'
import type { Action, Endpoint } from '../answers/endpoint.js'
import { openApi } from '../open-api/document.js'
import { pathUnknown } from '../reply/errors.js'
import { JSON_TYPE, REVALIDATED } from '../reply/headers.js'
import { digestOf, namedTag } from '../request/etag.js'
import { addAssets } from './asset.js'
import { addErrorsPage } from './errors.js'
import { guides } from './guides.js'
import { type Described, guidePage, llmsText, operationPage, operationText, referencePage } from './reference.js'
import { REFERENCE_STYLE } from './reference-style.js'
import { readSampleValues, type SampleNeeds, type SignIn } from './sample-values.js'

const HTML = 'text/html; charset=utf-8'
const DOCS_HEADERS = {
  'Cache-Control': 'no-cache',
  'Content-Security-Policy':
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

/**
 * Adds `/openapi.json` and `/openapi.yaml`, their page at `/docs`, `/llms.txt`, and the page of error codes.
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
  const document = openApi(needs.endpoints, needs.actions, needs)
  await app.register(swagger, { mode: 'static', specification: { document: document as never } })
  const body = Buffer.from(JSON.stringify(app.swagger()))
  const tag = digestOf(body)
  const described = document as unknown as Described
  const withValues = (page: typeof referencePage) => async () => {
    const values = await readSampleValues(needs, needs.signIn)
    return page(described, guides(needs.publicUrl, needs.version, values), values)
  }
  app.get('/openapi.json', async (request, reply) => {
    reply.headers({ 'Content-Type': JSON_TYPE, 'Cache-Control': REVALIDATED, ETag: `"${tag}"` })
    if (namedTag(request.headers['if-none-match'], tag) !== undefined) return reply.code(304).send()
    return reply.send(body)
  })
  await addErrorsPage(app)
  app.get<{ Params: { operation: string } }>('/docs/:operation', async (request, reply) => {
    const [, operation = '', isText] = /^(.*?)(\.md)?$/.exec(request.params.operation) ?? []
    const values = await readSampleValues(needs, needs.signIn)
    const page =
      isText === undefined ? operationPage(described, operation, values) : operationText(described, operation, values)
    if (page === undefined) throw pathUnknown(request)
    return reply
      .headers(DOCS_HEADERS)
      .type(isText === undefined ? HTML : 'text/markdown; charset=utf-8')
      .send(page)
  })
  app.get<{ Params: { name: string } }>('/docs/guide/:name', async (request, reply) => {
    const [, name, isText] = /^(.*?)(\.md)?$/.exec(request.params.name) ?? []
    const values = await readSampleValues(needs, needs.signIn)
    const guide = guides(needs.publicUrl, needs.version, values).find(({ id }) => id === name)
    if (guide === undefined) throw pathUnknown(request)
    if (isText !== undefined)
      return reply.type('text/markdown; charset=utf-8').send(`# ${guide.title}\n${guide.text}\n`)
    return reply.headers(DOCS_HEADERS).type(HTML).send(guidePage(described, guide))
  })
  await addAssets(
    app,
    [
      { path: '/docs', content: withValues(referencePage) },
      { path: '/docs/reference.css', content: REFERENCE_STYLE },
      { path: '/llms.txt', content: withValues(llmsText) },
      { path: '/openapi.yaml', content: () => app.swagger({ yaml: true }) }
    ],
    DOCS_HEADERS
  )
}
