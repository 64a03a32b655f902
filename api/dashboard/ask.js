/** Cached answers: those of the current view, and of the views before it. */
const CACHED_MAX = 24
const TIMEOUT_MS = 15_000

/**
 * An answer of the API. Its body is the same object while nothing has changed.
 * @template Body
 * @typedef {{ readonly tag: string, readonly body: Body, readonly resolutionSeconds: number }} Reply
 */

/** @type {Map<string, Reply<any>>} */
const cached = new Map()
/** @type {Map<string, Promise<Reply<any>>>} */
const pending = new Map()
let skewMs = 0

/** An answer that nothing has outdated is requested again after so long: what an event missed is then mended. */
const FRESH_MS_MAX = 10 * 60_000
/**
 * The instants of requests by path, of answers that are still the newest ones.
 * @type {Map<string, number>}
 */
const fresh = new Map()
let isFollowing = false
/** Rises when answers are outdated: one that is on its way then may be an old one. */
let outdated = 0

/**
 * Says whether the stream tells what changes. Without it, every answer may have changed.
 * @param {boolean} isOn
 */
export function follow(isOn) {
  isFollowing = isOn
  outdate(/./)
}

/**
 * Something has changed that these answers show.
 * @param {RegExp} paths
 */
export function outdate(paths) {
  outdated += 1
  for (const path of fresh.keys()) if (paths.test(path)) fresh.delete(path)
}

/**
 * Caches an answer that was not requested.
 * @param {string} path
 * @param {unknown} body
 */
export function supply(path, body) {
  store(path, { tag: '', body, resolutionSeconds: 0 })
  fresh.set(path, Date.now())
}

/**
 * Changes a cached answer that has every sample; `change` returns undefined for one that has to be requested again.
 * @template Body
 * @param {string} path
 * @param {(body: Body) => Body | undefined} change
 */
export function amend(path, change) {
  const reply = cached.get(path)
  const body = reply === undefined || reply.resolutionSeconds > 0 ? undefined : change(reply.body)
  if (body !== undefined && fresh.has(path)) supply(path, body)
  else outdate(new RegExp(`^${path.replaceAll('?', '\\?')}$`))
}

/** The service's clock, milliseconds since 1970, because the browser's may be wrong. */
export function serverNow() {
  return Date.now() + skewMs
}

/** The service is unavailable. */
export class Away extends Error {
  /**
   * @param {string} message
   * @param {number} [retryAfterMs] the service's Retry-After
   */
  constructor(message, retryAfterMs) {
    super(message)
    /** Milliseconds. */
    this.retryAfterMs = retryAfterMs
  }
}

/** The service refused the request; the message is its sentence. */
export class Refused extends Error {}

/**
 * Requests an answer. Returns the cached one after a 304. Concurrent calls with one path share a request. Throws
 * {@link Away} and {@link Refused}.
 * @template Body
 * @param {string} path
 * @returns {Promise<Reply<Body>>}
 */
export function ask(path) {
  const known = cached.get(path)
  if (known !== undefined && isFollowing && Date.now() - (fresh.get(path) ?? 0) < FRESH_MS_MAX) {
    return Promise.resolve(known)
  }
  const before = pending.get(path)
  if (before !== undefined) return before
  const reply = request(path).finally(() => pending.delete(path))
  pending.set(path, reply)
  return reply
}

/**
 * @param {string} path
 * @returns {Promise<Reply<any>>}
 */
async function request(path) {
  const known = cached.get(path)
  const askedMs = Date.now()
  const outdatedThen = outdated
  /** @type {Record<string, string>} */
  const headers = known === undefined || known.tag === '' ? {} : { 'If-None-Match': known.tag }
  let response
  let text
  try {
    response = await fetch(path, { headers, cache: 'no-store', signal: AbortSignal.timeout(TIMEOUT_MS) })
    text = response.status === 304 ? '' : await response.text()
  } catch {
    throw new Away('The service does not answer.')
  }
  const serverMs = Date.parse(response.headers.get('Date') ?? '')
  // The header has whole seconds: smaller differences say nothing about the clock.
  if (!Number.isNaN(serverMs)) skewMs = Math.abs(serverMs - Date.now()) < 2000 ? 0 : serverMs - Date.now()
  if (response.ok || response.status === 304) {
    if (outdatedThen === outdated) fresh.set(path, askedMs)
    else fresh.delete(path)
  }
  if (response.status === 304 && known !== undefined) return store(path, known)
  if (!response.ok) throw failure(response, text)
  return store(path, {
    tag: response.headers.get('ETag') ?? '',
    body: bodyOf(text),
    resolutionSeconds: Number(response.headers.get('X-Resolution-Seconds') ?? 0)
  })
}

/**
 * Caches a reply as the newest one.
 * @param {string} path
 * @param {Reply<any>} reply
 */
function store(path, reply) {
  cached.delete(path)
  cached.set(path, reply)
  for (const oldest of cached.keys()) {
    if (cached.size <= CACHED_MAX) break
    cached.delete(oldest)
    fresh.delete(oldest)
  }
  return reply
}

/** @param {string} text */
function bodyOf(text) {
  try {
    return JSON.parse(text)
  } catch {
    throw new Away('The response is not an answer of the service.')
  }
}

/**
 * @param {Response} response
 * @param {string} text
 */
function failure(response, text) {
  const sentence = sentenceOf(text) ?? `The service answered with status ${response.status}.`
  if (response.status < 500 && response.status !== 408 && response.status !== 429) return new Refused(sentence)
  const seconds = Number(response.headers.get('Retry-After') ?? Number.NaN)
  return new Away(sentence, seconds > 0 ? seconds * 1000 : undefined)
}

/**
 * @param {string} text
 * @returns {string | undefined}
 */
function sentenceOf(text) {
  try {
    const { error } = JSON.parse(text)
    return typeof error === 'string' ? error : undefined
  } catch {
    return undefined
  }
}
