import { PassThrough } from 'node:stream'
import type { Readiness } from '@gamenet/api'
import fastify, { type FastifyInstance } from 'fastify'
import type { Registry } from 'prom-client'
import { z } from 'zod'
import { FailureError, UsageError } from '../config.js'
import { ImportRequest, type Operations } from './operations.js'

const SETTLED_SECONDS_MAX = 86_400

/**
 * The operator port: health, metrics and what the command line asks for. Not for the public: it has no sessions and
 * no limits on what may be asked.
 */
export function buildOperatorApp(needs: {
  operations: Operations
  registry: Registry
  ready: () => Promise<Readiness>
}): FastifyInstance {
  const app = fastify({ logger: false, bodyLimit: 1024 * 1024 })
  app.addContentTypeParser('application/octet-stream', (_request, payload, done) => done(null, payload))
  app.setNotFoundHandler((request, reply) => reply.code(404).send({ error: `There is nothing at ${request.url}.` }))
  app.setErrorHandler((error, _request, reply) => {
    const status = statusOf(error)
    return reply.code(status).send({ error: error instanceof Error ? error.message : String(error) })
  })
  app.get('/healthz', () => ({ ok: true }))
  app.get('/readyz', async (_request, reply) => {
    const readiness = await needs.ready()
    return reply.code(readiness.ok ? 200 : 503).send(readiness)
  })
  app.get('/metrics', async (_request, reply) =>
    reply.type(needs.registry.contentType).send(await needs.registry.metrics())
  )
  addOperations(app, needs.operations)
  return app
}

function addOperations(app: FastifyInstance, operations: Operations): void {
  app.get('/status', () => operations.status())
  app.post('/migrate', async () => ({ applied: await operations.migrate() }))
  app.get('/settled', (request) => {
    const query = z.object({ seconds: z.coerce.number().min(0).max(SETTLED_SECONDS_MAX) }).safeParse(request.query)
    if (!query.success) throw new UsageError(`seconds must be a number from 0 to ${SETTLED_SECONDS_MAX}.`)
    return operations.settled(query.data.seconds * 1000)
  })
  app.post('/scrape/:source', (request) => {
    const { source } = z.object({ source: z.string() }).parse(request.params)
    return operations.scrape(source)
  })
  // The request's options travel in the query, the file's bytes as body; the answer is lines of JSON: progress, then
  // the report or the error.
  app.post('/import', { bodyLimit: Number.MAX_SAFE_INTEGER }, (request, reply) => {
    const { request: text } = z.object({ request: z.string() }).parse(request.query)
    const lines = new PassThrough()
    const write = (line: unknown) => lines.write(`${JSON.stringify(line)}\n`)
    const content = z.custom<AsyncIterable<Uint8Array>>().parse(request.body)
    operations
      .import(ImportRequest.parse(JSON.parse(text)), content, (progress) => write({ progress }))
      .then(
        (report) => write({ report }),
        (error: unknown) =>
          write({ error: error instanceof Error ? error.message : String(error), usage: error instanceof UsageError })
      )
      .finally(() => lines.end())
    return reply.type('application/x-ndjson').send(lines)
  })
}

function statusOf(error: unknown): number {
  if (error instanceof UsageError || error instanceof z.ZodError) return 400
  if (error instanceof FailureError) return 409
  if (error instanceof Error && 'statusCode' in error && typeof error.statusCode === 'number') return error.statusCode
  return 500
}
