import swagger from '@fastify/swagger'
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Action, Endpoint } from '../answers/endpoint.js'
import { openApi } from '../open-api/document.js'
import { pathUnknown } from '../reply/errors.js'
import { JSON_TYPE, REVALIDATED } from '../reply/headers.js'
import { digestOf, namedTag } from '../request/etag.js'
import { addAssets } from './asset.js'
import { addErrorsPage } from './errors.js'
import { guides } from './guides.js'
import {
  type Described,
  type Frame,
  guidePage,
  llmsText,
  operationPage,
  operationText,
  type ReferencePage,
  referencePage
} from './reference.js'
import { readSampleValues, type SampleNeeds, type SignIn } from './sample-values.js'

const MARKDOWN = 'text/markdown; charset=utf-8'

/**
 * Adds `/openapi.json` and `/openapi.yaml`, their pages below `/docs`, `/llms.txt`, and the page of error codes.
 */
export async function addDocs(
  app: FastifyInstance,
  needs: SampleNeeds & {
    endpoints: readonly Endpoint[]
    actions: readonly Action[]
    publicUrl: string
    version: string
    signIn: SignIn
    frame: Frame
  }
): Promise<void> {
  const document = openApi(needs.endpoints, needs.actions, needs)
  await app.register(swagger, { mode: 'static', specification: { document: document as never } })
  const body = Buffer.from(JSON.stringify(app.swagger()))
  const tag = digestOf(body)
  const described = document as unknown as Described
  const headers = { ...needs.frame.headers, 'Cache-Control': 'no-cache' }
  const valuesNow = () => readSampleValues(needs, needs.signIn)
  const guidesNow = async () => await guides(needs.publicUrl, needs.version, await valuesNow())
  /** Sends a page, or the same as Markdown. */
  const send = (reply: FastifyReply, page: ReferencePage | string): FastifyReply =>
    typeof page === 'string'
      ? reply.type(MARKDOWN).send(page)
      : reply.headers(headers).send(needs.frame.documentOf(page))
  app.get('/openapi.json', async (request, reply) => {
    reply.headers({ 'Content-Type': JSON_TYPE, 'Cache-Control': REVALIDATED, ETag: `"${tag}"` })
    if (namedTag(request.headers['if-none-match'], tag) !== undefined) return reply.code(304).send()
    return reply.send(body)
  })
  app.get<{ Params: { name: string } }>('/docs/:name', async (request, reply) => {
    const { name, isText } = namedIn(request.params)
    const page = (isText ? operationText : operationPage)(described, name, await valuesNow())
    if (page === undefined) throw pathUnknown(request)
    return send(reply, page)
  })
  app.get<{ Params: { name: string } }>('/docs/guide/:name', async (request, reply) => {
    const { name, isText } = namedIn(request.params)
    const guide = (await guidesNow()).find(({ id }) => id === name)
    if (guide === undefined) throw pathUnknown(request)
    return send(reply, isText ? `# ${guide.title}\n${guide.text}\n` : guidePage(guide))
  })
  await addErrorsPage(app, needs.frame)
  const index = async () => needs.frame.documentOf(referencePage(described, await guidesNow()))
  await addAssets(app, [{ path: '/docs', content: index }], headers)
  const files = [
    { path: '/llms.txt', content: async () => llmsText(described, await guidesNow()) },
    { path: '/openapi.yaml', content: () => app.swagger({ yaml: true }) }
  ]
  await addAssets(app, files, { 'Cache-Control': 'no-cache' })
}

function namedIn({ name }: { readonly name: string }): { readonly name: string; readonly isText: boolean } {
  return { name: name.replace(/\.md$/, ''), isText: name.endsWith('.md') }
}
