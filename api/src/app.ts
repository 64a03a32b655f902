import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ReadPositions, Refusal, type WriteChange, type WriteTransactions } from '@gamenet/schemas'
import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import type { Registry } from 'prom-client'
import { AnswerCache } from './answers/answer-cache.js'
import { type Action, type Endpoint, type FoldRecords, openListAge } from './answers/endpoint.js'
import { ExportFiles, type ExportSettings } from './answers/export-files.js'
import type { Versions } from './answers/resolved-url.js'
import { addDatasets } from './datasets/routes.js'
import { answerFirst } from './http/answer-first.js'
import { addHealth, type Readiness } from './http/health.js'
import { exportMetrics, type HttpMetrics, httpMetrics, sessionMetrics } from './http/http-metrics.js'
import { type ConnectionLimits, limitConnections } from './http/open-connections.js'
import { addPipeline, type PipelineNeeds, type PipelineRoutes } from './http/pipeline.js'
import { createHttpServer, requestIds } from './http/server.js'
import { SlotsPerAddress } from './http/slots-per-address.js'
import { addDocs } from './pages/docs.js'
import { addFeeds } from './pages/feeds.js'
import type { SignIn } from './pages/sample-values.js'
import type { CatalogCache } from './queries/catalog.js'
import type { StreamedTables } from './read-tables.js'
import { openAuthService } from './remote/auth-service.js'
import { type ChatSettings, openChatPlatform } from './remote/chat-platform.js'
import { sendError, URL_CHARACTERS_MAX } from './reply/errors.js'
import { COMMON_HEADERS } from './reply/headers.js'
import { type ClientAddresses, clientAddresses } from './request/client-address.js'
import { addJsonBodies } from './request/json-body.js'
import { KNOWN_AT } from './request/parameters.js'
import { minuteBudget, UNLIMITED } from './session/budget.js'
import { Sessions } from './session/sessions.js'
import { docsFrame } from './site/docs-frame.js'
import { pageEndpoint } from './site/page-endpoint.js'
import { openPngMaker } from './site/pictures/png.js'
import { pages } from './site/routes.js'
import { addSite, errorPage, readSite, type Site, sendRedirect } from './site/site.js'
import { addStream, STREAM_LIMITS, type StreamLimits } from './stream/streams.js'
import { createRatingWriter } from './writes/rating.js'
import { saveUser } from './writes/user.js'

/** `Retry-After` of an address that has all its files: the time in which usual ones are read. */
const EXPORT_RETRY_SECONDS = 5

/** Limits of the API. Times in milliseconds. */
export type ApiLimits = StreamLimits &
  ConnectionLimits & {
    /** From the first byte of a request to its last. */
    readonly requestTimeoutMs: number
    /** From the first byte of a request to the end of its headers. */
    readonly headersTimeoutMs: number
    /** Without a byte in either direction, also between two requests; longer than `Keep-Alive` says. */
    readonly connectionTimeoutMs: number
    /** Interval of Node's check for late requests. */
    readonly lateCheckMs: number
    /** For answers in progress when the service stops. */
    readonly finishMs: number
    readonly bodyBytes: number
    readonly headerBytes: number
    /** Of the cache of answers. */
    readonly memoryBytes: number
  }

export const API_LIMITS: ApiLimits = {
  ...STREAM_LIMITS,
  connectionsMax: 20_000,
  connectionsPerAddress: 1000,
  requestTimeoutMs: 10_000,
  headersTimeoutMs: 5_000,
  connectionTimeoutMs: 120_000,
  lateCheckMs: 1_000,
  finishMs: 5_000,
  bodyBytes: 64 * 1024,
  headerBytes: 32 * 1024,
  memoryBytes: 64 * 1024 * 1024
}

/** Default of SESSION_CHECKS_PER_MINUTE. Only keys that identify nobody count: users may share an address. */
export const SESSION_CHECKS_PER_MINUTE = 120

/** How users sign in and write. */
export type PeopleSettings = {
  /** `{auth_url}`, without a trailing slash; without it there are no sessions. */
  readonly authUrl?: string | undefined
  /** Edits and ratings per user and minute. Default: unlimited. */
  readonly writesPerMinute?: number | undefined
  /** Checks of unknown session keys per address and minute. Default: {@link SESSION_CHECKS_PER_MINUTE}. */
  readonly sessionChecksPerMinute?: number | undefined
  /** Signed in by the samples at /docs: a user of the demo network. Default: an invented one. */
  readonly sampleUser?: Omit<SignIn, 'url'> | undefined
  /** Required for linking chat profiles. */
  readonly chat?: ChatSettings | undefined
}

