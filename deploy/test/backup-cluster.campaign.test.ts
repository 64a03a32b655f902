import { execFile } from 'node:child_process'
import { cp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { openClickHouseServer, openPostgres } from '@gamenet/engines'
import {
  kafkaBrokerMissing,
  listening,
  postgresPrograms,
  startClickHouseServer,
  startKafkaBroker,
  startPostgres
} from '@gamenet/engines/testing'
import { type Test, test } from 'tap'
import { differingTables, printsOf } from '../proof/torture/replay.js'
import { pathsOf, startPages } from './service/backups.js'
import { type Environment, gamenetJson, openGamenet, ROOT } from './service/gamenet.js'
import { Caller, signIn, startAuth } from './service/people-service.js'

/* The short form is runbook.test.ts: the statements of the script, and a copy that fails. */

const SCRIPT = fileURLToPath(new URL('deploy/backup/backup.sh', ROOT))
const HALO = { titleId: '4d530064', name: 'Halo 2', subtitle: '', online: 42, lobbies: null, hasBoards: true }
const LOOK_MS = 100
const run = promisify(execFile)

test('copies of Kafka, ClickHouse and PostgreSQL are consistent, although a scrape and ratings come between them', async (t) => {
  const programs = postgresPrograms()
  const missing = (await kafkaBrokerMissing()) ?? (programs === undefined ? 'PostgreSQL is not installed' : undefined)
  if (missing !== undefined) throw new Error(missing)
  const folder = t.testdir()
  const part = (name: string) => join(folder, name)
  const auth = await startAuth(t)
  const people = auth.people.slice(0, 3)
  const [ann, ben, cid] = await Promise.all(people.map((person) => signIn(auth, person)))
  const names = people.map(({ username }) => username)
  const upstream = await startPages(t, names)
  const kafka = await startKafkaBroker({ directory: part('kafka') })
  t.teardown(() => kafka.stop())
  const enginesIn = async (name: string): Promise<Environment> => {
    const front = await startClickHouseServer({ path: part(name) })
    t.teardown(() => front.kill())
    const postgres = await startPostgres(programs ?? '')
    t.teardown(() => postgres.stop())
    return {
      KAFKA_BROKERS: kafka.address,
      KAFKA_PARTITIONS: '3',
      CLICKHOUSE_URL: front.url,
      POSTGRES_URL: postgres.url,
      AUTH_URL: auth.url,
      UPSTREAM_URL: upstream.url,
      SCRAPE_NETWORK_SECONDS: '0',
      SCRAPE_GAMES_SECONDS: '0'
    }
  }
  const engines = await enginesIn('tables')
  const service = await startRoles(t, engines, part('ingest'))
  const rate = (rater = ann, stars = 5) =>
    service.caller.ask('POST', `/api/profile/${ben?.person.username}/reputation`, rater, { stars, comment: 'fair' })
  await service.scrape()
  t.match(await rate(), { status: 200 })
  await service.settle()
  const before = await printsIn(t, engines)

  const hooks = await startHooks(t, {
    async stop() {
      upstream.show({ registered: 21_346, online: 47, titles: [HALO] })
      await service.scrape()
      await service.settle()
      await service.stopIngest()
      t.match(await rate(cid, 1), { status: 200 }, 'a rating that only the outbox has')
    },
    start: () => service.startIngest(),
    async copy() {
      await kafka.kill()
      await cp(part('kafka/data'), part('monday.unfinished/kafka/data'), { recursive: true })
      await kafka.restart()
    },
    async restore() {
      await kafka.kill()
      await rm(part('kafka/data'), { recursive: true })
      await cp(part('monday/kafka/data'), part('kafka/data'), { recursive: true })
      await kafka.restart()
    }
  })
  const script = (command: string, environment: Environment) =>
    run(SCRIPT, [command, part('monday')], {
      env: { ...process.env, CLICKHOUSE_COPY: "File('%s')", ...environment, ...hooks }
    })
  const began = performance.now()
  await script('backup', engines)
  const backupMs = performance.now() - began
  await service.settle()
  const wanted = await printsIn(t, engines)
  t.ok(differingTables(before, wanted).length > 5, 'the tables were copied before the log')
  const answers = await service.answers(names)
  t.match(await rate(ann, 2), { status: 200 }, 'a rating after the backup')
  await service.stop()

  const restored = await enginesIn('restored')
  // The kernel lets each server write into its own directory only.
  await cp(part('tables/backups'), part('restored/backups'), { recursive: true })
  const began2 = performance.now()
  await script('restore', restored)
  t.comment(`backup ${Math.round(backupMs)} ms, restore ${Math.round(performance.now() - began2)} ms`)
  t.same(differingTables(await printsIn(t, restored), before), [], 'the tables are those before the scrape')
  const again = await startRoles(t, restored, part('ingest-restored'))
  await again.settle()
  t.same(differingTables(await printsIn(t, restored), wanted), [], 'and reach those after it')
  t.same(await again.answers(names), answers)
  await t.rejects(script('restore', restored), /already exist/, 'servers that are not empty are refused')
})

/** One process of each role that a test can open in its own process. */
async function startRoles(t: Test, engines: Environment, dataDirectory: string) {
  const startIngest = () => openGamenet(t, { ...engines, DATA_DIR: dataDirectory }, 'ingest')
  let ingest = await startIngest()
  const projector = await openGamenet(t, engines, 'projector')
  const api = await openGamenet(t, engines, 'api')
  const caller = new Caller(api, 4)
  const writes = openPostgres({ url: engines.POSTGRES_URL ?? '' })
  t.teardown(() => Promise.all([caller.close(), writes.close()]))
  const reach = () => ({ OPERATOR_URL: ingest.operatorUrl })
  return {
    caller,
    scrape: () => gamenetJson(reach(), ['scrape', 'all']),
    async settle() {
      while ((await writes.query('SELECT 1 FROM outbox LIMIT 1')).length > 0) await wait(LOOK_MS)
      await gamenetJson(reach(), ['status', '--wait', '180'])
      const loadedAt = Date.now() / 1000
      while ((await evaluatedAt(ingest.operatorUrl)) < loadedAt) await wait(LOOK_MS)
      await gamenetJson(reach(), ['status', '--wait', '180'])
    },
    stopIngest: () => ingest.stop(),
    async startIngest() {
      ingest = await startIngest()
    },
    answers: (names: readonly string[]) =>
      Promise.all(pathsOf(names).map(async (path) => [path, await caller.ask('GET', path)])),
    async stop() {
      for (const each of [ingest, api, projector]) await each.stop()
    }
  }
}

/** Unix time at which the achievements of all loaded events were last known to be published. */
async function evaluatedAt(operatorUrl: string): Promise<number> {
  const metrics = await (await fetch(`${operatorUrl}/metrics`)).text()
  return Number(/^gamenet_achievements_evaluated_timestamp_seconds (\S+)$/m.exec(metrics)?.[1] ?? 0)
}

/**
 * Returns the rows of every read table; rows of event tables contain positions, and the restored service publishes
 * again.
 */
async function printsIn(t: Test, { CLICKHOUSE_URL: url = '' }: Environment) {
  const tables = openClickHouseServer({ url })
  t.teardown(() => tables.close())
  return new Map([...(await printsOf(tables))].filter(([name]) => !name.startsWith('event_')))
}

/** The commands of the script for this test's engines, as requests. */
async function startHooks(
  t: Test,
  work: Readonly<Record<'stop' | 'start' | 'copy' | 'restore', () => Promise<void>>>
): Promise<Environment> {
  const url = await listening(t, (request, response) => {
    const name = request.url?.slice(1) as keyof typeof work
    work[name]().then(
      () => response.end(),
      (error: unknown) => response.writeHead(500).end(String(error))
    )
  })
  const call = (name: string) => `curl --silent --show-error --fail-with-body ${url}/${name}`
  return {
    STOP_INGEST: call('stop'),
    START_INGEST: call('start'),
    COPY_KAFKA: call('copy'),
    RESTORE_KAFKA: call('restore')
  }
}
