import { Refusal } from '@gamenet/schemas'
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { AnswerContext, Endpoint } from '../answers/answer.js'
import { type Answer, type AnswerCache, type Frame, isCompressible } from '../answers/answer-cache.js'
import type { ConsistentReads } from '../answers/consistent-reads.js'
import { type Coding, etagOf, namedTag } from '../answers/etag.js'
import type { CatalogCache } from '../queries/catalog.js'
import { playersCheckCache } from '../queries/players-check.js'
import type { ReadTables } from '../read-tables.js'
import { hasKeyHeader, SESSION_KEY_FIELD, shownKey } from '../session/session-key.js'
import type { Session, Sessions } from '../session/sessions.js'
import type { WriteSide } from '../write-side.js'
import type { HttpMetrics, Outcome } from './metrics.js'
import { otherPath } from './other-path.js'
import { COMMON_HEADERS, FOR_ONE_ALONE, flat, JSON_TYPE } from './reply/headers.js'
import { codingFor } from './request/accept-encoding.js'
import { readBody } from './request/body.js'
import { parseInput } from './request/parameters.js'
import { readQuery } from './request/query-string.js'
import {
  answerHeaders,
  questionOf,
  type ResolvedUrl,
  ResolvedUrls,
  resolveUrl,
  type Versions
} from './request/resolved-url.js'

/** What answering needs. */
export type EndpointNeeds = {
  readonly tables: ReadTables
  readonly writes: WriteSide
  readonly versions: Versions
  readonly catalog: Pick<CatalogCache, 'newest' | 'held' | 'boards'>
  readonly sessions: Pick<Sessions, 'of'>
  readonly cache: AnswerCache
  readonly consistent: ConsistentReads
  readonly metrics: HttpMetrics
  readonly logger: FastifyBaseLogger
  readonly openListAgeMs: number
  now(): number
}

/** Adds the routes of the endpoints. HEAD comes with each GET. What is posted is never known by its URL. */
export function addEndpoints(app: FastifyInstance, endpoints: readonly Endpoint[], needs: EndpointNeeds): void {
  const urls = new ResolvedUrls()
  const { tables, versions } = needs
  const versionOf: Versions['versionOf'] = (dependency) => versions.versionOf(dependency)
  const shared = { ...needs, playersCheckedMs: playersCheckCache({ tables, versionOf }) }
  for (const endpoint of endpoints) {
    const answering = new Answering(endpoint, urls, shared)
    for (const path of [endpoint.path, otherPath(endpoint.path)]) {
      if (path === undefined) continue
      if (endpoint.method === 'POST') app.post(path, (request, reply) => answering.answerPosted(request, reply))
      else app.get(path, (request, reply) => answering.answer(request, reply))
    }
  }
}

type AnsweringNeeds = EndpointNeeds & Pick<AnswerContext, 'playersCheckedMs'>

/**
 * Answers one endpoint's requests. The response is written past Fastify's reply: a ready answer is one lookup and one
 * write, which is the difference between half of and the whole speed of a bare route.
 */
class Answering {
  readonly #endpoint: Endpoint
  readonly #urls: ResolvedUrls
  readonly #needs: AnsweringNeeds
  readonly #observe: ReturnType<HttpMetrics['durations']>

  constructor(endpoint: Endpoint, urls: ResolvedUrls, needs: AnsweringNeeds) {
    this.#endpoint = endpoint
    this.#urls = urls
    this.#needs = needs
    this.#observe = needs.metrics.durations(endpoint.path)
  }

