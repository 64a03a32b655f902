import { abortable, withSignals } from '@gamenet/schemas'
import { DelegateBackoff, ExponentialBackoff, handleWhenResult, retry } from 'cockatiel'
import { Agent, type Dispatcher } from 'undici'
import { ACCEPTED_ENCODINGS, ignoreLateError, readPageBody } from './page-body.js'
import { createRequestThrottle, type RequestThrottle, retryAfterMs, type Urgency } from './request-throttle.js'

/** Validators of an earlier answer, for a conditional request. */
export type Validators = { readonly etag?: string; readonly lastModified?: string }

/** The result of a fetch. Every failure is a value with one sentence. */
export type FetchedPage =
  | {
      readonly ok: true
      readonly changed: true
      readonly html: string
      /** The page's address after redirects. */
      readonly address: string
      readonly validators: Validators
      /** When the answer's headers arrived, milliseconds since 1970. */
      readonly answeredAtMs: number
    }
  | { readonly ok: true; readonly changed: false; readonly answeredAtMs: number }
  | {
      readonly ok: false
      readonly reason: string
      /** Upstream answered 4xx for this page; other pages may exist. */
      readonly isRefused?: boolean
      /** Upstream answered that there is no such page (404, 410). */
      readonly isAbsent?: boolean
    }

/** Fetches pages of one upstream: one request at a time, with limits on rate, bytes and duration. */
export type PageFetcher = {
  /** `path` begins with `/`; `/` is exactly the configured upstream address. Never rejects. */
  fetch(
    path: string,
    options?: { validators?: Validators; signal?: AbortSignal; urgency?: Urgency }
  ): Promise<FetchedPage>
  /** Aborts the current request and closes the connection. */
  close(): Promise<void>
}

export type PageFetcherOptions = {
  /** Base address, http or https, without credentials. */
  readonly upstreamUrl: string
  readonly userAgent: string
  readonly requestsPerSecond: number
  /** Limit of a page after decompression. */
  readonly bytesMax?: number
  /** Limit of one attempt: headers, redirects and body together, in milliseconds. */
  readonly attemptTimeoutMs?: number
  /** Number of retries after transient faults: broken connections, timeouts, 5xx. */
  readonly retriesMax?: number
  /** First pause between attempts; doubles each time, with jitter. */
  readonly backoffMs?: number
  readonly now?: () => number
}

