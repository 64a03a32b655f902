import { readdir, readFile } from 'node:fs/promises'
import type { Refusal } from '@gamenet/schemas'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { addAssets } from '../pages/asset.js'
import { digestOf } from '../request/etag.js'
import { weightsOf } from '../request/weights.js'
import { addDataPage } from './data-page.js'
import { errorDocument } from './error-page.js'
import { addFiles, type FilesNeeds } from './files.js'
import { addImages, type ImageNeeds } from './images/images.js'
import { pageHeaders } from './page-headers.js'
import { Redirect, type SiteFacts } from './values/page.js'

/** The compiled site and its sources, from `api/dist/src/site`. */
const ISLANDS = new URL('../../islands/', import.meta.url)
const COMPILED = new URL('./', import.meta.url)
const STYLE = new URL('../../../src/site/site.css', import.meta.url)
const ICON = new URL('../../../src/site/icon.svg', import.meta.url)

/**
 * Modules that every page needs, in the order of their use: served as one file, because each request costs a slow phone
 * 150 ms. Their top-level names differ, which a test shows.
 */
const ON_EVERY_PAGE = ['service.js', 'local.js', 'live.js', 'suggest.js', 'lists.js', 'site.js']
const OWN_IMPORT = /^import .* from '\.\/(?:service|local|live|suggest|lists)\.js';?\n/gm

/** The address of an asset changes with its content. */
const FOREVER = { 'Cache-Control': 'public, max-age=31536000, immutable' } as const

type Asset = { readonly name: string; readonly content: string }

/** What the site serves besides pages, read once. */
export type Site = { readonly facts: SiteFacts; readonly assets: readonly Asset[]; readonly icon: string }

/** Reads styles and islands. The build is a digest of everything that decides how pages look. */
export async function readSite(facts: Omit<SiteFacts, 'build'>): Promise<Site> {
  const [style, icon] = await Promise.all([readFile(STYLE, 'utf8'), readFile(ICON, 'utf8')])
  const names = (await readdir(ISLANDS)).filter((name) => name.endsWith('.js')).sort()
  const sources = new Map(
    await Promise.all(names.map(async (name) => [name, await readFile(new URL(name, ISLANDS), 'utf8')] as const))
  )
  const assets = [
    ...[...sources]
      .filter(([name]) => !ON_EVERY_PAGE.includes(name))
      .map(([name, source]) => ({
        name,
        content: source.replace(OWN_IMPORT, (line) => line.replace(/'[^']+'/, "'./site.js'"))
      })),
    { name: 'site.js', content: ON_EVERY_PAGE.map((name) => sources.get(name)?.replace(OWN_IMPORT, '')).join('\n') },
    { name: 'site.css', content: style }
  ]
  const compiled = (await readdir(COMPILED, { recursive: true })).filter((name) => name.endsWith('.js')).sort()
  const code = await Promise.all(compiled.map((name) => readFile(new URL(name, COMPILED), 'utf8')))
  const build = digestOf([...assets.map(({ content }) => content), ...code].join('\n'), 12)
  return { facts: { ...facts, build }, assets, icon }
}

/** Adds what the site serves besides its pages. */
export async function addSite(
  app: FastifyInstance,
  { facts, assets, icon }: Site,
  needs: FilesNeeds & ImageNeeds
): Promise<void> {
  addFiles(app, needs)
  addImages(app, needs)
  addDataPage(app, facts, needs.publicUrl)
  await addAssets(
    app,
    assets.map(({ name, content }) => ({ path: `/site/${facts.build}/${name}`, content })),
    FOREVER
  )
  await addAssets(app, [{ path: '/icon.svg', content: icon }], { 'Cache-Control': 'public, max-age=86400' })
}

/** Returns the answer to an error as a page, for clients that prefer one; none below `/api`. */
export function errorPage(
  site: SiteFacts,
  refusal: Refusal,
  { raw, headers, server }: Pick<FastifyRequest, 'raw' | 'headers' | 'server'>
): Promise<{ body: string; headers: Record<string, string> }> | undefined {
  const path = raw.url ?? '/'
  if (path.startsWith('/api/') || !prefersHtml(headers.accept)) return undefined
  const sent = { ...pageHeaders(site), 'Cache-Control': 'no-store', 'X-Error-Code': refusal.code }
  return errorDocument(refusal, path, site, server).then((body) => ({ body, headers: sent }))
}

/** Sends a reader to the address of a page; returns undefined for other errors. */
export function sendRedirect(error: unknown, reply: FastifyReply): FastifyReply | undefined {
  if (!(error instanceof Redirect)) return undefined
  return reply.code(error.status).header('Location', error.location).header('Cache-Control', 'no-cache').send()
}

function prefersHtml(accept = ''): boolean {
  const weights = weightsOf(accept)
  const html = weights.get('text/html') ?? 0
  return html > 0 && html >= (weights.get('application/json') ?? 0)
}
