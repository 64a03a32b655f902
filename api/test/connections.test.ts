import { EventEmitter, once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import Fastify, { type FastifyInstance } from 'fastify'
import type { Registry } from 'prom-client'
import { type Test, test } from 'tap'
import type { ApiLimits } from '../src/app.js'
import { answerFirst } from '../src/http/answer-first.js'
import { createHttpServer } from '../src/http/server.js'
import { clientAddresses } from '../src/request/client-address.js'
import { testApp } from './support/test-app.js'

/** A client of one connection. */
class Client {
  readonly #socket: Socket
  #received = ''

  constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', (chunk) => {
      this.#received += String(chunk)
    })
    socket.on('error', () => undefined)
  }

  static async connect(app: FastifyInstance): Promise<Client> {
    const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1')
    const client = new Client(socket)
    await once(socket, 'connect')
    return client
  }

  /** Sends a request; resolves with the beginning of its answer. */
  async ask(path = '/healthz', header = ''): Promise<string> {
    this.#received = ''
    this.#socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n${header}\r\n`)
    while (!this.#received.includes('\r\n\r\n')) await Promise.race([once(this.#socket, 'data'), this.closed()])
    return this.#received
  }

  async closed(): Promise<void> {
    if (!this.#socket.closed) await once(this.#socket, 'close')
  }

  get isOpen(): boolean {
    return !this.#socket.closed
  }
}

/** An API with `/held`, which is answered when the test says so. */
async function limitedApp(t: Test, limits: Partial<ApiLimits>, address?: string) {
  let release = (): void => undefined
  let requests = 0
  const arrivals = new EventEmitter()
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  const { app, registry } = await testApp(t, {
    limits: { connectionsPerAddress: 0, ...limits },
    ...(address === undefined ? {} : { clients: { ...clientAddresses(), ofPeer: () => address } }),
    addRoutes: (app) => {
      app.get('/held', async () => {
        requests += 1
        arrivals.emit('held')
        await held
        return 'held'
      })
    }
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const clients = async (count: number) => {
    const connected: Client[] = []
    for (let n = 0; n < count; n += 1) connected.push(await Client.connect(app))
    return connected
  }
  const whenHeld = async (count: number) => {
    while (requests < count) await once(arrivals, 'held')
  }
  return { app, registry, release, clients, whenHeld }
}

async function limitedConnections(registry: Registry): Promise<Record<string, number>> {
  const metric = await registry.getSingleMetric('gamenet_connections_limited_total')?.get()
  return Object.fromEntries((metric?.values ?? []).map(({ labels, value }) => [String(labels.outcome), value]))
}

test('when all connections are open, the one idle for longest is closed for a new client', async (t) => {
  const { registry, clients } = await limitedApp(t, { connectionsMax: 5 })
  const first = await clients(5)
  for (const client of first) t.match(await client.ask(), /^HTTP\/1\.1 200 /)
  await first[0]?.ask()
  for (let n = 1; n <= 20; n += 1) {
    const [late] = await clients(1)
    t.match(await late?.ask(), /^HTTP\/1\.1 200 /, `new client ${n}`)
    if (n === 1) {
      await first[1]?.closed()
      t.same(
        first.map(({ isOpen }) => isOpen),
        [true, false, true, true, true]
      )
      // It has just been used.
      t.match(await first[0]?.ask(), /^HTTP\/1\.1 200 /)
    }
  }
  t.same(await limitedConnections(registry), { idle_closed: 20, connections_full: 0, connections_per_address: 0 })
})

test('connections in use are not closed: a new one is refused, and its sender learns why', async (t) => {
  const { registry, release, clients, whenHeld } = await limitedApp(t, { connectionsMax: 3 })
  const busy = await clients(3)
  const answers = busy.map((client) => client.ask('/held'))
  await whenHeld(3)
  const [refused] = await clients(1)
  const answer = await refused?.ask('/api/counts')
  t.match(answer, /^HTTP\/1\.1 503 /)
  t.match(answer, /^x-error-code: connections_full\r$/im)
  t.match(answer, /^retry-after: \d+\r$/im)
  await refused?.closed()
  release()
  for (const answer of answers) t.match(await answer, /^HTTP\/1\.1 200 /)
  const [late] = await clients(1)
  t.match(await late?.ask(), /^HTTP\/1\.1 200 /)
  t.same(await limitedConnections(registry), { idle_closed: 1, connections_full: 1, connections_per_address: 0 })
})

test('an address has so many connections; those of others stay open', async (t) => {
  const limits = { connectionsMax: 100, connectionsPerAddress: 2 }
  const { registry, release, clients, whenHeld } = await limitedApp(t, limits, '192.0.2.1')
  const [first, second] = await clients(2)
  await first?.ask()
  await second?.ask()
  const [third] = await clients(1)
  t.match(await third?.ask(), /^HTTP\/1\.1 200 /)
  await first?.closed()
  const answers = [second?.ask('/held'), third?.ask('/held')]
  await whenHeld(2)
  const [fourth] = await clients(1)
  const answer = await fourth?.ask()
  t.match(answer, /^HTTP\/1\.1 429 /)
  t.match(answer, /^x-error-code: connections_per_address\r$/im)
  t.match(answer, /^retry-after: \d+\r$/im)
  t.match(answer, /Your address has 2 connections in use/)
  release()
  for (const each of answers) t.match(await each, /^HTTP\/1\.1 200 /)
  t.same(await limitedConnections(registry), { idle_closed: 1, connections_full: 0, connections_per_address: 1 })
  const { app: local, clients: localClients } = await limitedApp(t, { connectionsPerAddress: 1 })
  const many = await localClients(5)
  for (const client of many) t.match(await client.ask(), /^HTTP\/1\.1 200 /, 'this machine has no such limit')
  t.equal(await connectionsOf(local), 5)
})

test('an exception before Fastify is a 500 of one request, not the end of the process', async (t) => {
  const app = Fastify()
  app.get('/', async () => {
    throw new Error('the same defect')
  })
  answerFirst(app, () => {
    throw new Error('a defect')
  })
  t.teardown(() => app.close())
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  t.equal((await fetch(url)).status, 500)
})

test('a connection that cannot be accepted is logged', async (t) => {
  const lines: unknown[] = []
  const log = { error: (line: unknown) => lines.push(line) } as never
  const app = createHttpServer({ log, nextId: () => 'x', headers: {} }, {})
  app.get('/', async () => 'yes')
  t.teardown(() => app.close())
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  // What Node emits when `accept` fails, which needs a process without descriptors.
  app.server.emit('error', Object.assign(new Error('accept EMFILE'), { code: 'EMFILE', syscall: 'accept' }))
  t.equal(lines.length, 1)
  t.equal((await fetch(url)).status, 200)
})

function connectionsOf(app: FastifyInstance): Promise<number> {
  return new Promise((resolve) => app.server.getConnections((_, count) => resolve(count)))
}
