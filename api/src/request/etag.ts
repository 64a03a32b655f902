import { createHash } from 'node:crypto'

/** The coding of an answer's bytes, as in `Content-Encoding`. */
export type Coding = 'identity' | 'gzip' | 'br'

const SUFFIX = { identity: '', gzip: '-g', br: '-b' } as const satisfies Record<Coding, string>

/** Returns the beginning of a SHA-256 in base64url: 27 characters are 162 bits. */
export function digestOf(content: string | Uint8Array, characters = 27): string {
  return createHash('sha256').update(content).digest('base64url').slice(0, characters)
}

/**
 * Returns a digest of everything that determines an answer: its path, its resolved input, the version of each span of
 * data that it reads, and the counter of its tables (a rollback must not revive an older answer). It is the same in
 * every process that has read the same changes.
 */
export function identityOf(path: string, resolvedJson: string, versions: readonly number[], counter: number): string {
  return digestOf(`${path}\n${resolvedJson}\n${versions.join(' ')}\n${counter}`)
}

/** Returns the strong entity tag of an answer in one coding: other bytes must have another tag (RFC 9110, 8.8.3.3). */
export const etagOf = (identity: string, coding: Coding): string => `"${identity}${SUFFIX[coding]}"`

/**
 * Returns the tag by which `If-None-Match` names the answer in any coding: from a list, with or without `W/` (the
 * comparison is weak, RFC 9110 13.1.2), or by `*`. A malformed header names nothing, so the whole answer is sent. A
 * proxy that compresses adds its coding to the tag and forwards what clients send back: `-gzip` (Apache, Caddy,
 * lighttpd), `--gzip` and `;gzip` (Jetty).
 */
export function namedTag(ifNoneMatch: string | undefined, identity: string): string | undefined {
  if (ifNoneMatch === undefined) return undefined
  // The header is the tag that we sent: by far the most frequent case.
  if (ifNoneMatch.length <= identity.length + 4 && ifNoneMatch.startsWith(`"${identity}`)) {
    const suffix = ifNoneMatch.slice(identity.length + 1)
    if (suffix === '"' || suffix === '-b"' || suffix === '-g"') return ifNoneMatch
  }
  if (ifNoneMatch.trim() === '*') return etagOf(identity, 'identity')
  for (const [, tag] of ifNoneMatch.matchAll(LISTED_TAG)) {
    if (tag === undefined || !tag.startsWith(identity)) continue
    const [, own] = CODED.exec(tag.slice(identity.length)) ?? []
    if (own !== undefined) return `"${identity}${own}"`
  }
  return undefined
}

/**
 * Returns whether `If-Match` permits an answer: it is absent, lists the tag (compared strongly, RFC 9110 13.1.1), or is
 * `*`.
 */
export function permitsTag(ifMatch: string | undefined, etag: string): boolean {
  return ifMatch === undefined || ifMatch.trim() === '*' || ifMatch.split(',').some((tag) => tag.trim() === etag)
}

const LISTED_TAG = /(?:^|,)[ \t]*(?:W\/)?"([\x21\x23-\x7e\x80-\xff]*)"[ \t]*(?=,|$)/g
/** The end of a tag: our coding or the digest of a file, then the codings of proxies. */
const CODED = /^(|-g|-b|\.[\w-]{16})(?:(?:--?|;)(?:x-)?(?:gzip|gz|br|deflate|df|zstd))*$/
