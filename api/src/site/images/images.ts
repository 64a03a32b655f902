import { lookup } from 'node:dns'
import type { LookupFunction } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { LRUCache } from 'lru-cache'
import { Agent, type Dispatcher, interceptors, Pool, request } from 'undici'
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
  const agent = pictureAgent(upstream === undefined ? undefined : new URL(upstream).origin)
  app.addHook('onClose', () => agent.destroy())
  const kept = new LRUCache<string, Picture, Named>({
    maxSize: KEPT_BYTES_MAX,
    sizeCalculation: ({ bytes }) => bytes.length + 1,
    fetchMethod: async (_key, _stale, { context, options }) => {
      try {
        return await fetchPicture(context.url, agent)
      } catch {
        options.ttl = RETRY_MS
        return { type: 'image/svg+xml', bytes: Buffer.from(letterPicture(context.name)), isDrawn: true }
      }
    }
  })
  const named = namesByKey()

  app.get<{ Params: { key: string } }>('/img/:key', async (request, reply) => {
    const of = named(await titles()).get(request.params.key)
    const picture = of && (await kept.fetch(request.params.key, { context: of }))
    if (picture === undefined) return reply.callNotFound()
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

/** Returns what connects to the upstream and to public addresses only, also where a redirect leads. */
function pictureAgent(upstream: string | undefined): Dispatcher {
  const agent = new Agent({
    maxResponseSize: BYTES_MAX,
    factory: (origin, options) => {
      const limits = { ...options, connections: 8 }
      if (String(origin) === upstream) return new Pool(origin, limits)
      if (!isPublicHost(new URL(origin))) throw new Error(`${origin} is not a public address`)
      return new Pool(origin, { ...limits, connect: { lookup: publicLookup } })
    }
  })
  return agent.compose(interceptors.redirect({ maxRedirections: REDIRECTS_MAX }))
}

async function fetchPicture(url: string, dispatcher: Dispatcher): Promise<Picture> {
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  const { statusCode, headers, body } = await request(url, { dispatcher, headers: { Accept: 'image/*' }, signal })
  const [type = ''] = String(headers['content-type']).split(';')
  if (statusCode !== 200 || !TYPE.test(type.trim())) {
    await body.dump()
    throw new Error(`the answer is of status ${statusCode} and type ${type}`)
  }
  return { type: type.trim(), bytes: Buffer.from(await body.arrayBuffer()), isDrawn: false }
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
