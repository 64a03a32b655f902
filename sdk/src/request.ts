import { AnswerMemory } from './answer-memory.js'
import { GamenetError } from './gamenet-error.js'

/** Where the service is, and how it is asked. */
export type ClientOptions = {
  /** Address of the service, such as `https://stats.example.org`; a path in front of `/api` is kept. */
  readonly baseUrl: string
  /** What sends requests, the platform's own when not given. */
  readonly fetch?: typeof globalThis.fetch | undefined
  /** Milliseconds until a call gives up, from the request to the answer's last byte; 60,000 when not given. */
  readonly timeoutMs?: number | undefined
}

/** What every method takes behind its parameters. */
export type CallOptions = {
  /** Ends the call, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** Whose call it is; sent as `X-Session-Key`. An answer to a call with a session is not kept. */
  readonly sessionKey?: string | undefined
}

/** Parameters of path and query by name; what is `undefined` is not sent. */
export type Parameters = Readonly<Record<string, string | number | Date | undefined>>

/** Asks for `path`, in which `:name` stands for a parameter; the other parameters make the query. */
export type Get = <Answer>(path: string, parameters: Parameters, call?: CallOptions) => Promise<Answer>

const TIMEOUT_MS = 60_000

/** Asks `path` a question that stands in a JSON body. */
export type Post = <Answer>(path: string, body: unknown, call?: CallOptions) => Promise<Answer>

/** Changes something at `path`, in which `:name` stands for a parameter, as the body says. */
export type Act = <Answer>(
  method: 'POST' | 'PATCH' | 'PUT',
  path: string,
  parameters: Parameters,
  body: unknown,
  call?: CallOptions
) => Promise<Answer>

/** What the methods of one client share: the address, the ways to send, the answers kept. */
export function requester({ baseUrl, fetch = globalThis.fetch, timeoutMs = TIMEOUT_MS }: ClientOptions): {
  readonly get: Get
  readonly post: Post
  readonly act: Act
} {
  const base = baseOf(baseUrl)
  const memory = new AnswerMemory()
  const send = async (url: string, init: RequestInit, signal: AbortSignal | undefined) => {
    const timeout = AbortSignal.timeout(timeoutMs)
    const both = signal === undefined ? timeout : AbortSignal.any([signal, timeout])
    return await exchange(fetch, url, { ...init, signal: both }).catch((cause: unknown) => {
      signal?.throwIfAborted()
      const reason = timeout.aborted ? `did not answer within ${timeoutMs} ms` : `cannot be reached: ${reasonOf(cause)}`
      throw new GamenetError(0, `${url} ${reason}; check baseUrl and the network.`, { cause })
    })
  }
  const act: Act = async <Answer>(
    method: 'POST' | 'PATCH' | 'PUT',
    path: string,
    parameters: Parameters,
    body: unknown,
    { signal, sessionKey }: CallOptions = {}
  ): Promise<Answer> => {
    const url = base + pathAndQuery(path, parameters)
    const headers = { 'Content-Type': 'application/json', ...session(sessionKey) }
    const { response, text } = await send(url, { method, headers, body: JSON.stringify(body) }, signal)
    return answerOf<Answer>(url, response, text)
  }
  return {
    get: async <Answer>(
      path: string,
      parameters: Parameters,
      { signal, sessionKey }: CallOptions = {}
    ): Promise<Answer> => {
      const url = base + pathAndQuery(path, parameters)
      const cached = sessionKey === undefined ? memory.get(url) : undefined
      const tag = cached === undefined ? {} : { 'If-None-Match': cached.etag }
      const { response, text } = await send(url, { headers: { ...tag, ...session(sessionKey) } }, signal)
      if (response.status === 304 && cached !== undefined) return JSON.parse(cached.text)
      const answer = answerOf<Answer>(url, response, text)
      const etag = response.headers.get('etag')
      if (etag !== null && sessionKey === undefined) memory.keep(url, { etag, text })
      return answer
    },
    post: (path, body, call) => act('POST', path, {}, body, call),
    act
  }
}

function session(key: string | undefined): Record<string, string> {
  return key === undefined ? {} : { 'X-Session-Key': key }
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
  const retryAfter = response.headers.get('retry-after') ?? ''
  const retryAfterSeconds = /^\d{1,9}$/.test(retryAfter) ? Number(retryAfter) : undefined
  return new GamenetError(response.status, message, { retryAfterSeconds })
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Node's fetch says only "fetch failed" and names the reason in its cause. */
function reasonOf(error: unknown): string {
  const { cause } = error instanceof Error ? error : {}
  const reported = cause instanceof Error && cause.message !== '' ? cause : error
  return reported instanceof Error ? reported.message : String(reported)
}
