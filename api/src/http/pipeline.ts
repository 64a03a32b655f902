import type { IncomingMessage, ServerResponse } from 'node:http'
import { type ReadPositions, Refusal, retryDropped, type ServingTables, withServing } from '@gamenet/schemas'
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Answer, AnswerCache, Frame } from '../answers/answer-cache.js'
import { isCompressible } from '../answers/compression.js'
import {
  type Action,
  type ActionContext,
  type AnswerContext,
  type Endpoint,
  type FoldRecords,
  type PeriodSeconds,
  pathParameters
} from '../answers/endpoint.js'
import type { ExportFiles, ExportSource } from '../answers/export-files.js'
import { fileHeaders, fileIdentity, sendFile } from '../answers/file.js'
import { frameOf, privateFrameOf } from '../answers/frame.js'
import { questionOf, type ResolvedUrl, ResolvedUrls, resolveUrl, type Versions } from '../answers/resolved-url.js'
import { answeredTable, selectedTable, type Table } from '../answers/table.js'
import type { CatalogCache } from '../queries/catalog.js'
import { playersCheckCache } from '../queries/players-check.js'
import type { StreamedTables } from '../read-tables.js'
import { requestFault } from '../reply/errors.js'
import { EXPOSED_HEADERS, FOR_ONE_ALONE, flat, JSON_TYPE } from '../reply/headers.js'
import { codingOf } from '../request/accept-encoding.js'
import { readBody } from '../request/body.js'
import type { ClientAddresses } from '../request/client-address.js'
import { digestOf, namedTag, permitsTag } from '../request/etag.js'
import { acceptedFormat, FILE_FORMATS, FORMAT_PARAMETER, type FormatName, formatOf } from '../request/format.js'
import { otherPath } from '../request/other-path.js'
import { KNOWN_AT, parseInput } from '../request/parameters.js'
import { readQuery, unknownNames } from '../request/query-string.js'
import { partOf } from '../request/range.js'
import { hasKeyHeader, SESSION_KEY_FIELD, shownKey } from '../request/session-key.js'
import type { Budget } from '../session/budget.js'
import type { Session, Sessions } from '../session/sessions.js'
import type { HttpMetrics, Outcome } from './http-metrics.js'
import type { SlotsPerAddress } from './slots-per-address.js'

/*
 * fast path   a GET whose URL is resolved and whose answer is cached in the coding that the client accepts: two lookups
 *             and one write, before Fastify, which would halve the speed
 * slow path   parse → resolve → cached, joined or computed answer → frame → write
 */

const EXPOSED = flat(EXPOSED_HEADERS)
/** Refusals of sessions that are not logged. */
const UNLOGGED: ReadonlySet<string> = new Set(['username_unstable', 'session_checks_spent'])

/** The dependencies of endpoints and actions. */
export type PipelineNeeds = Pick<ActionContext, 'writes' | 'ratings' | 'chat'> & {
  readonly tables: StreamedTables
  readonly positions: ReadPositions
  readonly foldRecords: FoldRecords | undefined
  readonly versions: Versions
  readonly catalog: Pick<CatalogCache, 'newest' | 'held' | 'boards'>
  readonly sessions: Pick<Sessions, 'of'>
  readonly cache: AnswerCache
  /** The edits and ratings of each user. */
  readonly budget: Budget
  readonly metrics: HttpMetrics
  /** The addresses by which clients are limited: `clients.of(request)`. */
  readonly clients: ClientAddresses
  readonly exports: ExportFiles
  readonly exportSlots: SlotsPerAddress
  readonly logger: FastifyBaseLogger
  readonly openListAgeMs: number
  readonly periodSeconds: PeriodSeconds
  /** Paths of the endpoints that take `knownAt`. */
  readonly takingKnownAt: readonly string[]
  historyPercent(): number | undefined
  /** Returns a new request id. */
  nextId(): string
  now(): number
}

/** The routes of the pipeline. */
export type PipelineRoutes = {
  readonly endpoints: readonly Endpoint[]
  readonly actions: readonly Action[]
  /** Returns endpoints whose answers are made of other answers. Default: none. */
  readonly pages?: (answers: PartAnswers) => readonly Endpoint[]
}

