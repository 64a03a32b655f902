import type { WriteChange } from '@gamenet/schemas'
import { LRUCache } from 'lru-cache'
import type { Dependency, Endpoint, ResolveContext } from '../../answers/endpoint.js'
import { identityOf } from '../../answers/etag.js'
import { flat, REVALIDATED } from '../reply/headers.js'

const MINUTE_MS = 60_000
/** Longer URLs are read again each time, so that keys stay small: 10,000 of them are at most 10 MB. */
const URL_CHARACTERS_CACHED_MAX = 512
const URLS_CACHED_MAX = 10_000
/** Times a question is resolved again because data changed while it was resolved. */
const RESOLVE_TRIES = 5

/** What the versions of data are asked for here. */
export type Versions = {
  readonly revision: number
  readonly isCurrent: boolean
  versionOf(dependency: Dependency): number
  /** Takes in a change of the write side. */
  recordWrite(change: WriteChange): void
}

/** A request's URL, read to its end: which question it asks and which answer is right, at one revision and minute. */
export type ResolvedUrl = {
  readonly question: string
  readonly resolved: unknown
  readonly identity: string
  readonly dataVersion: string
  /** Headers of the answer that are known without it. */
  readonly headers: Readonly<Record<string, string>>
  /** All headers of a 304 but its ETag and the request's id. */
  readonly notModified: readonly string[]
  readonly revision: number
  readonly minute: number
}

/** The minute that a clock shows; what URLs mean changes with it. */
export function minuteOf(nowMs: number): number {
  return Math.floor(nowMs / MINUTE_MS)
}

/** URLs that were read lately, so that asking again takes no parsing as long as neither data nor minute have moved. */
export class ResolvedUrls {
  readonly #urls = new LRUCache<string, ResolvedUrl>({ max: URLS_CACHED_MAX })

  /** What a URL means now, when that is known already. */
  get(url: string, versions: Versions, nowMs: number): ResolvedUrl | undefined {
    const known = this.#urls.get(url)
    return known?.revision === versions.revision && known.minute === minuteOf(nowMs) ? known : undefined
  }

  /** Remembers what a URL means. */
  set(url: string, known: ResolvedUrl): void {
    if (url.length <= URL_CHARACTERS_CACHED_MAX) this.#urls.set(url, known)
  }
}

/** The key under which memory keeps the newest answer to a question, whatever its window and data have become. */
export function questionOf(path: string, input: unknown): string {
  return `${path}\n${JSON.stringify(input)}`
}

/** Resolves an input to the answer that is right for it now. Throws what resolving throws. */
export async function resolveUrl(
  endpoint: Endpoint,
  input: unknown,
  question: string,
  { versions, ...context }: ResolveContext & { readonly versions: Versions }
): Promise<ResolvedUrl> {
  const resolve = async () => {
    const resolved = await endpoint.resolve(input, context)
    const reads = endpoint.reads(resolved)
    // The digest stands for the counts, which decide who has a shared name bare and change every minute.
    const showsNames = reads.some(({ projection }) => projection === 'title')
    return { resolved, reads, names: showsNames ? (await context.catalog()).digest() : '' }
  }
  let { revision } = versions
  let found = await resolve()
  // Names resolved before a change must not stand under the version after it. Nearly always the first try is good.
  for (let tries = 1; tries < RESOLVE_TRIES && revision !== versions.revision; tries += 1) {
    revision = versions.revision
    found = await resolve()
  }
  const { resolved, reads, names } = found
  const newest = reads.map((dependency) => versions.versionOf(dependency))
  const identity = identityOf(endpoint.path, JSON.stringify(resolved) + names, newest)
  const dataVersion = String(Math.max(0, ...newest))
  const headers = { ...endpoint.headers?.(resolved), ...deprecation(endpoint, input) }
  const notModified = flat({ ...answerHeaders(dataVersion), ...headers })
  return { question, resolved, identity, dataVersion, headers, notModified, revision, minute: minuteOf(context.nowMs) }
}

/** Headers that a 200 and its 304 share, but for the ETag. */
export function answerHeaders(dataVersion: string): Record<string, string> {
  return { 'Cache-Control': REVALIDATED, Vary: 'Accept-Encoding', 'X-Data-Version': dataVersion }
}

function deprecation({ deprecated }: Endpoint, input: unknown): Record<string, string> {
  if (deprecated === undefined) return {}
  return {
    // RFC 9745: an sf-date, seconds since 1970 behind an @.
    Deprecation: `@${Math.floor(deprecated.since.getTime() / 1000)}`,
    Link: `<${deprecated.successor(input)}>; rel="successor-version"`
  }
}
