import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'

/**
 * Lets an app close although clients hold connections: those that never said anything, as browsers open them in advance and
 * Node takes for busy ones, are closed at once, and all that are left after `finishMs` with them, however slow their readers.
 */
export function closeOpenConnections(app: FastifyInstance, finishMs: number): void {
  const open = new Set<Socket>()
  app.server.on('connection', (socket: Socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })
  app.addHook('preClose', async () => {
    for (const socket of open) if (socket.bytesRead === 0) socket.destroy()
    setTimeout(() => app.server.closeAllConnections(), finishMs).unref()
  })
}