/** The answers of endpoints, for answers that are made of them. */
export type PartAnswers = {
  /** Parses and resolves the parameters of a question, given as in a URL. Throws as the endpoint refuses. */
  resolve(endpoint: Endpoint, given: Readonly<Record<string, unknown>>): Promise<ResolvedUrl>
  /** Returns the answer; the last one, and says so, while the tables are unavailable or busy. */
  find(endpoint: Endpoint, url: ResolvedUrl, signal: AbortSignal): Promise<{ answer: Answer; isLast: boolean }>
}

/** Adds the routes of endpoints and actions; Fastify adds HEAD to each GET. Returns the fast path. */
export function addPipeline(
  app: FastifyInstance,
  { endpoints, actions, pages }: PipelineRoutes,
  needs: PipelineNeeds
): AnswerReady {
  const urls = new ResolvedUrls<Answering>()
  const { tables, versions } = needs
  const versionOf: Versions['versionOf'] = (dependency) => versions.versionOf(dependency)
  const playersCheckedMs = playersCheckCache({ tables, versionOf, now: () => needs.now() })
  const answerReady: AnswerReady = (request, response, id) => {
    if ((request.method !== 'GET' && request.method !== 'HEAD') || !versions.isCurrent) return false
    const resolved = urls.get(request.url ?? '', versions, needs.now())
    if (resolved === undefined || requestFault(request) !== undefined) return false
    return resolved.answering.answerReady({ request, response, id: id ?? needs.nextId() }, resolved)
  }
  const answerings = new Map<Endpoint, Answering>()
  const answeringOf = (endpoint: Endpoint): Answering => {
    const shared = { ...needs, playersCheckedMs }
    const answering = answerings.get(endpoint) ?? new Answering(endpoint, urls, shared)
    answerings.set(endpoint, answering)
    return answering
  }
  const parts: PartAnswers = {
    resolve: (endpoint, given) => answeringOf(endpoint).resolvePart(given),
    find: (endpoint, url, signal) => answeringOf(endpoint).findPart(url, signal)
  }
  for (const endpoint of [...endpoints, ...(pages?.(parts) ?? [])]) {
    const answering = answeringOf(endpoint)
    for (const url of [endpoint.path, otherPath(endpoint.path)]) {
      if (url === undefined) continue
      app.route({
        url,
        method: endpoint.method ?? 'GET',
        handler: async (request, reply) => {
          // Those of `inject` have not been offered to it.
          if (!answerReady(request.raw, reply.raw, request.id)) await answering.answer(request, reply)
          reply.hijack()
        }
      })
    }
  }
  for (const action of actions) {
    app.route({
      url: action.path,
      method: action.method,
      config: { isStrictJson: true },
      handler: async (request, reply) => {
        const answer = await act(action, request, needs)
        return reply.headers({ 'Content-Type': JSON_TYPE, 'Cache-Control': FOR_ONE_ALONE }).send(JSON.stringify(answer))
      }
    })
  }
  return answerReady
}

/** The fast path: answers a request and returns true, or returns false. Without an id the request gets one. */
export type AnswerReady = (request: IncomingMessage, response: ServerResponse, id?: string) => boolean

/** A request with its response and its id. */
type Exchange = {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly id: string
  /**
   * The instant of its arrival, by `performance.now()`. Absent on the fast path, where reading the clock is a fifth of
   * the work.
   */
  readonly startedAt?: number
}

/** A question whose answer is requested as a file. */
type FileRequest = {
  readonly table: Table
  readonly format: FormatName
  readonly input: unknown
  readonly question: string
  readonly closed: AbortSignal
}

/** An answer and its origin. */
type Computed = { readonly answer: Answer; readonly outcome: Outcome }

type AnsweringNeeds = PipelineNeeds & {
  playersCheckedMs(serving: ServingTables): Promise<number | null>
}

/** Answers the requests of one endpoint. */
class Answering {
  readonly #endpoint: Endpoint
  readonly #urls: ResolvedUrls<Answering>
  readonly #needs: AnsweringNeeds
  readonly #observe: ReturnType<HttpMetrics['durations']>
  readonly #isPosted: boolean
  /** The parameters of the query. */
  readonly #known: ReadonlySet<string>

