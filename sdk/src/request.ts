import { AnswerMemory } from './answer-memory.js'
import { Call, delay, type Result } from './call.js'
import { GamenetError } from './gamenet-error.js'

/** The address of the service, and the settings of requests. */
export type ClientOptions = {
  /** Address of the service, such as `https://stats.example.org`; may have a path, to which `/api` is appended. */
  readonly baseUrl: string
  /** Sends requests. Default: the `fetch` of the platform. */
  readonly fetch?: typeof globalThis.fetch | undefined
  /** Time limit of a call in milliseconds, from the request to the answer's last byte. Default: 60,000. */
  readonly timeoutMs?: number | undefined
  /** Maximum number of retries after 429 or 503 with `Retry-After`, within `timeoutMs`. Default: 2. */
  readonly retries?: number | undefined
}

/** The options of every method, after its parameters. */
export type CallOptions = {
  /** Aborts the call, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** The session of the call; sent as `X-Session-Key`. An answer to a call with a session is not cached. */
  readonly sessionKey?: string | undefined
}

/** Parameters of path and query by name; `undefined` ones are not sent. */
export type Parameters = Readonly<Record<string, string | number | boolean | Date | undefined>>

/** Sends a GET of `path`, in which `:name` is replaced by a parameter; the other parameters are the query. */
export type Get = <Answer>(path: string, parameters: Parameters, call?: CallOptions) => Call<Answer>

/** Sends a JSON body to `path`, in which `:name` is replaced by a parameter. */
export type Act = <Answer>(
  method: 'POST' | 'PATCH' | 'PUT',
  path: string,
  parameters: Parameters,
  body: unknown,
  call?: CallOptions
) => Call<Answer>

/**
 * Opens an answer that is read as it arrives; its head has the time limit of a call. Rejects with a `GamenetError` if
 * it is refused or the service cannot be reached.
 */
export type Open = (
  path: string,
  parameters: Parameters,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal | undefined
) => Promise<Response>

const TIMEOUT_MS = 60_000
const RETRIES = 2
/** Names that change with each call fill neither the log nor the memory. */
const WARNINGS_MAX = 20

/** What the methods of a client send requests with. */
export type Requester = { readonly get: Get; readonly act: Act; readonly open: Open }

/** The shared state of one client's methods: the address, the settings, the cached answers. */
export function requester(options: ClientOptions): Requester {
  const base = baseOf(options.baseUrl)
  const memory = new AnswerMemory()
  const warned = new Set<string>()
  const ask = async <Answer>(url: string, call: CallOptions): Promise<Result<Answer>> => {
    const isKept = call.sessionKey === undefined
    const cached = isKept ? memory.get(url) : undefined
    const tag = cached === undefined ? {} : { 'If-None-Match': cached.etag }
    const { response, text } = await send(options, url, { headers: { ...tag, ...session(call) } }, call.signal)
    warnOfUnknown(warned, url, response.headers.get('x-unknown-parameters'))
    const again = (next: string) => ask<Answer>(next, call)
    if (response.status === 304 && cached !== undefined) {
      const headers = new Headers(cached.headers)
      for (const [name, value] of response.headers) headers.set(name, value)
      return resultOf(url, JSON.parse(cached.text), headers, again)
    }
    const result = resultOf(url, answerOf<Answer>(url, response, text), response.headers, again)
    const etag = response.headers.get('etag')
    if (etag !== null && isKept) memory.keep(url, { etag, text, headers: response.headers })
    return result
  }
  const change = async <Answer>(method: string, url: string, body: unknown, call: CallOptions) => {
    const headers = { 'Content-Type': 'application/json', ...session(call) }
    const { response, text } = await send(options, url, { method, headers, body: JSON.stringify(body) }, call.signal)
    return resultOf(url, answerOf<Answer>(url, response, text), response.headers)
  }
  const act: Act = <Answer>(
    method: string,
    path: string,
    parameters: Parameters,
    body: unknown,
    call: CallOptions = {}
  ) =>
    new Call<Answer>(
      attempt(() => change<Answer>(method, base + pathAndQuery(path, parameters), body, call)),
      call.signal
    )
  return {
    get: <Answer>(path: string, parameters: Parameters, call: CallOptions = {}) =>
      new Call<Answer>(
        attempt(() => ask<Answer>(base + pathAndQuery(path, parameters), call)),
        call.signal
      ),
    act,
    open: async (path, parameters, headers, signal) => {
      const url = base + pathAndQuery(path, parameters)
      const { fetch = globalThis.fetch, timeoutMs = TIMEOUT_MS } = options
      const late = new AbortController()
      const timeout = setTimeout(() => late.abort(), timeoutMs)
      const both = signal === undefined ? late.signal : AbortSignal.any([signal, late.signal])
      try {
        const response = await fetch(url, { headers, signal: both }).catch((cause: unknown) => {
          signal?.throwIfAborted()
          throw unreachable(url, cause, late.signal.aborted ? timeoutMs : undefined)
        })
        if (response.ok) return response
        throw refusalOf(response, await response.text())
      } finally {
        clearTimeout(timeout)
      }
    }
  }
}

/**
 * Warns once of each parameter that an operation of the service does not have: it may be misspelt, or the service
 * older.
 */
function warnOfUnknown(warned: Set<string>, url: string, names: string | null): void {
  if (names === null || warned.has(names) || warned.size >= WARNINGS_MAX) return
  warned.add(names)
  const { pathname } = new URL(url)
  console.warn(`${pathname} has no parameter ${names}: the service ignored it; its /docs list those that it has.`)
}

/** Runs `work`; an error that it throws at once rejects, too. */
async function attempt<Value>(work: () => Promise<Value>): Promise<Value> {
  return await work()
}

