import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import { type Coding, digestOf, etagOf, namedTag } from '../../answers/etag.js'
import { codingOf } from '../request/accept-encoding.js'

/** A static answer: the path, and its content as a text or a file. */
export type Asset = { readonly path: string; readonly content: string | URL }

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
 * Serves assets with these headers, an ETag and compression. Contents are read and compressed once, here. The extension
 * of the path determines the type; a path without one is a page. Rejects when a file is missing.
 */
export async function addAssets(
  app: FastifyInstance,
  assets: readonly Asset[],
  headers: Readonly<Record<string, string>>
): Promise<void> {
  const all = await Promise.all(assets.map(async (asset) => ({ ...asset, ...(await bodiesOf(asset)) })))
  for (const { path, type, identity, bodies } of all) {
    app.get(path, async (request, reply) => {
      const coding = codingOf(request.headers)
      reply.headers({ ...headers, 'Content-Type': type, Vary: 'Accept-Encoding' })
      const { 'if-none-match': ifNoneMatch } = request.headers
      const tag = ifNoneMatch === undefined ? undefined : namedTag(ifNoneMatch, identity)
      if (tag !== undefined) return reply.code(304).header('ETag', tag).send()
      reply.header('ETag', etagOf(identity, coding))
      if (coding !== 'identity') reply.header('Content-Encoding', coding)
      return reply.send(bodies[coding])
    })
  }
}

async function bodiesOf({ path, content }: Asset) {
  const extension = /\.(\w+)$/.exec(path)?.[1] ?? 'html'
  const type = TYPES[extension]
  if (type === undefined) {
    throw new Error(`${path} ends in .${extension}; expected one of ${Object.keys(TYPES).join(', ')}`)
  }
  const body = typeof content === 'string' ? Buffer.from(content) : await readFile(content)
  const [packed, gzipped] = await Promise.all([
    promisify(brotliCompress)(body, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } }),
    promisify(gzip)(body)
  ])
  const identity = digestOf(body)
  const bodies: Readonly<Record<Coding, Buffer>> = { identity: body, gzip: gzipped, br: packed }
  return { type, identity, bodies }
}
