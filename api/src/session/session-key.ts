/*
 * session key   the secret by which a browser shows who its user is; the auth service gave it. It appears in no log,
 *               metric, cache key or error
 */

const HEADER = 'x-session-key'
export const SESSION_KEY_FIELD = 'sessionKey'
/** What no auth service would give as a key is not asked about: 1 to 512 visible ASCII characters. */
const KEY = /^[\x21-\x7e]{1,512}$/

/** Whether a text can be a key at all. */
export function isSessionKey(given: string): boolean {
  return KEY.test(given)
}

/**
 * The key that a request shows: the header wins over a field, of the body or the query. Undefined when there is none: an
 * empty one is none, neither is a field that is no text.
 */
export function shownKey(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  fields: Readonly<Record<string, unknown>>
): string | undefined {
  const header = headers[HEADER]
  if (typeof header === 'string' && header !== '') return header
  const field = fields[SESSION_KEY_FIELD]
  return typeof field === 'string' && field !== '' ? field : undefined
}

/** Whether a request shows a key by its header. */
export function hasKeyHeader(headers: Readonly<Record<string, string | string[] | undefined>>): boolean {
  return headers[HEADER] !== undefined
}

/** A URL as a log may have it: without the values of its parameters when one of them is a key, in any spelling. */
export function withoutSessionKey(url: string): string {
  const mark = url.indexOf('?')
  if (mark === -1) return url
  return MAY_BE_KEY.test(url.slice(mark)) ? `${url.slice(0, mark)}?…` : url
}

/** The field's name without case, or anything percent-encoded in a parameter's name, which may be the field's name. */
const MAY_BE_KEY = /session_?key|[?&][^=&]*%/i