/**
 * Sends a request, and retries it after the seconds of `Retry-After` while the service is busy or unavailable, within
 * the time limit of the call.
 */
async function send(
  { fetch = globalThis.fetch, timeoutMs = TIMEOUT_MS, retries = RETRIES }: ClientOptions,
  url: string,
  init: RequestInit,
  signal: AbortSignal | undefined
): Promise<{ readonly response: Response; readonly text: string }> {
  const timeout = AbortSignal.timeout(timeoutMs)
  const endsAtMs = performance.now() + timeoutMs
  const both = signal === undefined ? timeout : AbortSignal.any([signal, timeout])
  for (let tries = 0; ; tries += 1) {
    const exchanged = await exchange(fetch, url, { ...init, signal: both }).catch((cause: unknown) => {
      signal?.throwIfAborted()
      throw unreachable(url, cause, timeout.aborted ? timeoutMs : undefined)
    })
    const { status, headers } = exchanged.response
    const waitMs = status === 429 || status === 503 ? retryAfterOf(headers) * 1000 : Number.POSITIVE_INFINITY
    if (tries >= retries || performance.now() + waitMs >= endsAtMs) return exchanged
    await delay(waitMs, signal)
  }
}

/** The next page is requested at the same path: a `Link` never sends a session to another host. */
function resultOf<Answer>(
  url: string,
  data: Answer,
  headers: Headers,
  ask?: (url: string) => Promise<Result<Answer>>
): Result<Answer> {
  const query = /<[^>?]*\?([^>]*)>; rel="next"/.exec(headers.get('link') ?? '')?.[1]
  return {
    data,
    headers,
    cursor: new URLSearchParams(query).get('after') ?? undefined,
    next: async () => (query === undefined ? undefined : await ask?.(`${url.split('?', 1)[0]}?${query}`))
  }
}

function session({ sessionKey }: CallOptions): Record<string, string> {
  return sessionKey === undefined ? {} : { 'X-Session-Key': sessionKey }
}

function answerOf<Answer>(url: string, response: Response, text: string): Answer {
  if (!response.ok) throw refusalOf(response, text)
  const answer = parsed(text)
  if (answer !== undefined) return answer as Answer
  throw new GamenetError(response.status, `${url} answered no JSON; check that baseUrl is a Gamenet Stats service.`)
}

async function exchange(fetch: typeof globalThis.fetch, url: string, init: RequestInit) {
  const response = await fetch(url, init)
  return { response, text: await response.text() }
}

function baseOf(baseUrl: string): string {
  if (!/^https?:\/\/[^/?#]+[^?#]*$/i.test(baseUrl) || !URL.canParse(baseUrl)) {
    throw new GamenetError(0, `baseUrl must be an http address such as https://stats.example.org; got "${baseUrl}".`)
  }
  return baseUrl.replace(/\/+$/, '')
}

function pathAndQuery(template: string, parameters: Parameters): string {
  const inPath = new Set<string>()
  const path = template.replace(/:(\w+)/g, (_, name: string) => {
    inPath.add(name)
    return segmentOf(name, String(parameters[name] ?? ''))
  })
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters)) {
    if (value === undefined || inPath.has(name)) continue
    query.set(name, value instanceof Date ? isoOf(name, value) : String(value))
  }
  const queryText = query.toString()
  return queryText === '' ? path : `${path}?${queryText}`
}

/** One segment of a path. Every URL parser resolves `.` and `..`, encoded too, so they cannot be sent. */
function segmentOf(name: string, value: string): string {
  if (/^\.{0,2}$/.test(value) || /\p{Cs}/u.test(value)) {
    throw new GamenetError(0, `${name} cannot be asked for: ${JSON.stringify(value)} cannot stand in a path.`)
  }
  return encodeURIComponent(value)
}

function isoOf(name: string, instant: Date): string {
  if (Number.isNaN(instant.getTime())) throw new GamenetError(0, `${name} is an invalid Date; expected an instant.`)
  return instant.toISOString()
}

function refusalOf(response: Response, text: string): GamenetError {
  const body = parsed(text)
  const sentence = typeof body === 'object' && body !== null && 'error' in body ? body.error : undefined
  const message = typeof sentence === 'string' ? sentence : `${response.url} answered HTTP status ${response.status}.`
  const seconds = retryAfterOf(response.headers)
  return new GamenetError(response.status, message, {
    code: response.headers.get('x-error-code') ?? undefined,
    retryAfterSeconds: seconds === Number.POSITIVE_INFINITY ? undefined : seconds,
    requestId: response.headers.get('x-request-id') ?? undefined
  })
}

/** Seconds of `Retry-After`; infinite without one, or one that is a date. */
export function retryAfterOf(headers: Headers): number {
  const retryAfter = headers.get('retry-after') ?? ''
  return /^\d{1,9}$/.test(retryAfter) ? Number(retryAfter) : Number.POSITIVE_INFINITY
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Returns the error for a service that did not answer within `timeoutMs`, or cannot be reached. */
function unreachable(url: string, cause: unknown, timeoutMs: number | undefined): GamenetError {
  const reason =
    timeoutMs === undefined ? `cannot be reached: ${reasonOf(cause)}` : `did not answer within ${timeoutMs} ms`
  return new GamenetError(0, `${url} ${reason}; check baseUrl and the network.`, { cause })
}

/** Node's fetch says only "fetch failed" and names the reason in its cause. */
function reasonOf(error: unknown): string {
  const { cause } = error instanceof Error ? error : {}
  const reported = cause instanceof Error && cause.message !== '' ? cause : error
  return reported instanceof Error ? reported.message : String(reported)
}
