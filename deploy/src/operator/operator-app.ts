import { createHash, timingSafeEqual } from 'node:crypto'
import { PassThrough, Readable } from 'node:stream'
import {
  addPlainErrorsPage,
  createHttpServer,
  limitConnections,
  type Readiness,
  requestIds,
  sendError
} from '@gamenet/api'
import { errorMessage, parseJson, Refusal } from '@gamenet/schemas'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { Registry } from 'prom-client'
import { FailureError, UsageError } from '../config.js'
import { LINES, OCTETS, type Operation, type Operations, type RunContext } from '../operate/operation.js'
import { isLoopback } from './exposure.js'

type AnyOperation = Operation<unknown, unknown, unknown>

/**
 * Of this port: its clients are probes, Prometheus and commands. The public port's limit leaves descriptors for them.
 */
const LIMITS = { connectionsMax: 100, connectionsPerAddress: 0, finishMs: 0 }
const NO_CLIENTS = { ofPeer: () => undefined, of: () => undefined }

const refused = (statusCode: number, message: string) => Object.assign(new Error(message), { statusCode })

type MetricsNeeds = {
  readonly registry: Registry
  readonly ready: () => Promise<Readiness>
  readonly logger: Logger
  /** The host that it listens on. On a loopback address, requests must name it by a loopback name. */
  readonly host: string
}

/**
 * The operator port: health and metrics, and operations for clients that send the token as `Authorization: Bearer`. Not
 * public: it has no rate limits. Without a token it refuses all operations.
 */
export function buildOperatorApp(
  routes: readonly AnyOperation[],
  needs: MetricsNeeds & { readonly operations: Operations; readonly token: string | undefined }
): FastifyInstance {
  const app = buildMetricsApp(needs)
  for (const operation of routes) addOperation(app, operation, needs)
  return app
}

/** The metrics port: only health, readiness, metrics, and the page of errors. */
export function buildMetricsApp(needs: MetricsNeeds): FastifyInstance {
  const { logger } = needs
  const app = createHttpServer(
    {
      log: logger,
      nextId: requestIds(),
      headers: {},
      admit: ({ headers }) => refuseForeign(headers, isLoopback(needs.host)),
      onError: (error, request, reply) => {
        if (error instanceof Refusal && error.code !== 'path_unknown') return sendError(error, request, reply, logger)
        const status = statusOf(error)
        if (status === 401) void reply.header('WWW-Authenticate', 'Bearer')
        if (status >= 500) logger.error({ err: error, url: request.url }, 'an operator request failed')
        // The public port's sentence refers to its /docs.
        if (error instanceof Refusal) return reply.code(404).send({ error: `There is nothing at ${request.url}.` })
        return reply.code(status).send({ error: errorMessage(error) })
      }
    },
    { forceCloseConnections: true }
  )
  limitConnections(app, { limits: LIMITS, clients: NO_CLIENTS, registry: new Registry() })
  app.removeAllContentTypeParsers()
  // Bodies stay streams: an import is not read into memory.
  app.addContentTypeParser(OCTETS, (_request, payload, done) => done(null, payload))
  app.get('/healthz', () => ({ ok: true }))
  app.get('/readyz', async (_request, reply) => {
    const readiness = await needs.ready()
    return reply.code(readiness.ok ? 200 : 503).send(readiness)
  })
  app.get('/metrics', async (_request, reply) =>
    reply.type(needs.registry.contentType).send(await metricsText(needs.registry, logger))
  )
  // Faults of HTTP name it in `Link`.
  void app.register(addPlainErrorsPage)
  return app
}

/** Returns all metrics but those that cannot be measured: one file that cannot be read must not hide the others. */
async function metricsText(registry: Registry, logger: Logger): Promise<string> {
  const texts = registry.getMetricsAsArray().map(async ({ name }) => {
    try {
      return `${await registry.getSingleMetricAsString(name)}\n`
    } catch (error) {
      logger.warn({ err: error, metric: name }, 'a metric cannot be measured')
      return ''
    }
  })
  return (await Promise.all(texts)).filter((text) => text !== '').join('\n')
}

/**
 * Refuses requests of web pages: any page can send requests to a port of the reader's machine. Browsers name the page
 * in `Origin` for every changing request. A page that maps its own name to our address (DNS rebinding) is visible in
 * `Host`.
 */
function refuseForeign(headers: { origin?: string | undefined; host?: string | undefined }, isLocal: boolean): void {
  if (headers.origin !== undefined) throw refused(403, 'The operator port refuses requests of web pages (with Origin).')
  const name = (headers.host ?? '').replace(/:\d+$/, '').replace(/^\[|\]$/g, '')
  if (isLocal && !isLoopback(name))
    throw refused(403, `Requests to the operator port must name localhost or its address; got ${JSON.stringify(name)}.`)
}