const REDIRECTS_MAX = 3
const REDIRECT_STATUS = new Set([301, 302, 303, 307, 308])
const ABSENT_STATUS = new Set([404, 410])
const HTML_TYPE = /^(?:text\/html|application\/xhtml\+xml)\s*(?:;|$)/i
/** The charset, in either quotes or none. */
const CHARSET = /;\s*charset\s*=\s*["']?\s*([^"';,\s]+)/i
/** Names of UTF-8 (WHATWG Encoding), and of US-ASCII, which is a part of it. */
const UTF8_NAMES = /^(?:utf[-_]?8|unicode-1-1-utf-8|unicode11utf8|unicode20utf8|x-unicode20utf8|us-ascii|ascii)$/i
/** Longest delay between attempts of one run. A longer Retry-After delays later runs instead. */
const BACKOFF_MAX_MS = 10_000
const VALIDATOR_LENGTH_MAX = 512
/** A short discarded body is read to its end to keep the connection; a long one is aborted. */
const DISCARDED_BYTES_MAX = 16_384
const DISCARD_TIMEOUT_MS = 500
const STOPPING = 'the service is stopping'

/** Creates a fetcher; connects with the first fetch. Throws on an invalid upstream address. */
export function createPageFetcher(options: PageFetcherOptions): PageFetcher {
  const base = upstreamBase(options.upstreamUrl)
  const agent = new Agent({ connections: 1, pipelining: 1, maxHeaderSize: 32_768 })
  const closing = new AbortController()
  const attemptTimeoutMs = options.attemptTimeoutMs ?? 20_000
  const exchange: Exchange = {
    agent,
    throttle: createRequestThrottle(options.requestsPerSecond),
    userAgent: options.userAgent,
    bytesMax: options.bytesMax ?? 8 * 1024 * 1024,
    now: options.now ?? Date.now
  }
  const backoff = new ExponentialBackoff({ initialDelay: options.backoffMs ?? 500, maxDelay: BACKOFF_MAX_MS })
  const retrying = retry(
    handleWhenResult((result) => (result as Attempt).retry !== undefined),
    { maxAttempts: options.retriesMax ?? 2, backoff: retryAfterOr(backoff) }
  )
  let heldBackUntilMs = 0
  return {
    async fetch(path, { validators = {}, signal, urgency = 'soon' } = {}) {
      const heldBackMs = heldBackUntilMs - exchange.now()
      if (heldBackMs > 0) return failed(`upstream asked for a pause of another ${Math.ceil(heldBackMs / 1000)} s`)
      const url = pageUrl(base, path)
      const requested = { url, validators, urgency, timeoutMs: attemptTimeoutMs }
      const attempt = await withSignals([signal, closing.signal], ({ signal: stopped }) =>
        untilAborted(
          stopped,
          retrying.execute(() => attemptPage(exchange, requested, stopped), stopped)
        )
      )
      if (attempt.holdBackMs !== undefined) heldBackUntilMs = exchange.now() + attempt.holdBackMs
      return attempt.page
    },
    async close() {
      closing.abort()
      await agent.destroy()
    }
  }
}

type Exchange = {
  readonly agent: Agent
  readonly throttle: RequestThrottle
  readonly userAgent: string
  readonly bytesMax: number
  readonly now: () => number
}

type Attempt = {
  readonly page: FetchedPage
  /** Set when a retry makes sense; `afterMs` is the delay that the answer asks for. */
  readonly retry?: { readonly afterMs?: number }
  /** Set when the answer asks for a delay that is too long for this run. */
  readonly holdBackMs?: number
}

/** Parses the upstream address. Refuses credentials: they would end up in published reasons. */
function upstreamBase(upstreamUrl: string): URL {
  const base = URL.canParse(upstreamUrl) ? new URL(upstreamUrl) : undefined
  if (base === undefined || (base.protocol !== 'http:' && base.protocol !== 'https:'))
    throw new Error(`The upstream address must be an http or https address; got ${JSON.stringify(upstreamUrl)}.`)
  if (base.username !== '' || base.password !== '')
    throw new Error('The upstream address must not contain a name or password.')
  base.hash = ''
  return base
}

function pageUrl(base: URL, path: string): URL {
  if (path === '/') return base
  const folder = new URL(base)
  folder.search = ''
  if (!folder.pathname.endsWith('/')) folder.pathname += '/'
  return new URL(`.${path}`, folder)
}

/**
 * Returns the delay that the answer asks for, else exponential backoff with jitter, so that many clients do not retry
 * at once.
 */
function retryAfterOr(exponential: ExponentialBackoff<unknown>) {
  return new DelegateBackoff((context: { result: unknown }, step: ReturnType<typeof exponential.next> | undefined) => {
    const next = step === undefined ? exponential.next() : step.next(undefined)
    const requested = (context.result as { value?: Attempt }).value?.retry?.afterMs
    return { delay: requested ?? next.duration, state: next }
  })
}

async function untilAborted(signal: AbortSignal, attempts: Promise<Attempt>): Promise<Attempt> {
  try {
    return await abortable(signal, attempts)
  } catch (error) {
    if (signal.aborted) return { page: failed(STOPPING) }
    throw error
  }
}

/** Runs one attempt with its redirects, in at most `timeoutMs` after its first request may leave. */
async function attemptPage(
  exchange: Exchange,
  requested: { url: URL; validators: Validators; urgency: Urgency; timeoutMs: number },
  stopped: AbortSignal
): Promise<Attempt> {
  const { url, validators, urgency, timeoutMs } = requested
  let timeout: AbortSignal | undefined
  const attempt = async () => {
    timeout = AbortSignal.timeout(timeoutMs)
    return await followRedirects(exchange, url, validators, AbortSignal.any([stopped, timeout]))
  }
  try {
    return await exchange.throttle.run(stopped, attempt, urgency)
  } catch (error) {
    if (stopped.aborted) return { page: failed(STOPPING) }
    const cause = timeout?.aborted === true ? `no complete page within ${timeoutMs} ms` : faultOf(error)
    return { page: failed(`${url.href}: ${cause}`), retry: {} }
  }
}

async function followRedirects(
  exchange: Exchange,
  first: URL,
  validators: Validators,
  signal: AbortSignal
): Promise<Attempt> {
  let url = first
  for (let redirects = 0; ; redirects += 1) {
    if (redirects > 0) await exchange.throttle.pause(signal)
    const answer = await request(exchange, url, validators, signal)
    if (!REDIRECT_STATUS.has(answer.statusCode)) return await readAnswer(exchange, url, validators, answer, signal)
    await discard(answer)
    const location = headerOf(answer, 'location') ?? ''
    const target = URL.canParse(location, url.href) && location !== '' ? new URL(location, url) : undefined
    if (target === undefined)
      return { page: failed(`${url.href}: redirected (${answer.statusCode}) without a valid Location`) }
    if (target.origin !== first.origin)
      return { page: failed(`${url.href}: redirected to another origin, ${target.origin}, which is not followed`) }
    if (redirects === REDIRECTS_MAX) return { page: failed(`${first.href}: more than ${REDIRECTS_MAX} redirects`) }
    url = target
  }
}

function request(
  exchange: Exchange,
  url: URL,
  validators: Validators,
  signal: AbortSignal
): Promise<Dispatcher.ResponseData> {
  return exchange.agent.request({
    origin: url.origin,
    path: `${url.pathname}${url.search}`,
    method: 'GET',
    signal,
    headers: {
      'user-agent': exchange.userAgent,
      accept: 'text/html, application/xhtml+xml;q=0.9',
      'accept-encoding': ACCEPTED_ENCODINGS,
      ...(validators.etag !== undefined && { 'if-none-match': validators.etag }),
      ...(validators.lastModified !== undefined && { 'if-modified-since': validators.lastModified })
    }
  })
}

async function readAnswer(
  exchange: Exchange,
  url: URL,
  sent: Validators,
  answer: Dispatcher.ResponseData,
  signal: AbortSignal
): Promise<Attempt> {
  const answeredAtMs = exchange.now()
  if (answer.statusCode === 304 && (sent.etag !== undefined || sent.lastModified !== undefined)) {
    await discard(answer)
    return { page: { ok: true, changed: false, answeredAtMs } }
  }
  if (answer.statusCode !== 200) {
    await discard(answer)
    return refusedAnswer(url, answer, answeredAtMs)
  }
  const wrongType = contentTypeFault(headerOf(answer, 'content-type'))
  if (wrongType !== undefined) {
    await discard(answer)
    return { page: failed(`${url.href}: ${wrongType}`) }
  }
  const body = await readPageBody(answer.body, {
    encoding: headerOf(answer, 'content-encoding'),
    bytesMax: exchange.bytesMax,
    signal
  })
  if (!body.ok) return { page: failed(`${url.href}: ${body.reason}`) }
  return {
    page: {
      ok: true,
      changed: true,
      html: body.text,
      address: url.href,
      validators: validatorsOf(answer),
      answeredAtMs
    }
  }
}

/** The result for a status without a page: 5xx is retried, all others would repeat. */
function refusedAnswer(url: URL, answer: Dispatcher.ResponseData, nowMs: number): Attempt {
  const page = failed(`${url.href}: status ${answer.statusCode}, expected 200`)
  const afterMs = retryAfterMs(headerOf(answer, 'retry-after'), nowMs)
  if (afterMs !== undefined && (afterMs > BACKOFF_MAX_MS || answer.statusCode === 429))
    return { page, holdBackMs: afterMs }
  if (answer.statusCode < 500)
    return { page: { ...page, isRefused: true, isAbsent: ABSENT_STATUS.has(answer.statusCode) } }
  return { page, retry: afterMs === undefined ? {} : { afterMs } }
}

function contentTypeFault(type: string | undefined): string | undefined {
  if (type === undefined || !HTML_TYPE.test(type))
    return (
      `the content type is ${type === undefined ? 'missing' : JSON.stringify(type.slice(0, 100))}, expected ` +
      `text/html`
    )
  const charset = CHARSET.exec(type)?.[1]
  return charset === undefined || UTF8_NAMES.test(charset)
    ? undefined
    : `the charset is ${charset.slice(0, 40)}, expected utf-8`
}

function validatorsOf(answer: Dispatcher.ResponseData): Validators {
  const etag = headerOf(answer, 'etag')
  const lastModified = headerOf(answer, 'last-modified')
  return {
    ...(etag !== undefined && etag.length <= VALIDATOR_LENGTH_MAX && { etag }),
    ...(lastModified !== undefined && lastModified.length <= VALIDATOR_LENGTH_MAX && { lastModified })
  }
}

function headerOf(answer: Dispatcher.ResponseData, name: string): string | undefined {
  const value = answer.headers[name]
  return Array.isArray(value) ? value[0] : value
}

async function discard(answer: Dispatcher.ResponseData): Promise<void> {
  answer.body.on('error', ignoreLateError)
  await answer.body
    .dump({ limit: DISCARDED_BYTES_MAX, signal: AbortSignal.timeout(DISCARD_TIMEOUT_MS) })
    .catch(ignoreLateError)
}

const failed = (reason: string): { ok: false; reason: string } => ({ ok: false, reason })

/** Describes a fault of the connection or the stream for a reason. */
function faultOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const cause = error instanceof AggregateError ? error.errors[0] : error.cause
  const code = 'code' in error && typeof error.code === 'string' ? ` (${error.code})` : ''
  const message = error.message !== '' ? error.message : cause instanceof Error ? cause.message : error.name
  return `${message}${message.includes(code.slice(2, -1)) ? '' : code}`
}