/** The dependencies and settings of the API. */
export type ApiNeeds = {
  readonly endpoints: readonly Endpoint[]
  /** Default: none. */
  readonly actions?: readonly Action[]
  readonly tables: StreamedTables
  /** Required for feeds, which end at the positions of readers. */
  readonly positions: ReadPositions
  /** Required for records as they were known at an instant. */
  readonly foldRecords?: FoldRecords | undefined
  /** The epoch of new events. Default: 1, the first one. */
  readonly epoch?: number
  /** PostgreSQL; without it no answer about users is possible. */
  readonly writes?: WriteTransactions
  readonly people?: PeopleSettings
  /** The addresses of clients, for limits per address and the log. Default: no proxy is trusted. */
  readonly clients?: ClientAddresses
  /** A started `DataVersions`. */
  readonly dataVersions: Versions
  /** The titles and boards: a `CatalogCache`. */
  readonly catalog: Pick<CatalogCache, 'newest' | 'held' | 'boards'>
  /** `{base_url}`, without a trailing slash. */
  readonly publicUrl: string
  /** The scraped network, whose pictures of games may have private addresses. */
  readonly upstreamUrl?: string | undefined
  /** Whether `publicUrl` is configured: pages then have absolute addresses for previews. Default: false. */
  readonly hasPublicUrl?: boolean
  /** The folder of the datasets' files; `requireSpace` rejects while its disk is low. Default: none are served. */
  readonly datasets?: { readonly directory: string; requireSpace(): Promise<void> }
  /** Answers as files. Default: 1 GiB in a folder of the system's temporary files, and no limit per address. */
  readonly exports?: ExportSettings & { readonly perAddress: number }
  /** Called once with a function that removes all cached answers, to be called when a user is erased. */
  readonly onDrop?: (drop: () => void) => void
  /** The program's version, for /openapi.json. */
  readonly version: string
  readonly registry: Registry
  /** Default: no log. */
  readonly logger?: FastifyBaseLogger
  /** Default: nothing is scraped. */
  readonly scraped?: Pick<PipelineNeeds, 'periodSeconds' | 'historyPercent'>
  /** Whether the service can answer, for /readyz. */
  ready(): Promise<Readiness>
  /** The clock, milliseconds since 1970. */
  readonly now?: () => number
  readonly limits?: Partial<ApiLimits>
}

/** Builds the public API, ready to `listen` or `inject`. `addRoutes` adds further routes under the same rules. */
export async function buildApp(
  needs: ApiNeeds,
  addRoutes: (app: FastifyInstance) => Promise<void> | void = () => undefined
): Promise<FastifyInstance> {
  const limits = { ...API_LIMITS, ...needs.limits }
  const cache = new AnswerCache({ bytesMax: limits.memoryBytes })
  const metrics = httpMetrics(needs.registry, {
    memoryBytes: () => cache.bytes,
    repeatedReads: () => needs.dataVersions.repeatedReads
  })
  const nextId = requestIds()
  const { clients = clientAddresses(), people = {} } = needs
  const { authUrl, writesPerMinute } = people
  const site = await readSite({
    publicUrl: needs.hasPublicUrl === true ? needs.publicUrl : '',
    version: needs.version,
    authUrl
  })
  const app = createServer(needs, limits, { metrics, nextId, clients, site })
  const now = needs.now ?? Date.now
  const { tables, positions, writes = NO_WRITES, catalog, dataVersions: versions, endpoints, actions = [] } = needs
  const chat = openChatPlatform(people.chat)
  app.addHook('onClose', () => chat.close())
  const pipeline: PipelineNeeds = {
    tables,
    positions,
    foldRecords: needs.foldRecords,
    writes,
    ratings: createRatingWriter(writes),
    chat,
    catalog,
    versions,
    sessions: openSessions(app, needs, { writes, versions, now }),
    cache,
    budget: writesPerMinute === undefined ? UNLIMITED : minuteBudget('write_budget_spent', writesPerMinute),
    metrics,
    clients,
    ...openExports(app, needs),
    logger: needs.logger ?? app.log,
    openListAgeMs: openListAge(needs.scraped?.periodSeconds.matches),
    periodSeconds: needs.scraped?.periodSeconds ?? {},
    takingKnownAt: endpoints.filter(({ input }) => KNOWN_AT in input.shape).map(({ path }) => path),
    historyPercent: needs.scraped?.historyPercent ?? (() => undefined),
    nextId,
    now
  }
  const admits = limitConnections(app, { limits, clients, registry: needs.registry })
  const png = openPngMaker()
  app.addHook('onClose', () => png.close())
  const pagesOf: PipelineRoutes['pages'] = (answers) =>
    pages.map((page) => pageEndpoint(page, { answers, site: site.facts, png }))
  const answerReady = addPipeline(app, { endpoints, actions, pages: pagesOf }, pipeline)
  await addSite(app, site, {
    publicUrl: needs.publicUrl,
    upstream: needs.upstreamUrl,
    titles: () => catalog.held(versions.serving),
    boards: () => catalog.boards(versions.serving)
  })
  answerFirst(app, (request, response) => admits(request) && answerReady(request, response))
  addFeeds(app, { ...pipeline, publicUrl: needs.publicUrl })
  const dropStreamed = addStream(app, { ...pipeline, limits, epoch: needs.epoch ?? 1, registry: needs.registry })
  needs.onDrop?.(() => {
    cache.clear()
    dropStreamed()
  })
  const { logger } = pipeline
  if (needs.datasets !== undefined) addDatasets(app, { tables, positions, versions, now, logger, ...needs.datasets })
  addHealth(app, needs.ready)
  const signIn = { email: 'ann@example.org', password: 'her password', username: 'ann', ...people.sampleUser }
  const { publicUrl, version } = needs
  await addDocs(app, {
    ...pipeline,
    ...{ endpoints, actions, publicUrl, version, frame: docsFrame(site.facts) },
    signIn: authUrl === undefined ? signIn : { ...signIn, url: authUrl }
  })
  await addRoutes(app)
  await app.ready()
  return app
}

