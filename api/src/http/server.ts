import { randomBytes } from 'node:crypto'
import type { Server } from 'node:http'
import Fastify, {
  type FastifyBaseLogger,
  type FastifyHttpOptions,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest
} from 'fastify'
import { pathUnknown, requestFault, sendError } from '../reply/errors.js'
import { rememberResponses } from '../reply/newest-responses.js'
import { answersOtherMethod, SERVER_METHODS } from '../reply/other-methods.js'
import { answerOddRequests, answerSocketError, type SocketError } from '../reply/socket-errors.js'

export type HttpServerNeeds = {
  readonly log: FastifyBaseLogger | undefined
  /** Returns a new request id. */
  readonly nextId: () => string
  /** Sent with every answer. */
  readonly headers: Readonly<Record<string, string>>
  /** Throws the refusal of a request that may not even ask for the methods of a path. */
  readonly admit?: (request: FastifyRequest) => void
  /** Called with the status of an answer to input that never became a request. */
  readonly answered?: (status: number) => void
  /** Answers an error. Default: as a refusal. */
  readonly onError?: (error: unknown, request: FastifyRequest, reply: FastifyReply) => FastifyReply
}

/**
 * Creates a server that answers every fault of HTTP with a refusal, as RFC 9110 and 9112 say: bytes that are not a
 * request, targets, hosts, expectations, methods and paths. `options` are Fastify's.
 */
export function createHttpServer(
  { log, nextId, headers, admit, answered = () => undefined, onError }: HttpServerNeeds,
  options: FastifyHttpOptions<Server>
): FastifyInstance {
  const answerError = onError ?? ((error, request, reply) => sendError(error, request, reply, log))
  const setHeaders = (request: FastifyRequest, reply: FastifyReply) =>
    void reply.headers({ ...headers, 'X-Request-Id': request.id })
  const odd = { nextId, headers, answered }
  const app = Fastify({
    ...options,
    // Fastify's logger creates a child per request: a tenth of the cost of a ready answer.
    logger: false,
    genReqId: nextId,
    // Node's own answer to a request without Host has no body.
    http: { ...options.http, requireHostHeader: false },
    frameworkErrors: (error, request, reply) => {
      setHeaders(request, reply)
      void answerError(requestFault(request.raw) ?? error, request, reply)
    },
    clientErrorHandler: (error, socket) => {
      const id = nextId()
      log?.info({ reqId: id, code: error.code }, 'a connection was refused')
      // Fastify declares `rawPacket` as the JSON of a Buffer; Node gives the Buffer.
      answerSocketError(error as unknown as SocketError, socket, { ...odd, nextId: () => id })
    }
  })
  // Node drops headers beyond the 2,000th silently, a second Host or an Origin too; its limit of bytes holds.
  app.server.maxHeadersCount = 0
  answerOddRequests(app.server, odd)
  rememberResponses(app.server)
  // Without a listener, a connection that cannot be accepted would end the process. A failed `listen` is reported by
  // itself.
  app.server.on('error', (error) => {
    if (app.server.listening) log?.error({ err: error }, 'a connection cannot be accepted')
  })
  app.addHook('onRequest', (request, reply, done) => {
    const fault = requestFault(request.raw)
    if (fault !== undefined) {
      void reply.header('Connection', 'close')
      throw fault
    }
    admit?.(request)
    if (!answersOtherMethod(app, request, reply)) done()
  })
  app.addHook('onSend', async (request, reply) => setHeaders(request, reply))
  app.setErrorHandler(answerError)
  app.setNotFoundHandler(async (request, reply) => {
    if (request.raw.url !== '*') throw pathUnknown(request)
    await reply.code(204).header('Allow', SERVER_METHODS).send()
  })
  return app
}

/** Returns request ids that are unique across processes and restarts: a random prefix and a number. */
export function requestIds(): () => string {
  const beginning = randomBytes(6).toString('base64url')
  let number = 0
  return () => {
    number += 1
    return `${beginning}.${number.toString(36)}`
  }
}
