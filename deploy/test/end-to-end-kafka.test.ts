import {
  freePort,
  kafkaBrokerMissing,
  postgresPrograms,
  startClickHouseFront,
  startKafkaBroker,
  startPostgres
} from '@gamenet/engines/testing'
import { type Test, test } from 'tap'
import { provesTheWholeWay } from './service/end-to-end.js'
import { type Environment, gamenetJson, startGamenet } from './service/gamenet.js'
import { startUpstream } from './service/upstream.js'

const programs = postgresPrograms()
const missing = (await kafkaBrokerMissing()) ?? (programs === undefined ? 'PostgreSQL is not installed' : undefined)
if (missing !== undefined && process.env.CI === 'true') throw new Error(missing)
if (missing !== undefined) console.error(`NOT TESTED: the service on a real Kafka; ${missing}.`)
const options = missing === undefined ? {} : { skip: missing }

/** A broker of its own, an upstream network of its own, and the variables that lead to both. */
async function surroundings(t: Test) {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const kafka = await startKafkaBroker()
  t.teardown(() => kafka.stop())
  const environment: Environment = {
    KAFKA_BROKERS: kafka.address,
    KAFKA_PARTITIONS: '3',
    UPSTREAM_URL: upstream.url,
    SCRAPE_NETWORK_SECONDS: '0',
    SCRAPE_GAMES_SECONDS: '0'
  }
  return { upstream, environment }
}

test('one process on a real Kafka and chDB brings pages and files to answers', options, async (t) => {
  const directory = t.testdir()
  const { upstream, environment } = await surroundings(t)
  const service = await startGamenet({ ...environment, DATA_DIR: `${directory}/data` })
  t.teardown(() => service.kill())
  await provesTheWholeWay(t, { upstream, apiUrl: service.apiUrl ?? '', operatorUrl: service.operatorUrl, directory })
  t.equal(await service.stop(), 0)
})

test(
  'three processes on a real Kafka and ClickHouse over HTTP bring pages and files to answers',
  options,
  async (t) => {
    const directory = t.testdir()
    const { upstream, environment } = await surroundings(t)
    const front = await startClickHouseFront({ path: `${directory}/tables`, port: await freePort() })
    t.teardown(() => front.stop())
    const postgres = await startPostgres(programs ?? '')
    t.teardown(() => postgres.stop())
    const real = { ...environment, CLICKHOUSE_URL: front.url, POSTGRES_URL: postgres.url }
    const projector = await startGamenet(real, 'projector')
    t.teardown(() => projector.kill())
    const ingest = await startGamenet(real, 'ingest')
    t.teardown(() => ingest.kill())
    const api = await startGamenet(real, 'api')
    t.teardown(() => api.kill())
    await provesTheWholeWay(t, { upstream, apiUrl: api.apiUrl ?? '', operatorUrl: ingest.operatorUrl, directory })

    const known = await fetch(`${api.apiUrl}/api/online-users`)
    await front.kill()
    const stale = await fetch(`${api.apiUrl}/api/online-users`)
    t.equal(stale.status, 200, 'ClickHouse away: what was answered before is answered again')
    t.equal(await stale.text(), await known.text())
    const unknown = await fetch(`${api.apiUrl}/api/network-stats/daily-online?days=7`)
    t.equal(unknown.status, 503)
    t.match(unknown.headers.get('retry-after'), /^[1-9]/)
    t.match(await unknown.json(), { error: /cannot be reached/ })
    t.equal((await fetch(`${api.apiUrl}/readyz`)).status, 503)
    const back = await startClickHouseFront({ path: `${directory}/tables`, port: Number(new URL(front.url).port) })
    t.teardown(() => back.stop())
    t.match(await gamenetJson({ OPERATOR_URL: ingest.operatorUrl }, ['status', '--wait', '60']), {
      settled: { settled: true }
    })
    t.equal(
      (await fetch(`${api.apiUrl}/api/network-stats/daily-online?days=7`)).status,
      200,
      'ClickHouse back: all is answered'
    )
    for (const process of [api, ingest, projector]) t.equal(await process.stop(), 0)
  }
)
