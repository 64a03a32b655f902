import { randomUUID } from 'node:crypto'
import type { ClickHouse } from '../../src/clickhouse/clickhouse.js'
import { openClickHouseServer } from '../../src/clickhouse/server.js'
import { openPostgres } from '../../src/postgres/server.js'
import { startClickHouseServer } from '../clickhouse-server.js'
import { deleteRecords, type KafkaBroker, startKafkaBroker } from '../kafka-broker.js'
import { postgresPrograms, startPostgres } from '../postgres.js'

export type SharedEngine = 'kafka' | 'clickhouse' | 'postgres'

/** The broker of a test run. No test may kill or stop it; each uses topics with a random prefix. */
export type SharedKafka = Pick<KafkaBroker, 'address' | 'secured' | 'proxied' | 'deleteRecords'>

/** Registers cleanup for the end of a test. */
type Ending = { teardown(end: () => Promise<void>): void }

/** Returns the broker of this test run; a separate one for a file that runs alone. */
export async function sharedKafka(t: Ending): Promise<SharedKafka> {
  const shared = await place<Pick<SharedKafka, 'address' | 'secured' | 'proxied'>>('kafka')
  if (shared !== undefined) return { ...shared, deleteRecords: deleteRecords(shared.address) }
  const broker = await startKafkaBroker({ secured: true, proxied: true })
  t.teardown(() => broker.stop())
  return broker
}

/** Returns a new database on the shared server, or on a separate one. */
export async function sharedPostgres(t: Ending): Promise<{ readonly url: string }> {
  const shared = await place<{ readonly url: string }>('postgres')
  if (shared === undefined) {
    const programs = postgresPrograms()
    if (programs === undefined) throw new Error('PostgreSQL is not installed (Debian: apt-get install postgresql)')
    const server = await startPostgres(programs)
    t.teardown(() => server.stop())
    return { url: server.url }
  }
  const database = `test_${randomUUID().replaceAll('-', '')}`
  const postgres = openPostgres({ url: shared.url })
  await postgres.query(`CREATE DATABASE ${database}`).finally(() => postgres.close())
  return { url: Object.assign(new URL(shared.url), { pathname: database }).href }
}

/**
 * Returns a new database on the ClickHouse of this test run, on the server of `CLICKHOUSE_TEST_URL`, or on a separate one
 * for a file that runs alone. Merges of other databases go on in the same server.
 */
export async function sharedClickHouse(t: Ending): Promise<ClickHouse> {
  const shared = given ?? (await place<{ readonly url: string }>('clickhouse'))?.url
  const server = shared === undefined ? await startClickHouseServer() : undefined
  const url = shared ?? server?.url ?? ''
  const database = `test_${randomUUID().replaceAll('-', '')}`
  const all = openClickHouseServer({ url })
  await all.control.execute(`CREATE DATABASE ${database}`)
  // On a machine that runs other tests too.
  const clickhouse = openClickHouseServer({ url, database, health: { silenceMs: 60_000 } })
  t.teardown(async () => {
    await clickhouse.close()
    await all.control.execute(`DROP DATABASE ${database}`)
    await all.close()
    await server?.stop()
  })
  return clickhouse
}

// biome-ignore lint/style/noProcessEnv: a person who runs the tests can name another server.
const given = process.env.CLICKHOUSE_TEST_URL

/**
 * Returns the address of an engine of the test run, which starts at the first request; undefined outside such a run.
 */
async function place<Place>(engine: SharedEngine): Promise<Place | undefined> {
  // biome-ignore lint/style/noProcessEnv: deploy/test/run/test-run.mjs tells it to the processes of its test files.
  const url = process.env.GAMENET_TEST_ENGINES
  if (url === undefined) return undefined
  const answer = await fetch(`${url}/${engine}`)
  if (!answer.ok) throw new Error(`The ${engine} that tests share did not start: ${await answer.text()}`)
  return (await answer.json()) as Place
}
