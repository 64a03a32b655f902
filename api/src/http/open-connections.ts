import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'

/**
 * Lets an app close although clients hold connections. Unused connections, which browsers open in advance and Node
 * counts as busy, are closed at once; all others after `finishMs` at the latest, even if their readers are slow.
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