  constructor(endpoint: Endpoint, urls: ResolvedUrls<Answering>, needs: AnsweringNeeds) {
    this.#endpoint = endpoint
    this.#urls = urls
    this.#needs = needs
    this.#observe = needs.metrics.durations(endpoint.path)
    this.#isPosted = endpoint.method === 'POST'
    const inPath = pathParameters(endpoint.path)
    const inQuery = Object.keys(endpoint.input.shape).filter((name) => !inPath.has(name))
    this.#known = new Set([
      ...inQuery,
      ...(endpoint.answerTo === undefined ? [] : [SESSION_KEY_FIELD]),
      ...(endpoint.table === undefined ? [] : [FORMAT_PARAMETER])
    ])
  }

  /** Sends the ready answer, or 304, and returns true if the client wants no other. */
  answerReady(exchange: Exchange, resolved: ResolvedUrl): boolean {
    const { headers } = exchange.request
    if (this.#endpoint.answerTo !== undefined && hasKeyHeader(headers)) return false
    if (this.#endpoint.table !== undefined && acceptedFormat(headers.accept) !== undefined) return false
    return this.#sendNotModified(exchange, resolved) || this.#sendReady(exchange, resolved)
  }

  /** The slow path. */
  async answer({ raw: request, id, body, params }: FastifyRequest, { raw: response }: FastifyReply): Promise<void> {
    const exchange = { request, response, id, startedAt: performance.now() }
    const { answerTo, input: schema, path, table } = this.#endpoint
    const url = request.url ?? ''
    const query = readQuery(url)
    const given = this.#isPosted ? readBody(body) : query
    if (KNOWN_AT in given && !this.#known.has(KNOWN_AT)) {
      throw new Refusal('known_at_unsupported', [path, this.#needs.takingKnownAt.join(', ')])
    }
    const unknown = this.#isPosted ? undefined : unknownNames(given, this.#known)
    if (unknown !== undefined) response.setHeader('X-Unknown-Parameters', unknown)
    const input = parseInput(schema, { ...given, ...(params as Record<string, unknown>) })
    const question = questionOf(path, input)
    const closed = closedSignal(response)
    const format = table === undefined ? undefined : formatOf(query[FORMAT_PARAMETER], request.headers.accept)
    if (table !== undefined && format !== undefined) {
      return await this.#answerFile(exchange, { table, format, input, question, closed })
    }
    const hasKeyField = SESSION_KEY_FIELD in given
    const isPersonal = answerTo !== undefined && (hasKeyField || hasKeyHeader(request.headers))
    try {
      const { resolved, found } = await retryDropped(this.#needs.versions, async () => {
        const resolved = await this.#resolve(input, question)
        if (isPersonal) {
          const viewer = await this.#viewerOf(shownKey(request.headers, given), exchange)
          return {
            resolved,
            found: { answer: await this.#compute(resolved, closed, viewer), outcome: 'query' } as const
          }
        }
        if (this.#isNamed(request, resolved, resolved.identity)) return { resolved, found: undefined }
        const found = await this.#find(resolved, closed)
        return { resolved: { ...resolved, identity: found.answer.identity }, found }
      })
      // A URL that contains a session key is never cached, nor one whose answer names unknown parameters.
      if (!isPersonal && !this.#isPosted && !hasKeyField && unknown === undefined) {
        this.#urls.set(url, { ...resolved, answering: this })
      }
      const isSent = !isPersonal && this.#sendNotModified(exchange, resolved)
      if (!isSent && found !== undefined) await this.#send(exchange, question, found, isPersonal)
    } catch (error) {
      if (!closed.aborted) await this.#sendLast(exchange, question, error, isPersonal)
    }
  }

  /**
   * Answers with a file, or a range of it: selected by the engine row by row, or converted from the answer in JSON. If
   * all clients of a file disconnect before it is made, the statement ends.
   */
  async #answerFile(exchange: Exchange, wanted: FileRequest): Promise<void> {
    const { request, response, id } = exchange
    const { table, format, input, question, closed } = wanted
    const { exports, exportSlots, clients } = this.#needs
    const release = exportSlots.take(clients.of(request))
    const ended = new AbortController()
    const end = () => {
      ended.abort()
      release()
    }
    response.once('close', end)
    try {
      const { resolved, file } = await retryDropped(this.#needs.versions, async () => {
        const resolved = await this.#resolve(input, question)
        const identity = fileIdentity(resolved, format)
        if (this.#isNamed(request, resolved, identity)) return { resolved }
        const make = (signal: AbortSignal) => this.#selectFile(resolved, wanted, signal)
        const file = await exports.open(identity, ended.signal, make)
        return { resolved, file }
      }).catch((error: unknown) => Promise.reject(table.failure?.(error) ?? error))
      const named = fileIdentity({ identity: resolved.contentOf ?? resolved.identity }, format)
      const content = file === undefined ? named : `${named}.${file.digest}`
      if (this.#sendNotModified(exchange, resolved, content) || file === undefined) return
      const isCached = !this.#isPosted && file.isKept
      const tag = isCached ? `"${content}"` : undefined
      if (tag !== undefined && !permitsTag(request.headers['if-match'], tag)) throw new Refusal('precondition_failed')
      const { status, first, last, headers } = partOf(request, response, file.bytes, tag === undefined ? [] : [tag])
      const all = fileHeaders(resolved, format, this.#endpoint.operationId, { tag, further: file.headers })
      response.writeHead(status, ['X-Request-Id', id, ...all, ...flat(headers)])
      this.#count(exchange, status, 'query')
      if (request.method === 'HEAD') response.end()
      else await sendFile(file.read(first, last), response).catch((error) => this.#logBroken(exchange, error, closed))
    } catch (error) {
      if (!closed.aborted) throw error
    } finally {
      end()
    }
  }

  async #selectFile(resolved: ResolvedUrl, { table, format }: FileRequest, signal: AbortSignal): Promise<ExportSource> {
    const { engine } = FILE_FORMATS[format]
    const selected = selectedTable(table, resolved.resolved, engine)
    const found = selected === undefined ? (await this.#find(resolved, signal)).answer : undefined
    const body = (): unknown => JSON.parse(new TextDecoder().decode(found?.body))
    const statement = selected ?? answeredTable(table, { ...resolved, body: body() }, engine)
    const { limits, isQuestion } = statement
    const options = { format: engine, signal, limits, isQuestion }
    const tables = withServing(this.#needs.tables, resolved.serving)
    const stream = await tables.stream(statement.sql, statement.parameters, options)
    return { body: stream, headers: found?.headers, isKept: found?.isProvisional !== true }
  }

  #logBroken({ id }: Exchange, error: unknown, closed: AbortSignal): void {
    if (!closed.aborted) this.#needs.logger.warn({ err: error, reqId: id }, 'a file was broken off')
  }

  /** As `PartAnswers.resolve`. */
  async resolvePart(given: Readonly<Record<string, unknown>>): Promise<ResolvedUrl> {
    const input = parseInput(this.#endpoint.input, given)
    return await this.#resolve(input, questionOf(this.#endpoint.path, input))
  }

  /** As `PartAnswers.find`. */
  async findPart(url: ResolvedUrl, signal: AbortSignal): Promise<{ answer: Answer; isLast: boolean }> {
    try {
      return { answer: (await this.#find(url, signal)).answer, isLast: false }
    } catch (error) {
      const last = isUnavailable(error) ? this.#needs.cache.newest(url.question) : undefined
      if (last === undefined) throw error
      return { answer: last, isLast: true }
    }
  }

  async #resolve(input: unknown, question: string): Promise<ResolvedUrl> {
    const { versions, catalog, openListAgeMs, periodSeconds, historyPercent, now } = this.#needs
    const facts = { nowMs: now(), openListAgeMs, periodSeconds, historyPercent: historyPercent() }
    const context = { versions, catalog, ...facts }
    return await resolveUrl(this.#endpoint, input, question, context)
  }

  /** The cached answer, or one that is computed now; concurrent requests share the computation. */
  async #find(resolved: ResolvedUrl, closed: AbortSignal): Promise<Computed> {
    const { cache } = this.#needs
    const { question, identity } = resolved
    const cached = cache.newest(question)
    if (cached?.identity === identity) return { answer: cached, outcome: 'memory' }
    const outcome = cache.isPending(identity) ? 'joined' : 'query'
    const compute = (signal: AbortSignal) => this.#compute(resolved, signal)
    return { answer: await cache.make(question, identity, closed, compute), outcome }
  }

  /** Returns the session of a key; undefined when it is invalid or cannot be checked. */
  async #viewerOf(sessionKey: string | undefined, { request, id }: Exchange): Promise<Session | undefined> {
    if (sessionKey === undefined) return undefined
    const { sessions, clients, logger } = this.#needs
    return await sessions.of(sessionKey, clients.of(request)).catch((error: unknown) => {
      // Anybody can repeat them, and the first contains the username; the metric of session checks counts them.
      if (error instanceof Refusal && UNLOGGED.has(error.code)) return undefined
      logger.warn({ err: error, reqId: id }, 'a session cannot be checked; the request is answered without a viewer')
      return undefined
    })
  }

  async #compute(known: ResolvedUrl, signal: AbortSignal, viewer?: Session): Promise<Answer> {
    const { resolved, identity, contentOf, dataVersion, serving, headers } = known
    const { tables, positions, foldRecords, writes, catalog, playersCheckedMs, metrics, now } = this.#needs
    const context: AnswerContext = {
      tables: withServing(tables, serving),
      positions: (names) => positions(serving, names),
      foldRecords,
      writes,
      catalog: () => catalog.newest(serving),
      boards: () => catalog.boards(serving),
      playersCheckedMs: () => playersCheckedMs(serving),
      signal
    }
    const startedAt = performance.now()
    const endpoint = this.#endpoint
    const result = await (viewer !== undefined && endpoint.answerTo !== undefined
      ? endpoint.answerTo(resolved, viewer, context)
      : endpoint.answer(resolved, context))
    metrics.queried(endpoint.operationId, (performance.now() - startedAt) / 1000)
    const body = result.body instanceof Uint8Array ? result.body : Buffer.from(JSON.stringify(result.body))
    return {
      identity: contentOf === undefined ? identity : digestOf(Buffer.concat([Buffer.from(contentOf), body])),
      dataVersion,
      headers: { ...headers, ...result.headers },
      createdAtMs: now(),
      body,
      isProvisional: result.isProvisional === true,
      frames: {},
      compressing: {}
    }
  }

  /**
   * Sends the last answer to the same question while the tables are unavailable or busy. Throws every other error:
   * faults of the client, and defects, which an old answer would hide. A statement that exceeds its own limits of time
   * or memory is a defect; an engine at its limit throws a `Refusal`.
   */
  async #sendLast(exchange: Exchange, question: string, error: unknown, isPersonal: boolean): Promise<void> {
    const { cache, logger } = this.#needs
    const answer = isUnavailable(error) ? cache.newest(question) : undefined
    if (answer === undefined) throw error
    logger.warn({ err: error, reqId: exchange.id }, 'the last answer is served, because no newer one is available')
    await this.#send(exchange, question, { answer, outcome: 'stale' }, isPersonal)
  }

  /** Returns the tag of `If-None-Match` that names this answer. The answer to a POST has no tag. */
  #matchingTag({ headers }: IncomingMessage, identity: string): string | undefined {
    return this.#isPosted ? undefined : namedTag(headers['if-none-match'], identity)
  }

  /** Returns whether the client has the answer, which a tag that is made of the bytes cannot show before it is made. */
  #isNamed(request: IncomingMessage, { contentOf }: ResolvedUrl, identity: string): boolean {
    return contentOf === undefined && this.#matchingTag(request, identity) !== undefined
  }

  /** Sends 304 and returns true when the client has the answer. */
  #sendNotModified(exchange: Exchange, resolved: ResolvedUrl, identity = resolved.identity): boolean {
    const { request, response, id } = exchange
    const tag = this.#matchingTag(request, identity)
    if (tag === undefined) return false
    const headers = ['X-Request-Id', id, 'ETag', tag]
    // Browsers send `Origin` where they obey this; a cached answer keeps it (RFC 9111, 4.3.4).
    if (request.headers.origin !== undefined) headers.push(...EXPOSED)
    response.writeHead(304, [...headers, ...resolved.notModified])
    response.end()
    this.#count(exchange, 304, 'not_modified')
    return true
  }

  /** Sends a cached frame and returns true when there is one. */
  #sendReady(exchange: Exchange, { question, identity }: ResolvedUrl): boolean {
    const answer = this.#needs.cache.newest(question)
    if (answer?.identity !== identity) return false
    const frame = answer.frames[codingFor(answer, exchange.request)]
    if (frame === undefined) return false
    this.#write(exchange, frame, 'memory', undefined)
    return true
  }

  async #send(exchange: Exchange, question: string, { answer, outcome }: Computed, isPersonal: boolean): Promise<void> {
    const frame = isPersonal ? privateFrameOf(answer) : await this.#frameFor(exchange.request, question, answer)
    const { versions, now } = this.#needs
    // While changes cannot be read, a cached answer may be outdated: it is sent with its age.
    const isOld = outcome === 'stale' || (outcome === 'memory' && !versions.isCurrent)
    const ageSeconds = isOld ? Math.max(0, Math.floor((now() - answer.createdAtMs) / 1000)) : undefined
    this.#write(exchange, frame, outcome, ageSeconds)
  }

  async #frameFor(request: IncomingMessage, question: string, answer: Answer): Promise<Frame> {
    const { cache } = this.#needs
    const coding = codingFor(answer, request)
    const ready = answer.frames[coding]
    if (ready !== undefined) return ready
    const frame = frameOf(answer, coding, await cache.compressed(answer, coding), this.#isPosted)
    cache.addFrame(question, answer, coding, frame)
    return frame
  }

  #write(exchange: Exchange, frame: Frame, outcome: Outcome, ageSeconds: number | undefined): void {
    const { response, id } = exchange
    const headers = ['X-Request-Id', id]
    if (ageSeconds !== undefined) headers.push('Age', String(ageSeconds))
    response.writeHead(200, [...headers, ...frame.headers])
    response.end(frame.bytes)
    this.#count(exchange, 200, outcome)
  }

  #count({ request, startedAt }: Exchange, status: number, outcome: Outcome): void {
    this.#needs.metrics.answered(outcome)
    const seconds = startedAt === undefined ? 0 : (performance.now() - startedAt) / 1000
    this.#observe(request.method ?? 'GET', status, seconds)
  }
}