function openExports(
  app: FastifyInstance,
  { registry, exports: given }: ApiNeeds
): Pick<PipelineNeeds, 'exports' | 'exportSlots'> {
  const directory = join(tmpdir(), `gamenet-exports-${process.pid}`)
  const settings = given ?? { directory, bytesMax: 2 ** 30, perAddress: 0, requireSpace: async () => undefined }
  const exports = new ExportFiles(settings)
  exportMetrics(registry, exports)
  app.addHook('onReady', () => exports.removeOld())
  app.addHook('onClose', () => exports.close())
  const exportSlots = new SlotsPerAddress(settings.perAddress, 'exports_per_address', EXPORT_RETRY_SECONDS)
  return { exports, exportSlots }
}

function openSessions(
  app: FastifyInstance,
  { registry, people: { authUrl, sessionChecksPerMinute = SESSION_CHECKS_PER_MINUTE } = {} }: ApiNeeds,
  { writes, versions, now }: Pick<PipelineNeeds, 'writes' | 'versions' | 'now'>
): Sessions {
  const authService = openAuthService(authUrl === undefined ? undefined : { url: authUrl })
  app.addHook('onClose', () => authService.close())
  const changed = (change: WriteChange): void => versions.recordWrite(change)
  return new Sessions({
    authService,
    checks: minuteBudget('session_checks_spent', sessionChecksPerMinute),
    onVerified: (session) => saveUser({ writes, changed, nowMs: now() }, session, 'leave'),
    metrics: sessionMetrics(registry),
    now
  })
}

const writesUnavailable = async (): Promise<never> => {
  throw new Refusal('engine_away', ['PostgreSQL'], { retryAfterSeconds: 5 })
}
const NO_WRITES: WriteTransactions = { query: writesUnavailable, transaction: writesUnavailable }

type ServerNeeds = {
  readonly metrics: HttpMetrics
  readonly nextId: () => string
  readonly clients: ClientAddresses
  readonly site: Site
}

function createServer(needs: ApiNeeds, limits: ApiLimits, serverNeeds: ServerNeeds): FastifyInstance {
  const { metrics, nextId, clients, site } = serverNeeds
  const observeUnread = metrics.durations('(no request)')
  const app = createHttpServer(
    {
      ...{ log: needs.logger, nextId, headers: COMMON_HEADERS },
      answered: (status) => observeUnread('none', status, 0),
      onError: (error, request, reply) =>
        sendRedirect(error, reply) ??
        sendError(error, request, reply, needs.logger, (refusal) => errorPage(site.facts, refusal, request))
    },
    {
      trustProxy: clients.isTrusted,
      bodyLimit: limits.bodyBytes,
      requestTimeout: limits.requestTimeoutMs,
      connectionTimeout: limits.connectionTimeoutMs,
      forceCloseConnections: 'idle',
      // A request that arrives while closing is answered like any other, with `Connection: close`.
      return503OnClosing: false,
      routerOptions: { maxParamLength: URL_CHARACTERS_MAX, ignoreTrailingSlash: true },
      http: {
        maxHeaderSize: limits.headerBytes,
        headersTimeout: limits.headersTimeoutMs,
        connectionsCheckingInterval: limits.lateCheckMs
      }
    }
  )
  // A timeout of its own between two requests makes two timers per request: 1 of the 15 µs of a ready answer.
  app.server.keepAliveTimeout = 0
  addJsonBodies(app)
  observeOthers(app, metrics)
  return app
}

/** Observes routes that answer through Fastify's reply; the pipeline observes endpoints itself. */
function observeOthers(app: FastifyInstance, metrics: HttpMetrics): void {
  app.addHook('onSend', async (request, reply) => {
    const observe = metrics.durations(request.routeOptions.url ?? '(no route)')
    observe(request.method, reply.statusCode, reply.elapsedTime / 1000)
  })
}
