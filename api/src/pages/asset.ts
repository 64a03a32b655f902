import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import { codingOf } from '../request/accept-encoding.js'
import { type Coding, digestOf, etagOf, namedTag } from '../request/etag.js'

/** A page: the path, and its content as a text, a file, or what makes the text for a request. */
export type Asset = { readonly path: string; readonly content: string | URL | (() => string | Promise<string>) }

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  mjs: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
  txt: 'text/plain; charset=utf-8',
  yaml: 'application/yaml'
}
const BROTLI_QUALITY = 9

/**
 * Serves assets with these headers, an ETag and compression. Files are read here; each is compressed for the first
 * request that wants it, since that takes 0.1 s of processor time for a large page. The extension of the path
 * determines the type; a path without one is a page. Rejects when a file is missing.
 */
export async function addAssets(
  app: FastifyInstance,
  assets: readonly Asset[],
  headers: Readonly<Record<string, string>>
): Promise<void> {
  const all = await Promise.all(assets.map(async ({ path, content }) => ({ path, page: await pageOf(content) })))
  for (const { path, page } of all) {
    const type = typeOf(path)
    app.get(path, async (request, reply) => {
      const { identity, bodies } = await page()
      const coding = codingOf(request.headers)
      reply.headers({ ...headers, 'Content-Type': type, Vary: 'Accept-Encoding' })
      const tag = namedTag(request.headers['if-none-match'], identity)
      if (tag !== undefined) return reply.code(304).header('ETag', tag).send()
      reply.header('ETag', etagOf(identity, coding))
      if (coding !== 'identity') reply.header('Content-Encoding', coding)
      return reply.send(await bodies[coding]())
    })
  }
}

function typeOf(path: string): string {
  const extension = /\.(\w+)$/.exec(path)?.[1] ?? 'html'
  const type = TYPES[extension]
  if (type !== undefined) return type
  throw new Error(`${path} ends in .${extension}; expected one of ${Object.keys(TYPES).join(', ')}`)
}

/** Returns the page; it is digested and compressed again only when its text has changed. */
async function pageOf(content: Asset['content']) {
  const fixed =
    typeof content === 'function' ? undefined : content instanceof URL ? await readFile(content) : Buffer.from(content)
  let made: ReturnType<typeof bodiesOf> | undefined
  return async () => {
    const identity = fixed ?? Buffer.from(typeof content === 'function' ? await content() : '')
    if (made === undefined || (fixed === undefined && !made.bytes.equals(identity))) made = bodiesOf(identity)
    return made
  }
}

function bodiesOf(bytes: Buffer) {
  const bodies: Readonly<Record<Coding, () => Buffer | Promise<Buffer>>> = {
    identity: () => bytes,
    gzip: once(() => promisify(gzip)(bytes)),
    br: once(() => promisify(brotliCompress)(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } }))
  }
  return { bytes, identity: digestOf(bytes), bodies }
}

/** Returns what makes the result at the first call. */
export function once<Result>(make: () => Result): () => Result {
  let made: { readonly result: Result } | undefined
  return () => {
    made ??= { result: make() }
    return made.result
  }
}