function requireToken(token: string | undefined, given: string | undefined): void {
  if (token === undefined)
    throw refused(
      401,
      'This process was started without OPERATOR_TOKEN, and its operator port serves health and metrics only. Set it ' +
        'for this process and for the command.'
    )
  const digest = (text: string) => createHash('sha256').update(text).digest()
  if (timingSafeEqual(digest(`Bearer ${token}`), digest(given ?? ''))) return
  throw refused(
    401,
    `The operator port requires its token; got ${given === undefined ? 'none' : 'a wrong one'}. Set OPERATOR_TOKEN ` +
      `to the token of the service; ` +
      'on the machine of the service, the command reads it from DATA_DIR when OPERATOR_URL is not set.'
  )
}

/** Adds the route of an operation: JSON, or lines of progress for clients that accept them. */
function addOperation(
  app: FastifyInstance,
  operation: AnyOperation,
  { operations: own, logger, token }: { operations: Operations; logger: Logger; token: string | undefined }
): void {
  const { route, name, progress, body } = operation
  const [method = '', url = ''] = route.split(' ')
  const bodyLimit = body === undefined ? 1 : body.as === 'stream' ? Number.MAX_SAFE_INTEGER : body.bytesMax
  app.route({
    method,
    url,
    bodyLimit,
    onRequest: async ({ headers }) => requireToken(token, headers.authorization),
    handler: async (request, reply) => {
      const input = await inputOf(operation, request)
      if (progress === undefined || request.headers.accept !== LINES)
        return await own.run(operation, input, { signal: closed(reply.raw) })
      const onDefect = (error: unknown) => logger.error({ err: error, operation: name }, 'an operation failed')
      return reply.type(LINES).send(linesOf((context) => own.run(operation, input, context), onDefect))
    }
  })
}

/** Reads the input from path, query and body. */
async function inputOf({ input, inputRule, body, route }: AnyOperation, request: FastifyRequest) {
  const query = Object(request.query)
  const rule = inputRule ?? `${route} takes no other parameters`
  const invalid = () => new UsageError(`${rule}; the query is ${JSON.stringify(query)}.`)
  const content = body === undefined ? {} : await contentOf(body, request.body)
  try {
    return input.parse({ ...query, ...Object(request.params), ...content })
  } catch {
    throw invalid()
  }
}

async function contentOf(declared: NonNullable<AnyOperation['body']>, body: unknown): Promise<object> {
  const field = declared.as === 'json' ? 'input' : declared.field
  if (!(body instanceof Readable) && declared.as === 'text' && declared.isOptional === true) return {}
  if (!(body instanceof Readable)) throw new UsageError(`The body, as ${OCTETS}, is the ${field}; there is none.`)
  if (declared.as === 'stream') return { [field]: body }
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.byteLength
    if (bytes > declared.bytesMax)
      throw new UsageError(`The body, the ${field}, is longer than the limit of ${declared.bytesMax} bytes.`)
    chunks.push(chunk)
  }
  const text = Buffer.concat(chunks).toString()
  // The schema refuses the empty object that text other than JSON becomes.
  return declared.as === 'json' ? Object(parseJson(text)) : { [field]: text }
}

/** Returns a signal that aborts when the client disconnects. */
function closed(connection: { once(event: 'close', listener: () => void): unknown }): AbortSignal {
  const abort = new AbortController()
  connection.once('close', () => abort.abort())
  return abort.signal
}

/** Returns lines of JSON: progress, then the result or the error. */
function linesOf(
  run: (context: RunContext<unknown>) => Promise<unknown>,
  onDefect: (error: unknown) => void
): Readable {
  const lines = new PassThrough()
  const write = (line: unknown) => lines.write(`${JSON.stringify(line)}\n`)
  // Progress that the client has not read is dropped, because the next line has newer figures.
  const onProgress = (progress: unknown) => lines.writableNeedDrain || lines.destroyed || write({ progress })
  run({ onProgress, signal: closed(lines) })
    .then(
      (report) => write({ report }),
      (error: unknown) => {
        if (statusOf(error) >= 500) onDefect(error)
        write({ error: errorMessage(error), usage: error instanceof UsageError })
      }
    )
    .finally(() => lines.end())
  return lines
}

function statusOf(error: unknown): number {
  if (error instanceof UsageError) return 400
  if (error instanceof FailureError) return 409
  if (error instanceof Error && 'statusCode' in error && typeof error.statusCode === 'number') return error.statusCode
  return 500
}
