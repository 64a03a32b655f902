import { randomBytes } from 'node:crypto'
import { Refusal } from '@gamenet/schemas'
import Fastify, { type FastifyBaseLogger, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { Registry } from 'prom-client'
import type { Action } from './answers/action.js'
import type { Endpoint } from './answers/answer.js'
import { AnswerCache } from './answers/answer-cache.js'
import { ConsistentReads, NO_SWAPS, type SwapCount } from './answers/consistent-reads.js'
import { type ActionNeeds, addActions } from './http/actions.js'
import { addDocs } from './http/docs.js'
import { addEndpoints } from './http/endpoints.js'
import { addHealth, type Readiness } from './http/health.js'
import { type HttpMetrics, httpMetrics, sessionMetrics } from './http/metrics.js'
import { closeOpenConnections } from './http/open-connections.js'
import { addOtherMethods, gatherPathMethods } from './http/other-methods.js'
import { admit, pathUnknown, sendError, URL_CHARACTERS_MAX } from './http/reply/errors.js'
import { COMMON_HEADERS } from './http/reply/headers.js'
import { addJsonBodies } from './http/request/json-body.js'
import type { Versions } from './http/request/resolved-url.js'
import { addServiceAuth, type ServiceAuthFile } from './http/service-auth.js'
import { answerOddRequests, answerSocketError, type SocketError } from './http/socket-errors.js'
import type { CatalogCache } from './queries/catalog.js'
import type { ReadTables } from './read-tables.js'
import { openAuthService } from './remote/auth-service.js'
import { type ChatSettings, openChatPlatform } from './remote/chat-platform.js'
import { Sessions } from './session/sessions.js'
import type { WriteTransactions } from './write-side.js'
import { UNLIMITED, writeBudget } from './writes/budget.js'
import { createRatingWriter } from './writes/rating.js'
import { saveUser } from './writes/user.js'

/** What bounds the API. Times in milliseconds. */
export type ApiLimits = {
  /** From the first byte of a request to its last. */
  readonly requestTimeoutMs: number
  /** From the first byte of a request to the end of its headers. */
  readonly headersTimeoutMs: number
  /** Without a byte in either direction. */
  readonly connectionTimeoutMs: number
  /** Between two requests on one connection; longer than what usual load balancers keep (60 s). */
  readonly keepAliveTimeoutMs: number
  /** How often Node looks for requests that are late. */
  readonly lateCheckMs: number
  /** For answers that are under way when the service stops. */
  readonly finishMs: number
  readonly bodyBytes: number
  readonly headerBytes: number
  /** Of answers kept ready. */
  readonly memoryBytes: number
}

export const API_LIMITS: ApiLimits = {
  requestTimeoutMs: 10_000,
  headersTimeoutMs: 5_000,
  connectionTimeoutMs: 120_000,
  keepAliveTimeoutMs: 72_000,
  lateCheckMs: 1_000,
  finishMs: 5_000,
  bodyBytes: 64 * 1024,
  headerBytes: 32 * 1024,
  memoryBytes: 64 * 1024 * 1024
}

/** All that the API needs; nothing in it is made here. */
export type ApiNeeds = {
  readonly endpoints: readonly Endpoint[]
  /** None when absent. */
  readonly actions?: readonly Action[]
  readonly tables: ReadTables
  /** PostgreSQL; without it nothing is told of users. */
  readonly writes?: WriteTransactions
  /** `{auth_url}`, without a slash at its end; without one nobody has a session. */
  readonly authUrl?: string | undefined
  /** How many edits and ratings one user may ask for a minute; without it, any number. */
  readonly writesPerMinute?: number | undefined
  /** Without it no chat profile can be linked. */
  readonly chat?: ChatSettings | undefined
  /** A started `DataVersions`. */
  readonly dataVersions: Versions
  /** Tables that take others' places: a `Swaps` or a started `SwapWatch`; none ever when absent. */
  readonly swaps?: SwapCount
  /** The titles and boards: a `CatalogCache`. */
  readonly catalog: Pick<CatalogCache, 'newest' | 'held' | 'boards'>
  /** `{base_url}`, without a slash at its end. */
  readonly publicUrl: string
  /** The browser SDK that is given away; none when absent. */
  readonly serviceAuth?: ServiceAuthFile
  /** Called once, with what lets go of all answers that are kept; whoever forgets a person calls that. */
  readonly onDrop?: (drop: () => void) => void
  /** The program's version, as /openapi.json tells it. */
  readonly version: string
  readonly registry: Registry
  /** Off when absent. */
  readonly logger?: FastifyBaseLogger
  /** How often lists of matches are scraped; every 60 s when absent. */
  readonly matchesPeriodSeconds?: number
  /** Whether the service can answer; asked by /readyz. */
  ready(): Promise<Readiness>
  /** The clock, milliseconds since 1970. */
  readonly now?: () => number
  readonly limits?: Partial<ApiLimits>
}

/** Builds the public API, ready to `listen` or `inject`. Add further routes in `addRoutes`: all rules hold for them. */
export async function buildApp(
  needs: ApiNeeds,
  addRoutes: (app: FastifyInstance) => Promise<void> | void = () => undefined
): Promise<FastifyInstance> {
  const limits = { ...API_LIMITS, ...needs.limits }
  const cache = new AnswerCache({ bytesMax: limits.memoryBytes })
  needs.onDrop?.(() => cache.clear())
  const metrics = httpMetrics(needs.registry, () => cache.bytes)
  const nextId = requestIds()
  const app = createServer(needs, limits, metrics, nextId)
  const paths = gatherPathMethods(app)
  const now = needs.now ?? Date.now
  const { tables, writes = NO_WRITES, catalog, dataVersions: versions, endpoints, actions = [] } = needs
  const changed: ActionNeeds['changed'] = (change) => versions.recordWrite(change)
  const sessions = openSessions(app, needs, { writes, changed, now })
  const chat = openChatPlatform(needs.chat)
  app.addHook('onClose', () => chat.close())
  const consistent = new ConsistentReads(needs.swaps ?? NO_SWAPS)
  const reading = { tables, writes, catalog, versions, sessions, cache, consistent }
  const openListAgeMs = openListAge(needs.matchesPeriodSeconds)
  addEndpoints(app, endpoints, { ...reading, metrics, now, openListAgeMs, logger: needs.logger ?? app.log })
  const ratings = createRatingWriter(writes)
  const budget = needs.writesPerMinute === undefined ? UNLIMITED : writeBudget(needs.writesPerMinute)
  addActions(app, actions, { tables, writes, ratings, chat, sessions, changed, metrics, budget, now })
  addHealth(app, needs.ready)
  await addDocs(app, needs)
  if (needs.serviceAuth !== undefined) await addServiceAuth(app, needs.serviceAuth)
  await addRoutes(app)
  addOtherMethods(app, paths)
  await app.ready()
  return app
}

/** Ten minutes, or three periods of the scrape if longer. */
function openListAge(periodSeconds = 60): number {
  return Math.max(10 * 60_000, 3 * periodSeconds * 1000)
}

function openSessions(
  app: FastifyInstance,
  { authUrl, registry }: ApiNeeds,
  { writes, changed, now }: Pick<ActionNeeds, 'writes' | 'changed' | 'now'>
): Sessions {
  const authService = openAuthService(authUrl === undefined ? undefined : { url: authUrl })
  app.addHook('onClose', () => authService.close())
  return new Sessions({
    authService,
    onVerified: (session) => saveUser({ writes, changed, nowMs: now() }, session, 'leave'),
    metrics: sessionMetrics(registry),
    now
  })
}

const writesAway = async (): Promise<never> => {
  throw new Refusal('engine_away', [], { retryAfterSeconds: 5 })
}
const NO_WRITES: WriteTransactions = { query: writesAway, transaction: writesAway }

function createServer(needs: ApiNeeds, limits: ApiLimits, metrics: HttpMetrics, nextId: () => string): FastifyInstance {
  const observeUnread = metrics.durations('(no request)')
  const log = needs.logger
  const app = Fastify({
    // Fastify's own makes a child for every request: a tenth of what a ready answer costs.
    logger: false,
    genReqId: nextId,
    bodyLimit: limits.bodyBytes,
    requestTimeout: limits.requestTimeoutMs,
    connectionTimeout: limits.connectionTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    forceCloseConnections: 'idle',
    // A request that arrives while closing is answered like any other, with `Connection: close`.
    return503OnClosing: false,
    routerOptions: { maxParamLength: URL_CHARACTERS_MAX, ignoreTrailingSlash: true },
    http: {
      maxHeaderSize: limits.headerBytes,
      headersTimeout: limits.headersTimeoutMs,
      connectionsCheckingInterval: limits.lateCheckMs,
      // Node's own answer to a request without Host has no body.
      requireHostHeader: false
    },
    frameworkErrors: (error, request, reply) => {
      setCommonHeaders(request, reply)
      void sendError(error, request, reply, log)
    },
    clientErrorHandler: (error, socket) => {
      const id = nextId()
      log?.info({ reqId: id, code: error.code }, 'a connection was refused')
      // Fastify declares `rawPacket` as the JSON of a Buffer; Node gives the Buffer.
      answerSocketError(error as unknown as SocketError, socket, id, (status) => observeUnread('none', status, 0))
    }
  })
  answerOddRequests(app.server, nextId, (status) => observeUnread('none', status, 0))
  closeOpenConnections(app, limits.finishMs)
  addJsonBodies(app)
  app.addHook('onRequest', (request, _reply, done) => {
    admit(request)
    done()
  })
  app.addHook('onSend', async (request, reply) => setCommonHeaders(request, reply))
  observeOthers(app, metrics)
  app.setErrorHandler((error, request, reply) => sendError(error, request, reply, log))
  app.setNotFoundHandler(async (request, reply) => {
    if (request.raw.url !== '*') throw pathUnknown(request)
    await reply.code(204).header('Allow', SERVER_METHODS).send()
  })
  return app
}

/** What some route or other takes, in answer to `OPTIONS *`. */
const SERVER_METHODS = 'DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT'

/** Routes that answer through Fastify's reply; endpoints observe themselves. */
function observeOthers(app: FastifyInstance, metrics: HttpMetrics): void {
  const byRoute = new Map<string, ReturnType<HttpMetrics['durations']>>()
  app.addHook('onSend', async (request, reply) => {
    const route = request.routeOptions.url ?? '(no route)'
    let observe = byRoute.get(route)
    if (observe === undefined) {
      observe = metrics.durations(route)
      byRoute.set(route, observe)
    }
    observe(request.method, reply.statusCode, reply.elapsedTime / 1000)
  })
}

function setCommonHeaders(request: FastifyRequest, reply: FastifyReply): void {
  void reply.headers({ ...COMMON_HEADERS, 'X-Request-Id': request.id })
}

/** Ids that are unique over processes and restarts, and cheap: a random beginning and a number. */
function requestIds(): () => string {
  const beginning = randomBytes(6).toString('base64url')
  let number = 0
  return () => {
    number += 1
    return `${beginning}.${number.toString(36)}`
  }
}
