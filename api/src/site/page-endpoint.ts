import { setMaxListeners } from 'node:events'
import { Refusal } from '@gamenet/schemas'
import { z } from 'zod'
import type { AnswerContext, Endpoint, EndpointResult } from '../answers/endpoint.js'
import type { ResolvedUrl } from '../answers/resolved-url.js'
import type { PartAnswers } from '../http/pipeline.js'
import { documentOf } from './layout.js'
import { pageHeaders, pictureHeaders } from './page-headers.js'
import type { PngMaker } from './pictures/png.js'
import { type Page, type Part, type Query, queryOf, type Resolved, type SiteFacts } from './values/page.js'

/** A part with what its question resolved to; undefined where an optional one was refused. */
type ResolvedPart = Part<unknown> & { readonly name: string; readonly url: ResolvedUrl | undefined }

/** The questions of a page, resolved. Its JSON, from which the ETag is made, has the identity of each. */
type ResolvedPage = {
  readonly input: unknown
  readonly query: Query
  readonly parts: readonly ResolvedPart[]
  readonly toJSON: () => unknown
}

export type PageNeeds = { readonly answers: PartAnswers; readonly site: SiteFacts; readonly png: PngMaker }

/** Returns a page as an endpoint: the pipeline adds ETag, 304, the cache, compression and HEAD as for every answer. */
export function pageEndpoint(page: Page, needs: PageNeeds): Endpoint {
  const { answers, site } = needs
  const [, extension] = /\.(svg|png)$/.exec(page.path) ?? []
  const headers =
    extension === undefined ? pageHeaders(site, page.path.startsWith('/embed/')) : pictureHeaders(extension)
  const endpoint: Endpoint<unknown, ResolvedPage> = {
    operationId: page.name,
    path: page.path,
    tags: [],
    summary: page.name,
    // A GET form sends its empty fields too.
    input: Object.assign(z.preprocess(withoutBlanks, page.input), { shape: page.input.shape }),
    response: z.unknown(),
    resolve: async (input, context) => {
      const query = queryOf(page, input)
      const parts = Object.entries(await page.parts(input, { ...context, query }))
      const resolved = await Promise.all(
        parts.flatMap(([name, part]) =>
          part === undefined ? [] : [resolvedUrl(part, answers).then((url) => ({ ...part, name, url }))]
        )
      )
      // The build of the site and PUBLIC_URL are in the HTML, too.
      const identity = [input, resolved.map(({ name, url }) => [name, url?.identity]), site]
      return { input, query, parts: resolved, toJSON: () => identity }
    },
    reads: ({ parts }) => parts.flatMap(({ endpoint, url }) => (url === undefined ? [] : endpoint.reads(url.resolved))),
    headers: () => headers,
    answer: (resolved, context) => render(page, resolved, needs, context)
  }
  return endpoint as unknown as Endpoint
}

function withoutBlanks(given: unknown): unknown {
  return Object.fromEntries(Object.entries(given as object).filter(([, value]) => value !== ''))
}

async function resolvedUrl({ endpoint, given, isOptional }: Part<unknown>, answers: PartAnswers) {
  try {
    return await answers.resolve(endpoint, given)
  } catch (error) {
    if (isOptional && error instanceof Refusal && error.status < 500) return undefined
    throw error
  }
}

async function render(
  page: Page,
  { input, query, parts }: ResolvedPage,
  { answers, site, png }: PageNeeds,
  { signal }: AnswerContext
): Promise<EndpointResult> {
  // Each part listens; a page has more parts than Node expects listeners.
  setMaxListeners(0, signal)
  const found = await Promise.all(
    parts.map(async ({ name, endpoint, url, isOptional }) => {
      try {
        if (url === undefined) return { name }
        const { answer, isLast } = await answers.find(endpoint, url, signal)
        const body: unknown = JSON.parse(new TextDecoder().decode(answer.body))
        const resolved = resolvedOf(url, answer.headers)
        return {
          name,
          body,
          resolved,
          isPassing: isLast || answer.isProvisional,
          lastMs: isLast ? answer.createdAtMs : undefined
        }
      } catch (error) {
        if (!isOptional || signal.aborted || !(error instanceof Refusal)) throw error
        return { name, isPassing: error.status >= 500, failure: error.status >= 500 ? error.message : undefined }
      }
    })
  )
  const view = page.view(Object.fromEntries(found.map(({ name, body }) => [name, body])), input, {
    site,
    query,
    resolved: Object.fromEntries(found.map(({ name, resolved }) => [name, resolved ?? NOTHING]))
  })
  const isProvisional = found.some(({ isPassing }) => isPassing === true)
  if ('svg' in view) {
    const body = page.path.endsWith('.png') ? await png.make(view.svg) : Buffer.from(view.svg)
    return { body, isProvisional }
  }
  const lasts = found.flatMap(({ lastMs }) => lastMs ?? [])
  const html = documentOf({ isUnlisted: Object.keys(query).length > 0, ...view }, site, {
    lastMs: lasts.length === 0 ? undefined : Math.min(...lasts),
    failures: [...new Set(found.flatMap(({ failure }) => failure ?? []))]
  })
  return { body: Buffer.from(html), isProvisional }
}

const NOTHING: Resolved = { resolutionSeconds: 0 }

function resolvedOf({ resolved }: ResolvedUrl, headers: Readonly<Record<string, string>>): Resolved {
  const { fromMs: readFromMs, shownFrom, toMs } = resolved as { fromMs?: number; shownFrom?: string; toMs?: number }
  // A calendar reads a year more than it shows, for comparisons.
  const fromMs = shownFrom === undefined ? readFromMs : Date.parse(shownFrom)
  return { fromMs, toMs, resolutionSeconds: Number(headers['X-Resolution-Seconds'] ?? 0) }
}
