import {
  freePort,
  kafkaBrokerMissing,
  postgresPrograms,
  startClickHouseServer,
  startKafkaBroker,
  startPostgres
} from '@gamenet/engines/testing'
import { after, type Test, test } from 'tap'
import { provesEndToEnd } from './service/end-to-end.js'
import { gamenetJson, startGamenet } from './service/gamenet.js'
import { provesGap, provesReadingResumes, provesRebuild, provesSwaps, surroundings } from './service/kafka-proofs.js'

/* The short form is end-to-end-kafka.test.ts. */

const programs = postgresPrograms()
const missing = (await kafkaBrokerMissing()) ?? (programs === undefined ? 'PostgreSQL is not installed' : undefined)
if (missing !== undefined) throw new Error(missing)
const kafka = await startKafkaBroker()
after(() => kafka.stop())

test('one process on a real Kafka and chDB answers from pages and files', async (t) => {
  const directory = t.testdir()
  const { upstream, environment } = await surroundings(t, kafka, 'one.')
  const own = { ...environment, DATA_DIR: `${directory}/data` }
  const service = await startGamenet(own)
  t.teardown(() => service.kill())
  await provesEndToEnd(t, { upstream, apiUrl: service.apiUrl ?? '', operatorUrl: service.operatorUrl, directory })
  t.equal(await service.stop(), 0)
  await t.test(
    'and events that Kafka lost before they were loaded are reported, until an operator accepts the gap',
    async (t) => {
      const later = await provesGap(t, { kafka, environment: own, role: 'all' })
      await later.stop()
    }
  )
})

/** Two projectors, an ingest and two processes that answer, on real engines. */
async function severalProcesses(t: Test, topicPrefix: string) {
  const directory = t.testdir()
  const { upstream, environment } = await surroundings(t, kafka, topicPrefix)
  const front = await startClickHouseServer({ path: `${directory}/tables`, port: await freePort() })
  t.teardown(() => front.kill())
  const postgres = await startPostgres(programs ?? '')
  t.teardown(() => postgres.stop())
  const engines = { ...environment, CLICKHOUSE_URL: front.url, POSTGRES_URL: postgres.url }
  const start = async (command: string, name: string) => {
    const started = await startGamenet({ ...engines, DATA_DIR: `${directory}/${name}` }, command)
    t.teardown(() => started.kill())
    return started
  }
  const owner = await start('projector', 'data')
  const other = await start('projector', 'other')
  const ingest = (await start('ingest', 'data')).operatorUrl
  const apis = [await start('api', 'data'), await start('api', 'other')] as const
  return {
    directory,
    upstream,
    clickhouse: front.url,
    owner,
    other,
    ingest,
    apis,
    apiUrls: apis.map(({ apiUrl }) => apiUrl ?? '')
  }
}

test('a rebuild survives its projector, and none of the continuous answers mixes old and new tables', async (t) => {
  const { upstream, ...world } = await severalProcesses(t, 'rebuilt.')
  const titles = [{ titleId: '4d530064', name: 'Halo 2', subtitle: '', online: 40, lobbies: null }]
  upstream.show({ registered: 21_345, online: 88, titles })
  await gamenetJson({ OPERATOR_URL: world.ingest }, ['scrape', 'network'])
  await gamenetJson({ OPERATOR_URL: world.ingest }, ['status', '--wait', '180'])
  await provesRebuild(t, { ...world, pauseMs: 0 })
})

test('twenty-six swaps delay no answer, and answers of one data version are equal in all processes', async (t) => {
  const { owner, other, ...world } = await severalProcesses(t, 'swapped.')
  await provesSwaps(t, { ...world, projectors: [owner.operatorUrl, other.operatorUrl] })
})

test('a killed broker has all acknowledged messages, and reading resumes', async (t) => {
  const resume = await provesReadingResumes(t, kafka)
  await kafka.restart()
  await resume()
})
