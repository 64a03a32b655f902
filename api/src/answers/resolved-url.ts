import type { ServingTables, WriteChange } from '@gamenet/schemas'
import { LRUCache } from 'lru-cache'
import type { CatalogCache } from '../queries/catalog.js'
import { ANY_ORIGIN, checkedHeaders, KEEP_ALIVE, REVALIDATED } from '../reply/headers.js'
import { identityOf } from '../request/etag.js'
import type { Dependency, Endpoint, ResolveContext } from './endpoint.js'

const MINUTE_MS = 60_000
/** Longer URLs are not cached: 10,000 cached ones take at most 10 MB. */
const URL_CHARACTERS_CACHED_MAX = 512
const URLS_CACHED_MAX = 10_000
/** Attempts to resolve a question while data changes. */
const RESOLVE_TRIES = 5

/** The versions of data, and the tables that are read. */
export type Versions = {
  readonly revision: number
  readonly isCurrent: boolean
  readonly serving: ServingTables
  /** Brings both up to date for a read that met a dropped table and is repeated, and counts it. */
  refreshDropped(): Promise<void>
  readonly repeatedReads: number
  versionOf(dependency: Dependency): number
  /** Records a change of the write side. */
  recordWrite(change: WriteChange): void
  /** Calls a function after changes; returns the function that ends it. */
  onChange(call: () => void): () => void
}

/** A parsed and resolved URL: the question, and the identity of the valid answer at one revision and minute. */
export type ResolvedUrl = {
  readonly question: string
  readonly resolved: unknown
  readonly identity: string
  /** With an ETag that is made of the bytes: what it contains besides them. */
  readonly contentOf: string | undefined
  readonly dataVersion: string
  /** The tables that the answer is read from. */
  readonly serving: ServingTables
  /** Headers of the answer that do not depend on it. */
  readonly headers: Readonly<Record<string, string>>
  /** The headers of each 304 except its ETag and the request's id, as name, value, name, value. */
  readonly notModified: readonly string[]
  readonly revision: number
  readonly minute: number
}

/** Returns the current minute. The meaning of URLs changes with it. */
export const minuteOf = (nowMs: number): number => Math.floor(nowMs / MINUTE_MS)

/** A cache of resolved URLs with what answers them, valid until the data or the minute changes. */
export class ResolvedUrls<Answering> {
  readonly #urls = new LRUCache<string, ResolvedUrl & { readonly answering: Answering }>({ max: URLS_CACHED_MAX })

  /** Returns the current meaning of a URL, if cached. */
  get(url: string, versions: Versions, nowMs: number): (ResolvedUrl & { readonly answering: Answering }) | undefined {
    const known = this.#urls.get(url)
    return known?.revision === versions.revision && known.minute === minuteOf(nowMs) ? known : undefined
  }

  /** Caches the meaning of a URL. */
  set(url: string, known: ResolvedUrl & { readonly answering: Answering }): void {
    if (url.length <= URL_CHARACTERS_CACHED_MAX) this.#urls.set(url, known)
  }
}

/** Returns the cache key of the newest answer to a question, regardless of its window and data version. */
export const questionOf = (path: string, input: unknown): string => `${path}\n${JSON.stringify(input)}`

/** Resolves an input to the identity of the valid answer. Throws the errors of `resolve`. */
export async function resolveUrl(
  endpoint: Endpoint,
  input: unknown,
  question: string,
  {
    versions,
    catalog,
    ...clock
  }: Omit<ResolveContext, 'catalog'> & {
    readonly versions: Versions
    readonly catalog: Pick<CatalogCache, 'held'>
  }
): Promise<ResolvedUrl> {
  const resolve = async () => {
    const { serving } = versions
    const context = { ...clock, catalog: () => catalog.held(serving) }
    const resolved = await endpoint.resolve(input, context)
    const reads = endpoint.reads(resolved)
    // The digest replaces the counts, which decide which title has a shared name bare and change every minute.
    const showsNames = reads.some(({ projection }) => projection === 'title')
    return { serving, resolved, reads, names: showsNames ? (await context.catalog()).digest() : '' }
  }
  let { revision } = versions
  let found = await resolve()
  // Names that were resolved before a change must not be combined with the version after it. The first attempt nearly
  // always succeeds.
  for (let tries = 1; tries < RESOLVE_TRIES && revision !== versions.revision; tries += 1) {
    revision = versions.revision
    found = await resolve()
  }
  const { serving, resolved, reads, names } = found
  const newest = reads.map((dependency) => versions.versionOf(dependency))
  const counter = Math.max(0, ...reads.map(({ projection }) => serving.counterOf(projection)))
  const asked = JSON.stringify(resolved) + names
  const identity = identityOf(endpoint.path, asked, newest, counter)
  const contentOf =
    endpoint.isTaggedByContent?.(resolved) === true ? identityOf(endpoint.path, asked, [], 0) : undefined
  const dataVersion = String(Math.max(0, ...newest))
  const headers = {
    ...(endpoint.table === undefined ? {} : { Vary: 'Accept-Encoding, Accept' }),
    ...endpoint.headers?.(resolved),
    ...deprecation(endpoint, input)
  }
  const notModified = checkedHeaders({ ...ANY_ORIGIN, ...answerHeaders(dataVersion), ...headers })
  const minute = minuteOf(clock.nowMs)
  return { question, resolved, identity, contentOf, dataVersion, serving, headers, notModified, revision, minute }
}

/** Returns the common headers of a 200 and its 304, except the ETag. */
export function answerHeaders(dataVersion: string): Record<string, string> {
  return { ...KEEP_ALIVE, 'Cache-Control': REVALIDATED, Vary: 'Accept-Encoding', 'X-Data-Version': dataVersion }
}

function deprecation({ deprecated }: Endpoint, input: unknown): Record<string, string> {
  if (deprecated === undefined) return {}
  return {
    // RFC 9745: an sf-date, seconds since 1970 after an @.
    Deprecation: `@${Math.floor(deprecated.since.getTime() / 1000)}`,
    Link: `<${deprecated.successor(input)}>; rel="successor-version"`
  }
}
