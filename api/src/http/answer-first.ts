import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'

/**
 * Offers each request to `answer` before Fastify, whose router, request and reply cost as much as sending an answer
 * that is ready. `answer` returns false for what it leaves to Fastify. An app that closes leaves everything to Fastify,
 * which adds `Connection: close`.
 */
export function answerFirst(
  app: FastifyInstance,
  answer: (request: IncomingMessage, response: ServerResponse) => boolean
): void {
  const fastify = app.server.listeners('request').at(-1) as RequestListener | undefined
  if (fastify === undefined) throw new Error('Fastify listens to no request; expected a listener to be called second.')
  const first: RequestListener = (request, response) => {
    let isAnswered = false
    try {
      isAnswered = answer(request, response)
    } catch (error) {
      // In a listener it would end the process; Fastify meets it again, and answers 500.
      if (response.headersSent) return void response.destroy(error as Error)
    }
    if (!isAnswered) fastify(request, response)
  }
  app.server.off('request', fastify).on('request', first)
  app.addHook('preClose', async () => {
    app.server.off('request', first).on('request', fastify)
  })
}