const isUnavailable = (error: unknown): boolean => error instanceof Refusal && error.status === 503

function codingFor(answer: Answer, request: IncomingMessage) {
  return isCompressible(answer.body) ? codingOf(request.headers) : 'identity'
}

/** Aborts when the client disconnects before the answer is written. */
function closedSignal(response: ServerResponse): AbortSignal {
  const abort = new AbortController()
  response.once('close', () => {
    if (!response.writableEnded) abort.abort(new Error('the client disconnected'))
  })
  return abort.signal
}

/** Time limit of an action's reads. */
const ACTION_MS_MAX = 10_000

/** The header takes precedence, but the field must be valid. The refusal does not show it: it may hold a key. */
const KeyField = z.object({ [SESSION_KEY_FIELD]: z.string({ error: 'must be a text' }).optional() })

/** Runs an action. Refuses in this order: body, key, session, permission, budget, parameters, fields. */
async function act(action: Action, request: FastifyRequest, needs: PipelineNeeds): Promise<unknown> {
  const { [SESSION_KEY_FIELD]: keyField, ...fields } = readBody(request.body)
  const sessionKey = shownKey(request.headers, { [SESSION_KEY_FIELD]: keyField })
  if (sessionKey === undefined) throw new Refusal('session_key_missing')
  parseInput(KeyField, { [SESSION_KEY_FIELD]: keyField })
  const session = await needs.sessions.of(sessionKey, needs.clients.of(request.raw))
  if (session === undefined) throw new Refusal('session_invalid')
  const { writes, ratings, tables, chat, versions, metrics, budget, now } = needs
  const given = request.params as Record<string, unknown>
  action.permit?.(given, session)
  budget.take(session.userKey, now())
  const parameters = parseInput(action.parameters, given)
  const body = parseInput(action.body, fields)
  const startedAt = performance.now()
  const answer = await action.act(parameters, body, {
    session,
    writes,
    ratings,
    tables: withServing(tables, versions.serving),
    chat,
    changed: (change) => versions.recordWrite(change),
    signal: () => AbortSignal.timeout(ACTION_MS_MAX),
    nowMs: now()
  })
  metrics.queried(action.operationId, (performance.now() - startedAt) / 1000)
  return answer
}
