/** Answers kept for asking again: what one view of the page shows, and the views before it. */
const KEPT_MAX = 24
const TIMEOUT_MS = 15_000

const kept = new Map()
const underWay = new Map()
let skewMs = 0

/** The service's clock, milliseconds since 1970: a visitor's own may be wrong. */
export function serverNow() {
  return Date.now() + skewMs
}

/** The service cannot answer now; it may in a while. */
export class Away extends Error {
  /** Milliseconds after which the service wants to be asked again, if it said so. */
  retryAfterMs

  constructor(message, retryAfterMs) {
    super(message)
    this.retryAfterMs = retryAfterMs
  }
}

/** The service refused the question; its sentence is the message. */
export class Refused extends Error {}

/**
 * Asks the API. The same `body` object comes back as long as the service says that nothing changed (304). Questions
 * that are asked twice at the same time are one request.
 */
export function ask(path) {
  const before = underWay.get(path)
  if (before !== undefined) return before
  const asking = request(path).finally(() => underWay.delete(path))
  underWay.set(path, asking)
  return asking
}

async function request(path) {
  const known = kept.get(path)
  const headers = known === undefined ? {} : { 'If-None-Match': known.tag }
  let response
  let text
  try {
    response = await fetch(path, { headers, cache: 'no-store', signal: AbortSignal.timeout(TIMEOUT_MS) })
    text = response.status === 304 ? '' : await response.text()
  } catch {
    throw new Away('The service does not answer.')
  }
  const serverMs = Date.parse(response.headers.get('Date') ?? '')
  // The header has whole seconds; differences below that are not the clock's.
  if (!Number.isNaN(serverMs)) skewMs = Math.abs(serverMs - Date.now()) < 2000 ? 0 : serverMs - Date.now()
  if (response.status === 304 && known !== undefined) return keep(path, known)
  if (!response.ok) throw failure(response, text)
  return keep(path, {
    tag: response.headers.get('ETag') ?? '',
    body: bodyOf(text),
    resolutionSeconds: Number(response.headers.get('X-Resolution-Seconds') ?? 0)
  })
}

function keep(path, answer) {
  kept.delete(path)
  kept.set(path, answer)
  for (const oldest of kept.keys()) {
    if (kept.size <= KEPT_MAX) break
    kept.delete(oldest)
  }
  return answer
}

function bodyOf(text) {
  try {
    return JSON.parse(text)
  } catch {
    throw new Away('What came is no answer of the service.')
  }
}

function failure(response, text) {
  const sentence = sentenceOf(text) ?? `The service answered with status ${response.status}.`
  if (response.status < 500 && response.status !== 408 && response.status !== 429) return new Refused(sentence)
  const seconds = Number(response.headers.get('Retry-After') ?? Number.NaN)
  return new Away(sentence, seconds > 0 ? seconds * 1000 : undefined)
}

function sentenceOf(text) {
  try {
    const { error } = JSON.parse(text)
    return typeof error === 'string' ? error : undefined
  } catch {
    return undefined
  }
}