  get #isPosted(): boolean {
    return this.#endpoint.method === 'POST'
  }

  /** Sends what is ready at once; the promise of the rest. */
  answer(request: FastifyRequest, reply: FastifyReply): Promise<void> | undefined {
    const startedAt = performance.now()
    const { versions } = this.#needs
    if (this.#endpoint.answerTo !== undefined && hasKeyHeader(request.raw.headers)) {
      return this.#answerSlowly(request, reply, startedAt)
    }
    const known = this.#urls.get(request.raw.url ?? '', versions, this.#needs.now())
    if (known !== undefined && versions.isCurrent) {
      const exchange = { request, reply, known, startedAt }
      if (this.#sendNotModified(exchange) || this.#sendReady(exchange)) return undefined
    }
    return this.#answerSlowly(request, reply, startedAt)
  }

  /** Answers a question that stands in the body: from memory too, but without a name to ask about it again. */
  answerPosted(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    return this.#answerSlowly(request, reply, performance.now())
  }

  async #answerSlowly(request: FastifyRequest, reply: FastifyReply, startedAt: number): Promise<void> {
    const endpoint = this.#endpoint
    const needs = this.#needs
    const url = request.raw.url ?? ''
    const given = this.#isPosted ? readBody(request.body) : readQuery(url)
    const input = parseInput(endpoint.input, { ...given, ...(request.params as Record<string, unknown>) })
    const question = questionOf(endpoint.path, input)
    const gone = goneSignal(reply)
    const hasKey = SESSION_KEY_FIELD in given
    const isPersonal = endpoint.answerTo !== undefined && (hasKey || hasKeyHeader(request.raw.headers))
    try {
      const { known, found } = await needs.consistent.read(async () => {
        const known = await resolveUrl(endpoint, input, question, {
          versions: needs.versions,
          catalog: () => needs.catalog.held(),
          nowMs: needs.now(),
          openListAgeMs: needs.openListAgeMs
        })
        if (isPersonal)
          return { known, found: await this.#makeFor(shownKey(request.raw.headers, given), known, request, gone) }
        return {
          known,
          found: this.#namedTag(request, known) === undefined ? await this.#find(known, gone) : undefined
        }
      })
      const exchange = { request, reply, known, startedAt }
      // A URL with a key in it is not remembered, by whatever route.
      if (!isPersonal && !this.#isPosted && !hasKey) this.#urls.set(url, known)
      if (found === undefined) this.#sendNotModified(exchange)
      else if (isPersonal) this.#sendPersonal(exchange, found.answer, found.outcome)
      else await this.#send(exchange, found.answer, found.outcome)
    } catch (error) {
      if (gone.aborted) {
        reply.hijack()
        return
      }
      await this.#sendLast({ request, reply, startedAt }, question, error, isPersonal)
    }
  }

  /** The answer for whoever shows a key. */
  async #makeFor(
    sessionKey: string | undefined,
    known: ResolvedUrl,
    request: FastifyRequest,
    gone: AbortSignal
  ): Promise<{ answer: Answer; outcome: Outcome }> {
    const viewer = await this.#viewerOf(sessionKey, request)
    return { answer: await this.#make(known, gone, viewer), outcome: 'query' }
  }

  /** The right answer from memory, or made now, alone or together with others who ask the same. */
  async #find(known: ResolvedUrl, gone: AbortSignal): Promise<{ answer: Answer; outcome: Outcome }> {
    const { cache, consistent } = this.#needs
    const kept = cache.newest(known.question)
    if (kept?.identity === known.identity) return { answer: kept, outcome: 'memory' }
    const outcome = cache.isPending(known.identity) ? 'joined' : 'query'
    const answer = await cache.make(known.question, known.identity, gone, (signal) =>
      consistent.readOnce(() => this.#make(known, signal))
    )
    return { answer, outcome }
  }

  /** Whose key it is; undefined whenever that is not certain. */
  async #viewerOf(sessionKey: string | undefined, request: FastifyRequest): Promise<Session | undefined> {
    if (sessionKey === undefined) return undefined
    return await this.#needs.sessions.of(sessionKey).catch((error: unknown) => {
      this.#needs.logger.warn({ err: error, reqId: request.id }, 'a session cannot be checked; its viewer is nobody')
      return undefined
    })
  }

  async #make(known: ResolvedUrl, signal: AbortSignal, viewer?: Session): Promise<Answer> {
    const { resolved, identity, dataVersion, headers } = known
    const { tables, writes, catalog, playersCheckedMs, metrics, now } = this.#needs
    const context: AnswerContext = {
      tables,
      writes,
      catalog: () => catalog.newest(),
      boards: () => catalog.boards(),
      playersCheckedMs,
      signal
    }
    const startedAt = performance.now()
    const endpoint = this.#endpoint
    const made = await (viewer !== undefined && endpoint.answerTo !== undefined
      ? endpoint.answerTo(resolved, viewer, context)
      : endpoint.answer(resolved, context))
    metrics.queried(endpoint.operationId, (performance.now() - startedAt) / 1000)
    const body = made.body instanceof Uint8Array ? made.body : Buffer.from(JSON.stringify(made.body))
    return {
      identity,
      dataVersion,
      headers: { ...headers, ...made.headers },
      createdAtMs: now(),
      body,
      isProvisional: made.isProvisional === true,
      frames: {},
      compressing: {}
    }
  }

  /**
   * The last answer to the same question while the tables are away or busy. Everything else is thrown: what a caller did
   * wrong, and every defect, which an old answer would hide for as long as it lasts. A statement that went over its own
   * time or memory is a defect too: it waited in the queue before, and then has 30 s for what takes less than one. Only
   * the engine as a whole at its limit is busy, and says so by a `Refusal`.
   */
  async #sendLast(
    exchange: Omit<Exchange, 'known'>,
    question: string,
    error: unknown,
    isPersonal: boolean
  ): Promise<void> {
    const isUnavailable = error instanceof Refusal && error.status === 503
    const last = isUnavailable ? this.#needs.cache.newest(question) : undefined
    if (last === undefined) throw error
    this.#needs.logger.warn(
      { err: error, reqId: exchange.request.id },
      'the last answer is served for want of a newer one'
    )
    const known = { question, identity: last.identity }
    if (isPersonal) this.#sendPersonal({ ...exchange, known }, last, 'stale')
    else await this.#send({ ...exchange, known }, last, 'stale')
  }

  #sendNotModified({ request, reply, known, startedAt }: Exchange & { known: ResolvedUrl }): boolean {
    const tag = this.#namedTag(request, known)
    if (tag === undefined) return false
    reply.hijack()
    reply.raw.writeHead(304, ['X-Request-Id', request.id, 'ETag', tag, ...COMMON, ...known.notModified])
    reply.raw.end()
    this.#needs.metrics.answered.not_modified()
    this.#observe(request.raw.method ?? 'GET', 304, (performance.now() - startedAt) / 1000)
    return true
  }

  /** The tag by which the caller says to have the answer. What is posted has none. */
  #namedTag({ raw }: FastifyRequest, known: ResolvedUrl): string | undefined {
    const ifNoneMatch = raw.headers['if-none-match']
    return ifNoneMatch === undefined || this.#isPosted ? undefined : namedTag(ifNoneMatch, known.identity)
  }

  #sendReady(exchange: Exchange): boolean {
    const { request, known } = exchange
    const answer = this.#needs.cache.newest(known.question)
    if (answer?.identity !== known.identity) return false
    const coding = isCompressible(answer) ? codingFor(headerOf(request, 'accept-encoding')) : 'identity'
    const frame = answer.frames[coding]
    if (frame === undefined) return false
    this.#write(exchange, frame, 'memory', undefined)
    return true
  }

  async #send(exchange: Exchange, answer: Answer, outcome: Outcome): Promise<void> {
    const { cache } = this.#needs
    const coding = isCompressible(answer) ? codingFor(headerOf(exchange.request, 'accept-encoding')) : 'identity'
    let frame = answer.frames[coding]
    if (frame === undefined) {
      frame = frameOf(answer, coding, await cache.compressed(answer, coding), this.#isPosted)
      cache.addFrame(exchange.known.question, answer, coding, frame)
    }
    this.#write(exchange, frame, outcome, this.#ageOf(answer, outcome))
  }

  /** Not compressed: secrets and what others write would stand in one body. */
  #sendPersonal(exchange: Exchange, answer: Answer, outcome: Outcome): void {
    const headers = {
      'Content-Type': JSON_TYPE,
      'Content-Length': String(answer.body.byteLength),
      ...COMMON_HEADERS,
      'Cache-Control': FOR_ONE_ALONE,
      'X-Data-Version': answer.dataVersion,
      ...answer.headers
    }
    this.#write(exchange, { bytes: answer.body, headers: flat(headers) }, outcome, this.#ageOf(answer, outcome))
  }

  #ageOf(answer: Answer, outcome: Outcome): number | undefined {
    const { versions, now } = this.#needs
    // While changes cannot be learnt, nobody knows whether an answer from memory is the newest: it says its age.
    const isOld = outcome === 'stale' || (outcome === 'memory' && !versions.isCurrent)
    return isOld ? Math.max(0, Math.floor((now() - answer.createdAtMs) / 1000)) : undefined
  }

  #write(
    { request, reply, startedAt }: Exchange,
    frame: Frame,
    outcome: Outcome,
    ageSeconds: number | undefined
  ): void {
    reply.hijack()
    const headers = ['X-Request-Id', request.id, ...frame.headers]
    if (ageSeconds !== undefined) headers.push('Age', String(ageSeconds))
    reply.raw.writeHead(200, headers)
    reply.raw.end(frame.bytes)
    this.#needs.metrics.answered[outcome]()
    this.#observe(request.raw.method ?? 'GET', 200, (performance.now() - startedAt) / 1000)
  }
}

