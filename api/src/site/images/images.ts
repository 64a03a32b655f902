import { lookup } from 'node:dns'
import type { LookupFunction } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { LRUCache } from 'lru-cache'
import { Agent, request } from 'undici'
import type { Catalog } from '../../queries/catalog.js'
import { digestOf, namedTag } from '../../request/etag.js'
import { isPublicHost } from '../../request/public-address.js'
import { imageKey } from '../components/image-path.js'
import { letterOf } from '../components/text.js'

const BYTES_MAX = 256 * 1024
/** Of all kept pictures together. */
const KEPT_BYTES_MAX = 32 * 1024 * 1024
const TIMEOUT_MS = 5000
const REDIRECTS_MAX = 3
/** A picture that could not be fetched is not asked for again before. */
const RETRY_MS = 5 * 60_000
const TYPE = /^image\/(?:png|jpeg|gif|webp|svg\+xml|x-icon|vnd\.microsoft\.icon)$/
const SAFE = {
  'Content-Security-Policy': "sandbox; default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
} as const

type Picture = { readonly type: string; readonly bytes: Buffer; readonly isDrawn: boolean }
type Named = { readonly url: string; readonly name: string }

export type ImageNeeds = {
  /** The titles, whose pictures are the only ones that are fetched. */
  readonly titles: () => Promise<Catalog>
  /** The configured upstream, which may be in a private network. */
  readonly upstream: string | undefined
}

/**
 * Serves the pictures of games under addresses of this service, so that no reader's browser asks another host. Each is
 * fetched once; a drawn letter stands where there is none.
 */
export function addImages(app: FastifyInstance, { titles, upstream }: ImageNeeds): void {
  const kept = new LRUCache<string, Picture>({
    maxSize: KEPT_BYTES_MAX,
    sizeCalculation: ({ bytes }) => bytes.length + 1
  })
  const pending = new Map<string, Promise<Picture>>()
  const origin = upstream === undefined ? undefined : new URL(upstream).origin
  const open = new Agent({ connections: 8 })
  const publicOnly = new Agent({ connections: 8, connect: { lookup: publicLookup } })
  app.addHook('onClose', () => Promise.all([open.destroy(), publicOnly.destroy()]))
  const named = namesByKey()

  const fetched = async ({ url, name }: Named): Promise<Picture> => {
    try {
      return await fetchPicture(url, (to) => {
        if (to.origin === origin) return open
        if (!isPublicHost(to)) throw new Error(`${to.hostname} is not a public address`)
        return publicOnly
      })
    } catch {
      return { type: 'image/svg+xml', bytes: Buffer.from(letterPicture(name)), isDrawn: true }
    }
  }
  app.get<{ Params: { key: string } }>('/img/:key', async (request, reply) => {
    const { key } = request.params
    const of = named(await titles()).get(key)
    let picture = kept.get(key)
    if (picture === undefined && of !== undefined) {
      const making = pending.get(key) ?? fetched(of).finally(() => pending.delete(key))
      pending.set(key, making)
      picture = await making
      kept.set(key, picture, picture.isDrawn ? { ttl: RETRY_MS } : {})
    }
    if (picture === undefined || of === undefined) {
      return reply.callNotFound()
    }
    const identity = digestOf(picture.bytes)
    const maxAge = picture.isDrawn ? 300 : 86_400
    reply.headers({ ...SAFE, 'Cache-Control': `public, max-age=${maxAge}`, ETag: `"${identity}"` })
    if (namedTag(request.headers['if-none-match'], identity) !== undefined) return reply.code(304).send()
    return reply.type(picture.type).send(picture.bytes)
  })
}

/** Returns the pictures of a catalog by their keys; made again only for another catalog. */
function namesByKey(): (titles: Catalog) => ReadonlyMap<string, Named> {
  let made: { readonly titles: Catalog; readonly names: ReadonlyMap<string, Named> } | undefined
  return (titles) => {
    if (made?.titles !== titles) {
      const named = titles.described().filter(({ image }) => image !== '')
      made = { titles, names: new Map(named.map(({ image, name }) => [imageKey(image), { url: image, name }])) }
    }
    return made.names
  }
}

async function fetchPicture(url: string, agentFor: (url: URL) => Agent): Promise<Picture> {
  let target = new URL(url)
  for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects += 1) {
    const { statusCode, headers, body } = await request(target, {
      dispatcher: agentFor(target),
      headers: { Accept: 'image/*' },
      signal: AbortSignal.timeout(TIMEOUT_MS)
    })
    const { location, 'content-type': type = '' } = headers
    if (statusCode >= 300 && statusCode < 400 && typeof location === 'string') {
      await body.dump()
      target = new URL(location, target)
      continue
    }
    const [plain = ''] = String(type).split(';')
    if (statusCode !== 200 || !TYPE.test(plain.trim())) {
      await body.dump()
      throw new Error(`the answer is of status ${statusCode} and type ${plain}`)
    }
    const chunks: Buffer[] = []
    let bytes = 0
    for await (const chunk of body) {
      bytes += chunk.length
      if (bytes > BYTES_MAX) throw new Error(`the picture has more than ${BYTES_MAX} bytes`)
      chunks.push(chunk)
    }
    return { type: plain.trim(), bytes: Buffer.concat(chunks), isDrawn: false }
  }
  throw new Error('too many redirects')
}

/** Resolves names to public addresses only; the connection goes to the address that was checked. */
const publicLookup: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, addresses) => {
    const allowed = (addresses ?? []).filter(({ address, family }) =>
      isPublicHost(new URL(`http://${family === 6 ? `[${address}]` : address}`))
    )
    const [first] = allowed
    if (error !== null) callback(error, [])
    else if (first === undefined) callback(new Error(`${hostname} has no public address`), [])
    else if (options.all === true) callback(null, allowed)
    else callback(null, first.address, first.family)
  })
}

function letterPicture(name: string): string {
  const letter = letterOf(name).replace(/[&<>"]/g, '·')
  return (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64">' +
    '<rect width="64" height="64" rx="12" fill="#5b6b7f"/>' +
    '<text x="32" y="44" font-family="sans-serif" font-size="34" text-anchor="middle" fill="#fff">' +
    `${letter}</text></svg>\n`
  )
}
