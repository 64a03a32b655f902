/*
 * session key   the secret with which a browser identifies its user, issued by the auth service. It appears in no log,
 *               metric, cache key or error
 */

const HEADER = 'x-session-key'
export const SESSION_KEY_FIELD = 'sessionKey'
/** A text that cannot be a key is not sent to the auth service: 1 to 512 visible ASCII characters. */
const KEY = /^[\x21-\x7e]{1,512}$/

/** Returns whether a text can be a key. */
export const isSessionKey = (given: string): boolean => KEY.test(given)

/**
 * Returns the key of a request: the header, else a field of the body or the query. Undefined without one; an empty one
 * and a field that is not text count as none.
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

/** Returns whether a request has a key in its header. */
export function hasKeyHeader(headers: Readonly<Record<string, string | string[] | undefined>>): boolean {
  return headers[HEADER] !== undefined
}

/** Returns a URL for the log: without parameter values if one of them may be a key, in any spelling. */
export function withoutSessionKey(url: string): string {
  const mark = url.indexOf('?')
  if (mark === -1) return url
  return MAY_BE_KEY.test(url.slice(mark)) ? `${url.slice(0, mark)}?…` : url
}

/** The field's name without case, or a percent-encoded parameter name, which may be the field's. */
const MAY_BE_KEY = /session_?key|[?&][^=&]*%/i
