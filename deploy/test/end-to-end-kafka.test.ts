import { kafkaBrokerMissing, startClickHouseFront, startKafkaBroker } from '@gamenet/engines/testing'
import { type Test, test } from 'tap'
import { provesTheWholeWay } from './service/end-to-end.js'
import { type Environment, startGamenet } from './service/gamenet.js'
import { startUpstream } from './service/upstream.js'

const missing = await kafkaBrokerMissing()
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
    const front = await startClickHouseFront({ path: `${directory}/tables` })
    t.teardown(() => front.stop())
    const real = { ...environment, CLICKHOUSE_URL: front.url }
    const projector = await startGamenet(real, 'projector')
    t.teardown(() => projector.kill())
    const ingest = await startGamenet(real, 'ingest')
    t.teardown(() => ingest.kill())
    const api = await startGamenet(real, 'api')
    t.teardown(() => api.kill())
    await provesTheWholeWay(t, { upstream, apiUrl: api.apiUrl ?? '', operatorUrl: ingest.operatorUrl, directory })
    for (const process of [api, ingest, projector]) t.equal(await process.stop(), 0)
  }
)