type Exchange = {
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly known: Pick<ResolvedUrl, 'question' | 'identity'>
  readonly startedAt: number
}

const COMMON = flat(COMMON_HEADERS)

function frameOf(answer: Answer, coding: Coding, bytes: Uint8Array, isPosted: boolean): Frame {
  const headers: Record<string, string> = {
    'Content-Type': JSON_TYPE,
    'Content-Length': String(bytes.byteLength),
    ...COMMON_HEADERS,
    ...answerHeaders(answer.dataVersion),
    // The tag of a posted question's answer would name whatever GET answers at the path (RFC 9110, 9.3.3 and 8.8.3).
    ...(isPosted || answer.isProvisional ? { 'Cache-Control': 'no-store' } : { ETag: etagOf(answer.identity, coding) }),
    ...answer.headers
  }
  if (coding !== 'identity') headers['Content-Encoding'] = coding
  return { bytes, headers: flat(headers) }
}

function headerOf(request: FastifyRequest, name: string): string | undefined {
  const value = request.raw.headers[name]
  return Array.isArray(value) ? value.join(', ') : value
}

/** Aborts when the caller goes away before the answer is written. */
function goneSignal(reply: FastifyReply): AbortSignal {
  const abort = new AbortController()
  reply.raw.once('close', () => {
    if (!reply.raw.writableEnded) abort.abort(new Error('the caller went away'))
  })
  return abort.signal
}
