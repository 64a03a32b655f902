import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { Refusal } from '@gamenet/schemas'
import type { FastifyInstance } from 'fastify'
import { Counter, Gauge, type Registry } from 'prom-client'
import { isAnswering } from '../reply/newest-responses.js'
import type { ClientAddresses } from '../request/client-address.js'

/** Limits of connections. */
export type ConnectionLimits = {
  /** Open connections; below the limit of descriptors. */
  readonly connectionsMax: number
  /** Of them from one address; 0: no limit. */
  readonly connectionsPerAddress: number
}

/**
 * Connections beyond the limit that are open until their first request is refused; further ones are closed
 * unanswered.
 */
const REFUSED_MAX = 50
/** Time for the request of a connection that is refused. */
const REFUSED_MS = 2000
const RETRY_AFTER_SECONDS = 5

type Needs = {
  readonly limits: ConnectionLimits & { readonly finishMs: number }
  readonly clients: Pick<ClientAddresses, 'ofPeer' | 'of'>
  readonly registry: Registry
}

/** What happens to connections at a limit: an idle one is closed, or the new one refused. */
const OUTCOMES = ['idle_closed', 'connections_full', 'connections_per_address'] as const
type Outcome = (typeof OUTCOMES)[number]
type LimitCode = Exclude<Outcome, 'idle_closed'>

/**
 * Limits the connections of an app. Beyond a limit, the connection that has been idle for longest is closed; if all
 * are in use, the new one is refused. Returns a function to be called with each request before it is answered; it
 * returns false if it is refused.
 *
 * Also lets the app close although clients hold connections: unused ones, which browsers open in advance and Node
 * counts as busy, are closed at once, all others after `finishMs` at the latest, even if their readers are slow.
 */
export function limitConnections(
  app: FastifyInstance,
  { limits, clients, registry }: Needs
): (request: IncomingMessage) => boolean {
  const { connectionsMax, connectionsPerAddress: perAddress, finishMs } = limits
  /** Open connections, the one used last at the end, each with those of its address if a limit applies to it. */
  const open = new Map<Socket, Set<Socket> | undefined>()
  const byAddress = new Map<string, Set<Socket>>()
  const refused = new Map<Socket, LimitCode>()
  const limited = metricsOf(registry, () => open.size, connectionsMax)

  const use = (socket: Socket): void => {
    const own = open.get(socket)
    for (const sockets of [open, own]) sockets?.delete(socket)
    open.set(socket, own)
    own?.add(socket)
  }
  /** Closes the idle connection of these that was used longest ago; returns whether there is one. */
  const closeIdle = (sockets: Pick<Set<Socket>, 'size' | 'keys'>): boolean => {
    let left = sockets.size
    for (const socket of sockets.keys()) {
      if (left === 0) return false
      left -= 1
      if (!isAnswering(socket)) {
        limited('idle_closed')
        leave(socket)
        socket.destroy()
        return true
      }
      // A stream is in use all the time: it is not met again by each new connection.
      use(socket)
    }
    return false
  }
  const leave = (socket: Socket): void => {
    open.get(socket)?.delete(socket)
    open.delete(socket)
    refused.delete(socket)
  }
  const refuse = (socket: Socket, code: LimitCode): void => {
    limited(code)
    if (refused.size >= REFUSED_MAX) return void socket.destroy()
    refused.set(socket, code)
    socket.setTimeout(REFUSED_MS)
  }
  app.server.maxConnections = connectionsMax + REFUSED_MAX
  app.server.on('connection', (socket: Socket) => {
    const address = perAddress === 0 ? undefined : clients.ofPeer(socket)
    const own = address === undefined ? undefined : (byAddress.get(address) ?? new Set<Socket>())
    socket.once('close', () => {
      leave(socket)
      if (address !== undefined && own?.size === 0 && byAddress.get(address) === own) byAddress.delete(address)
    })
    if (own !== undefined && own.size >= perAddress && !closeIdle(own)) return refuse(socket, 'connections_per_address')
    if (open.size >= connectionsMax && !closeIdle(open)) return refuse(socket, 'connections_full')
    if (address !== undefined && own !== undefined) byAddress.set(address, own.add(socket))
    open.set(socket, own)
  })
  app.addHook('onRequest', async ({ raw: { socket } }, reply) => {
    const code = refused.get(socket)
    if (code === undefined) return
    void reply.header('Connection', 'close')
    throw new Refusal(code, code === 'connections_full' ? [] : [String(perAddress)], {
      retryAfterSeconds: RETRY_AFTER_SECONDS
    })
  })
  app.addHook('preClose', async () => {
    for (const socket of open.keys()) if (socket.bytesRead === 0) socket.destroy()
    setTimeout(() => app.server.closeAllConnections(), finishMs).unref()
  })
  return (request) => {
    const { socket } = request
    if (refused.size > 0 && refused.has(socket)) return false
    if (open.has(socket)) use(socket)
    // An untrusted proxy is known from its first request on.
    if (request.headers['x-forwarded-for'] !== undefined) clients.of(request)
    return true
  }
}

function metricsOf(registry: Registry, open: () => number, max: number): (outcome: Outcome) => void {
  const registers = [registry]
  new Gauge({
    name: 'gamenet_connections',
    help: 'Open connections of the API.',
    registers,
    collect() {
      this.set(open())
    }
  })
  new Gauge({ name: 'gamenet_connections_max', help: 'CONNECTIONS_MAX, or what open files allow.', registers }).set(max)
  const limited = new Counter({
    name: 'gamenet_connections_limited_total',
    help: 'Idle connections that were closed for new ones, and connections that were refused, by limit.',
    labelNames: ['outcome'],
    registers
  })
  for (const outcome of OUTCOMES) limited.inc({ outcome }, 0)
  return (outcome) => limited.inc({ outcome })
}
