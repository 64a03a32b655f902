import { validateHeaderValue } from 'node:http'

/** Lets pages of any origin read an answer; credentials are never needed. */
export const ANY_ORIGIN = { 'Access-Control-Allow-Origin': '*' } as const

/** The headers that pages of other origins may read. */
export const EXPOSED_HEADERS = {
  'Access-Control-Expose-Headers':
    'ETag, Retry-After, Link, Deprecation, X-Request-Id, X-Data-Version, X-Resolution-Seconds, ' +
    'X-Error-Code, X-Unknown-Parameters, Content-Range, Accept-Ranges, Content-Disposition, Sunset'
} as const

/** Sent with every answer that may have a body, errors included. Browsers do not guess types. */
export const COMMON_HEADERS = {
  ...ANY_ORIGIN,
  ...EXPOSED_HEADERS,
  'X-Content-Type-Options': 'nosniff'
} as const satisfies Record<string, string>

/** Tells clients how long they may reuse a connection: longer than the usual 60 s of load balancers. */
export const KEEP_ALIVE = { 'Keep-Alive': 'timeout=72' } as const

/** The headers of a preflight answer besides the path's methods; browsers may cache them for a day. */
export const PREFLIGHT_HEADERS = {
  'Access-Control-Allow-Headers': 'X-Session-Key, Content-Type, If-None-Match, Last-Event-ID',
  'Access-Control-Max-Age': '86400'
} as const satisfies Record<string, string>

export const JSON_TYPE = 'application/json; charset=utf-8'

/**
 * `Cache-Control` of answers with data. Any cache may store a copy and must revalidate it before each use: that costs a
 * 304 from memory, and no client shows outdated counts.
 */
export const REVALIDATED = 'public, max-age=0, must-revalidate'

/** `Cache-Control` of answers for a session: no cache may store them, not even the client's. */
export const FOR_ONE_ALONE = 'private, no-store'

/** Returns headers as name, value, name, value: the form that Node writes fastest. */
export const flat = (headers: Readonly<Record<string, string>>): string[] => Object.entries(headers).flat()

/** As `flat`. Throws for a value that no header may have, before the list is cached for answers outside the router. */
export function checkedHeaders(headers: Readonly<Record<string, string>>): string[] {
  for (const [name, value] of Object.entries(headers)) validateHeaderValue(name, value)
  return flat(headers)
}
