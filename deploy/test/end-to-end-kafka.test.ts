import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, readFile } from 'node:fs/promises'
import { type AddressInfo, connect } from 'node:net'
import { createServer } from 'node:tls'
import {
  type Certificate,
  freePort,
  kafkaBrokerMissing,
  postgresPrograms,
  selfSigned,
  sharedKafka,
  startClickHouseServer,
  startPostgres,
  until
} from '@gamenet/engines/testing'
import { type Test, test } from 'tap'
import { z } from 'zod'
import { type Environment, gamenet, gamenetJson, openGamenet, startGamenet } from './service/gamenet.js'
import { provesGap, provesReload, surroundings } from './service/kafka-proofs.js'
import type { Upstream } from './service/upstream.js'

const programs = postgresPrograms()
const missing = (await kafkaBrokerMissing()) ?? (programs === undefined ? 'PostgreSQL is not installed' : undefined)
if (missing !== undefined && process.env.CI === 'true') throw new Error(missing)
if (missing !== undefined) console.error(`NOT TESTED: the service on a real Kafka; ${missing}.`)
const options = missing === undefined ? {} : { skip: missing }

/** Interval of polls. */
const POLL_MS = 50

test(
  'several processes on a real Kafka and ClickHouse over HTTP answer what they scrape, whatever is away',
  options,
  async (t) => {
    const directory = t.testdir()
    const kafka = await sharedKafka(t)
    const { upstream, environment } = await surroundings(t, kafka, `${randomUUID()}.`)
    const front = await startClickHouseServer({ path: `${directory}/tables`, port: await freePort() })
    t.teardown(() => front.kill())
    const certificate = selfSigned(directory)
    const postgres = await startPostgres(programs ?? '', { certificate })
    t.teardown(() => postgres.stop())
    const engines = { CLICKHOUSE_URL: front.url, POSTGRES_URL: postgres.url }
    const real = { ...environment, ...engines, DATA_DIR: `${directory}/data` }
    const projector = await openGamenet(t, real, 'projector')
    const secured = { ...real, ...(await overTls(t, engines, certificate)) }
    const ingest = await openGamenet(t, secured, 'ingest')
    const api = await openGamenet(t, real, 'api')
    await provesForeignAuthority(t, secured, `${directory}/foreign`)
    const alone = { ...real, DATA_DIR: `${directory}/none` }
    t.match(await gamenet(alone, ['status']), {
      code: 0,
      stdout: /^No process was queried, because OPERATOR_URL is not set\. /
    })
    t.match(await gamenet(alone, ['rebuild', 'status']), {
      code: 2,
      stderr: /No projector was asked: set OPERATOR_URL to/
    })
    t.match(await gamenet(alone, ['doctor']), { stdout: /^service +ok +No process was queried, /m })
    const titles = [{ titleId: '4d530064', name: 'Halo 2', subtitle: '', online: 40, lobbies: null }]
    upstream.show({ registered: 21_345, online: 88, titles })
    await gamenetJson({ OPERATOR_URL: ingest.operatorUrl }, ['scrape', 'all'])
    await gamenetJson({ OPERATOR_URL: ingest.operatorUrl }, ['status', '--wait', '180'])
    const known = await fetch(`${api.apiUrl}/api/online-users`)
    await front.kill()
    const stale = await fetch(`${api.apiUrl}/api/online-users`)
    t.equal(stale.status, 200, 'ClickHouse away: what was answered before is answered again')
    t.equal(await stale.text(), await known.text())
    const unknown = await fetch(`${api.apiUrl}/api/network-stats/daily-online?days=7`)
    t.equal(unknown.status, 503)
    t.match(unknown.headers.get('retry-after'), /^[1-9]/)
    t.match(await unknown.json(), { error: /cannot be reached/ })
    t.same(await (await fetch(`${api.apiUrl}/readyz`)).json(), {
      status: 'ready',
      degraded: ['tables (ClickHouse) cannot be reached']
    })
    t.equal((await fetch(`${projector.operatorUrl}/readyz`)).status, 503, 'a projector has nothing to do')
    const back = await startClickHouseServer({ path: `${directory}/tables`, port: Number(new URL(front.url).port) })
    t.teardown(() => back.kill())
    t.match(await gamenetJson({ OPERATOR_URL: ingest.operatorUrl }, ['status', '--wait', '180']), {
      wait: { caughtUp: true }
    })
    t.equal(
      (await fetch(`${api.apiUrl}/api/network-stats/daily-online?days=7`)).status,
      200,
      'ClickHouse back: all is answered'
    )

    await postgres.kill()
    const reputation = await fetch(`${api.apiUrl}/api/profile/ann/reputation`)
    t.equal(reputation.status, 503, 'PostgreSQL away: what only it knows cannot be answered')
    t.match(reputation.headers.get('retry-after'), /^[1-9]/)
    await postgres.start()

    await projector.stop()
    // The topic of the gap below gets no event.
    await gamenetJson({ OPERATOR_URL: ingest.operatorUrl }, ['scrape', 'games'])
    t.match(await gamenet({ OPERATOR_URL: ingest.operatorUrl }, ['status']), {
      stdout: /^Needs attention: loading is stalled[\s\S]*^Loading is stalled: \d+ events wait, and none was loaded/m
    })
    // Events that Kafka lost before they were loaded are reported, until an operator accepts the gap.
    const other = await provesGap(t, { kafka, environment: real, apiUrl: api.apiUrl })
    await provesReload(t, other)
    await ingest.stop()
    await provesSpool(t, { upstream, environment: secured, apiUrl: api.apiUrl })
  }
)

