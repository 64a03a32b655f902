import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** The newest response of each connection. One that waits for those before it (pipelining) has no socket yet. */
const newest = new WeakMap<Socket, ServerResponse>()

/** Remembers the responses of a server, from now on. */
export function rememberResponses(server: Server): void {
  server.prependListener('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    newest.set(socket, response)
  })
}

/** Returns whether a request of the connection is not yet answered completely. */
export const isAnswering = (socket: Socket): boolean => newest.get(socket)?.writableFinished === false

/** Returns whether an answer has begun on the connection and has not ended, so that nothing else can be sent. */
export function isAmidAnswer(socket: Socket): boolean {
  const response = newest.get(socket)
  return response?.writableFinished === false && (response.headersSent || response.socket === null)
}
