import {
  freePort,
  kafkaBrokerMissing,
  postgresPrograms,
  startClickHouseFront,
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

test('one process on a real Kafka and chDB brings pages and files to answers', async (t) => {
  const directory = t.testdir()
  const { upstream, environment } = await surroundings(t, kafka, 'one.')
  const own = { ...environment, DATA_DIR: `${directory}/data` }
  const service = await startGamenet(own)
  t.teardown(() => service.kill())
  await provesEndToEnd(t, { upstream, apiUrl: service.apiUrl ?? '', operatorUrl: service.operatorUrl, directory })
  t.equal(await service.stop(), 0)
  await t.test('and what Kafka lost before it was loaded is missed aloud, until an operator accepts it', async (t) => {
    const later = await provesGap(t, { kafka, environment: own, role: 'all' })
    await later.stop()
  })
})

/** Two projectors, an ingest and two processes that answer, on real engines. */
async function severalProcesses(t: Test, topicPrefix: string) {
  const directory = t.testdir()
  const { upstream, environment } = await surroundings(t, kafka, topicPrefix)
  const front = await startClickHouseFront({ path: `${directory}/tables`, port: await freePort() })
  t.teardown(() => front.stop())
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

test('a rebuild outlives its projector, and of answers without a pause none mixes old and new', async (t) => {
  const { upstream, ...world } = await severalProcesses(t, 'rebuilt.')
  const titles = [{ titleId: '4d530064', name: 'Halo 2', subtitle: '', online: 40, lobbies: null }]
  upstream.show({ registered: 21_345, online: 88, titles })
  await gamenetJson({ OPERATOR_URL: world.ingest }, ['scrape', 'network'])
  await gamenetJson({ OPERATOR_URL: world.ingest }, ['status', '--wait', '180'])
  await provesRebuild(t, { ...world, pauseMs: 0 })
})

test('twenty-six swaps hold up no answer, and answers of one data version are the same in all processes', async (t) => {
  const { owner, other, ...world } = await severalProcesses(t, 'swapped.')
  await provesSwaps(t, { ...world, projectors: [owner.operatorUrl, other.operatorUrl] })
})

test('a broker that was killed has all that it acknowledged, and reading resumes', async (t) => {
  const resume = await provesReadingResumes(t, kafka)
  await kafka.restart()
  await resume()
})