/** The variables of a process that uses TLS to the engines; ClickHouse's front is behind a proxy. */
async function overTls(t: Test, engines: Environment, { keyFile, certificateFile }: Certificate): Promise<Environment> {
  const url = new URL(engines.CLICKHOUSE_URL ?? '')
  const front = Number(url.port)
  const pem = { key: await readFile(keyFile), cert: await readFile(certificateFile) }
  const proxy = createServer(pem, (socket) => {
    const target = connect(front, '127.0.0.1')
    socket.on('error', () => target.destroy()).pipe(target)
    target.on('error', () => socket.destroy()).pipe(socket)
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  t.teardown(() => proxy.close())
  url.protocol = 'https:'
  url.port = String((proxy.address() as AddressInfo).port)
  return {
    CLICKHOUSE_URL: url.href,
    CLICKHOUSE_SSL_CA_FILE: certificateFile,
    POSTGRES_URL: `${engines.POSTGRES_URL}?sslmode=verify-full&sslrootcert=${encodeURIComponent(certificateFile)}`
  }
}

/** Certificates of an authority that a process does not trust are named as the reason. */
async function provesForeignAuthority(t: Test, environment: Environment, folder: string): Promise<void> {
  await mkdir(folder)
  const foreign = selfSigned(folder).certificateFile
  const strangers = {
    'The tables': { CLICKHOUSE_SSL_CA_FILE: foreign },
    PostgreSQL: {
      POSTGRES_URL:
        environment.POSTGRES_URL?.replace(/sslrootcert=.*/, `sslrootcert=${encodeURIComponent(foreign)}`) ?? ''
    }
  }
  for (const [engine, variables] of Object.entries(strangers))
    t.match(await gamenet({ ...environment, ...variables }, ['migrate']), {
      code: 1,
      stderr: new RegExp(`^${engine} cannot be reached .*\\(self-signed certificate`)
    })
}

/** An ingest that cannot reach Kafka scrapes and is killed; the next one publishes what it has spooled. */
async function provesSpool(
  t: Test,
  world: { upstream: Upstream; environment: Environment; apiUrl: string }
): Promise<void> {
  const { upstream, environment, apiUrl } = world
  const onlineCounts = async () =>
    z
      .array(z.object({ online_count: z.int() }))
      .parse(await (await fetch(`${apiUrl}/api/network-stats/online-24h?resolution=raw`)).json())
      .map(({ online_count }) => online_count)
  const scrape = async (operatorUrl: string, online: number) => {
    upstream.show({ registered: 21_345, online, titles: [] })
    t.match(await gamenetJson({ OPERATOR_URL: operatorUrl }, ['scrape', 'network']), [
      { source: 'network', outcome: 'succeeded' }
    ])
  }
  const ingest = await startGamenet({ ...environment, KAFKA_BROKERS: `127.0.0.1:${await freePort()}` }, 'ingest')
  t.teardown(() => ingest.kill())
  await scrape(ingest.operatorUrl, 101)
  const status = await gamenet({ OPERATOR_URL: ingest.operatorUrl }, ['status'])
  t.match(status.stdout, /Waiting for the log: \d+ messages? since .*, \d+ of \d+ bytes: /)
  t.match(await (await fetch(`${ingest.operatorUrl}/metrics`)).text(), /^gamenet_spool_messages [1-9]/m)
  const waited = await gamenet({ OPERATOR_URL: ingest.operatorUrl }, ['status', '--wait', '1'])
  t.match(waited, { code: 1, stdout: /the tables have not caught up: The end of the log cannot be read: / })
  await ingest.kill()
  t.same(
    (await onlineCounts()).filter((online) => online > 100),
    [],
    'what waits is in no answer'
  )

  const later = await openGamenet(t, environment, 'ingest')
  await scrape(later.operatorUrl, 102)
  const client = { OPERATOR_URL: later.operatorUrl }
  const waiting = z.object({ spool: z.object({ messages: z.int() }) })
  await until(async () => waiting.parse(await gamenetJson(client, ['status'])).spool.messages === 0, POLL_MS)
  t.match(await gamenetJson(client, ['status', '--wait', '180']), { wait: { caughtUp: true }, stalled: [] })
  t.same(
    (await onlineCounts()).filter((online) => online > 100),
    [101, 102],
    'Kafka back: all that was seen meanwhile is there'
  )
}
