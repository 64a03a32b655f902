import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { SharedEngine } from './shared.js'

/*
 * The engines that the test files of one run share: a loopback HTTP server that starts each engine when a file first
 * requests it, and prints its own address. Its argument is the directory of ClickHouse; default: a temporary one. It
 * ends with its standard input, and so with the run in any case.
 */

type Started = { readonly place: unknown; stop(): Promise<void> }

const start: Record<SharedEngine, () => Promise<Started>> = {
  kafka: async () => {
    const { startKafkaBroker } = await import('../kafka-broker.js')
    const broker = await startKafkaBroker({ secured: true, proxied: true })
    const { address, secured, proxied } = broker
    return { place: { address, secured, proxied }, stop: () => broker.stop() }
  },
  clickhouse: async () => {
    const { startClickHouseServer } = await import('../clickhouse-server.js')
    const server = await startClickHouseServer({ path: CLICKHOUSE })
    return { place: { url: server.url }, stop: () => server.stop() }
  },
  postgres: async () => {
    const { postgresPrograms, startPostgres } = await import('../postgres.js')
    const server = await startPostgres(postgresPrograms() ?? '')
    return { place: { url: server.url }, stop: () => server.stop() }
  }
}

const [, , CLICKHOUSE] = process.argv

const started = new Map<SharedEngine, Promise<Started>>()

const server = createServer((request, response) => {
  const name = (request.url ?? '').slice(1) as SharedEngine
  if (start[name] === undefined) {
    response.writeHead(404).end(`There is no engine "${name}"; there are ${Object.keys(start).join(', ')}.`)
    return
  }
  const engine = started.get(name) ?? start[name]()
  started.set(name, engine)
  engine.then(
    ({ place }) => response.end(JSON.stringify(place)),
    (error: Error) => response.writeHead(500).end(error.message)
  )
})
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`)
})

// Ctrl-C reaches the run and this process; only the run's end counts.
process.on('SIGINT', () => {})
process.stdin.resume().once('end', async () => {
  server.close()
  server.closeAllConnections()
  await Promise.allSettled([...started.values()].map(async (engine) => (await engine).stop()))
  process.exit()
})
