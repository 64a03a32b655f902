import { isIP } from 'node:net'
import { PassThrough, Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import type { Readiness } from '@gamenet/api'
import { errorMessage } from '@gamenet/schemas'
import fastify, { type FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import { z } from 'zod'
import { FailureError, UsageError } from '../config.js'
import { addDeadLetters } from './dead-letters-app.js'
import { ImportRequest, type Operations, SETTLED_SECONDS_MAX } from './operations.js'
import { addRebuilds } from './rebuild-app.js'

/** A request that comes from a browser, on whatever page's behalf. */
class ForeignRequest extends Error {}

/**
 * The operator port: health, metrics and what the command line asks for. Not for the public: it has no sessions and
 * no limits on what may be asked.
 */
export function buildOperatorApp(needs: {
  operations: Operations
  registry: Registry
  ready: () => Promise<Readiness>
  logger: Logger
  /** Where it will listen; a loopback address is asked for by loopback names only. */
  host: string
}): FastifyInstance {
  const app = fastify({ logger: false, bodyLimit: 1024 * 1024, forceCloseConnections: true })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/octet-stream', (_request, payload, done) => done(null, payload))
  app.addHook('onRequest', async (request) => {
    refuseForeign(request.headers, isLoopback(needs.host))
  })
  app.setNotFoundHandler((request, reply) => reply.code(404).send({ error: `There is nothing at ${request.url}.` }))
  app.setErrorHandler((error, request, reply) => {
    const status = statusOf(error)
    if (status >= 500) needs.logger.error({ err: error, url: request.url }, 'an operator request failed')
    return reply.code(status).send({ error: errorMessage(error) })
  })
  app.get('/healthz', () => ({ ok: true }))
  app.get('/readyz', async (_request, reply) => {
    const readiness = await needs.ready()
    return reply.code(readiness.ok ? 200 : 503).send(readiness)
  })
  app.get('/metrics', async (_request, reply) =>
    reply.type(needs.registry.contentType).send(await needs.registry.metrics())
  )
  addOperations(app, needs.operations, needs.logger)
  addRebuilds(app, needs.operations.rebuilds)
  addDeadLetters(app, needs.operations.deadLetters, (reply, what, work) =>
    reply.type(LINES).send(linesOf(work, (error) => needs.logger.error({ err: error }, what)))
  )
  return app
}

/**
 * Any web page can send requests to a port of the reader's machine. Browsers name the page in `Origin` whenever a request
 * changes something; a page that gave its own name our address (DNS rebinding) shows in `Host`.
 */
function refuseForeign(headers: { origin?: string | undefined; host?: string | undefined }, isLocal: boolean): void {
  if (headers.origin !== undefined) {
    throw new ForeignRequest('The operator port answers no web page; a request with Origin is refused.')
  }
  const name = (headers.host ?? '').replace(/:\d+$/, '').replace(/^\[|\]$/g, '')
  if (isLocal && !isLoopback(name)) {
    throw new ForeignRequest(
      `The operator port is asked for as localhost or by its address; got ${JSON.stringify(name)}.`
    )
  }
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}

function addOperations(app: FastifyInstance, operations: Operations, logger: Logger): void {
  app.get('/status', () => operations.status())
  app.post('/migrate', async () => ({ applied: await operations.migrate() }))
  app.get('/settled', (request) => {
    const query = z.object({ seconds: z.coerce.number().min(0).max(SETTLED_SECONDS_MAX) }).safeParse(request.query)
    if (!query.success) throw new UsageError(`seconds must be a number from 0 to ${SETTLED_SECONDS_MAX}.`)
    return operations.settled(query.data.seconds * 1000)
  })
  // Plain JSON, or, to who accepts them, lines of it: progress, then the reports or the error. A caller who leaves ends
  // nothing: the run is the service's.
  app.post('/scrape/:source', (request, reply) => {
    const { source } = z.object({ source: z.string() }).parse(request.params)
    if (request.headers.accept !== LINES) return operations.scrape(source)
    return reply.type(LINES).send(
      linesOf(
        (tell) => operations.scrape(source, tell),
        (error) => logger.error({ err: error, source }, 'a scrape failed')
      )
    )
  })
  // The request's options travel in the query, the file's bytes as body; the answer is lines of JSON: progress, then
  // the report or the error.
  app.post('/import', { bodyLimit: Number.MAX_SAFE_INTEGER }, (request, reply) => {
    const content = request.body
    if (!(content instanceof Readable)) throw new UsageError('The file is the body, as application/octet-stream.')
    const asked = importRequestOf(request.query)
    return reply.type(LINES).send(
      linesOf(
        // An import ends with its command, for there is no other way to end one.
        (tell, isLeft) => operations.import(asked, content, tell, isLeft),
        (error) => logger.error({ err: error, file: asked.file }, 'an import failed')
      )
    )
  })
  app.post('/verify', (_request, reply) =>
    reply.type(LINES).send(
      linesOf(
        (tell) => operations.verify({ repair: false }, tell),
        (error) => logger.error({ err: error }, 'verifying failed')
      )
    )
  )
  app.get('/gaps', () => operations.gaps())
  app.post('/gaps/:topic/accept', (request) => {
    const { topic } = z.object({ topic: z.string() }).parse(request.params)
    return operations.acceptGap(topic)
  })
  app.get('/imports', () => operations.imports())
  app.post('/imports/:importId/retract', (request, reply) => {
    const { importId } = z.object({ importId: z.string() }).parse(request.params)
    return reply.type(LINES).send(
      linesOf(
        (tell) => operations.retractImport(importId, tell),
        (error) => logger.error({ err: error, importId }, 'taking an import back failed')
      )
    )
  })
  app.get('/forgettings', () => operations.forgettings())
  // A name in an address would stand in logs.
  app.post('/forget', async (request, reply) => {
    if (!(request.body instanceof Readable))
      throw new UsageError('The username is the body, as application/octet-stream.')
    const username = await text(request.body)
    const { anyway } = z.object({ anyway: z.enum(['true', 'false']).default('false') }).parse(request.query)
    return reply.type(LINES).send(
      linesOf(
        (tell) => operations.forget(username, { anyway: anyway === 'true' }, tell),
        (error) => logger.error({ err: error }, 'forgetting failed')
      )
    )
  })
  app.post('/backup', (request, reply) => {
    const query = z.object({ directory: z.string() }).safeParse(request.query)
    if (!query.success) throw new UsageError('The query parameter directory must be the absolute path of a directory.')
    const { directory } = query.data
    return reply.type(LINES).send(
      linesOf(
        (tell) => operations.backup(directory, tell),
        (error) => logger.error({ err: error, directory }, 'a backup failed')
      )
    )
  })
}

const LINES = 'application/x-ndjson'

/**
 * Lines of JSON about work that takes long: its progress, then its report, or the error. The work may end when whoever asked for it has
 * left.
 */
function linesOf<Progress, Report>(
  work: (tell: (progress: Progress) => void, isLeft: AbortSignal) => Promise<Report>,
  onDefect: (error: unknown) => void
): Readable {
  const lines = new PassThrough()
  const left = new AbortController()
  lines.once('close', () => left.abort())
  const write = (line: unknown) => lines.write(`${JSON.stringify(line)}\n`)
  // Of progress that nobody takes, the next line says as much.
  work((progress) => lines.writableNeedDrain || lines.destroyed || write({ progress }), left.signal)
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

function importRequestOf(query: unknown): ImportRequest {
  const parsed = z.object({ request: z.string() }).safeParse(query)
  try {
    return ImportRequest.parse(JSON.parse(parsed.data?.request ?? ''))
  } catch {
    throw new UsageError('The query parameter request must be the JSON of an import request.')
  }
}

function statusOf(error: unknown): number {
  if (error instanceof UsageError || error instanceof z.ZodError) return 400
  if (error instanceof ForeignRequest) return 403
  if (error instanceof FailureError) return 409
  if (error instanceof Error && 'statusCode' in error && typeof error.statusCode === 'number') return error.statusCode
  return 500
}
