import { spawn } from 'node:child_process'
import { loadavg } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import {
  freePort,
  type KafkaBroker,
  kafkaBrokerMissing,
  postgresPrograms,
  startClickHouseServer,
  startKafkaBroker,
  startPostgres
} from '@gamenet/engines/testing'
import { type Test, test } from 'tap'
import { Pool } from 'undici'
import { type Environment, gamenetJson, type Running, startGamenet } from './service/gamenet.js'
import { surroundings } from './service/kafka-proofs.js'

/* The short forms are stop.test.ts (the drain of one process) and log-kafka.test.ts (the members of a group). */

const REQUESTS_PER_SECOND = 500
const TICK_MS = 10
/** Interval of a load balancer's readiness checks; well below the drain delay. */
const READY_MS = 250
const DRAIN_SECONDS = '5'
const QUIET_MS = 3000
const TAKEOVER_MS_MAX = 20_000
const WAIT_MS_MAX = 60_000
/** Processes that only compute, to delay heartbeats like a busy machine. */
const BURNERS = 40
/** Four times as long as the group waits for a heartbeat. */
const BURN_MS = 60_000
const GROUP = 'rolling.loaders'
const PATHS = ['/api/online-users', '/api/games', '/api/network-stats/online-24h']

test('a rolling restart fails no request, and a projector takes over within 20 s', async (t) => {
  const { kafka, apis, projectors, operatorUrl, partitions } = await cluster(t)
  const balancer = await startBalancer(apis.map(({ url }) => url))
  t.teardown(() => balancer.stop())
  await wait(QUIET_MS)
  for (const one of [...apis, ...projectors]) {
    t.equal(await one.running.stop(), 0, `${one.command} ends`)
    one.running = await one.start()
    await untilReady(one.running.operatorUrl)
    await wait(QUIET_MS)
  }
  await balancer.stop()
  t.same(balancer.failures, [], 'no request failed')
  const times = balancer.times.toSorted((a, b) => a - b)
  const at = (share: number) => Math.round(times[Math.floor(times.length * share)] ?? 0)
  t.comment(`${times.length} requests, ${balancer.failures.length} failed; p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`)

  const [dead, other] = projectors
  if (dead === undefined || other === undefined) throw new Error('there are two projectors')
  await untilAssigned([dead, other], partitions)
  await keepsMembers(t, kafka, operatorUrl)
  const begun = performance.now()
  await dead.running.kill()
  await untilAssigned([other], partitions)
  const takeoverMs = Math.round(performance.now() - begun)
  t.comment(`takeover of ${partitions} partitions after ${takeoverMs} ms`)
  t.ok(takeoverMs <= TAKEOVER_MS_MAX, `${takeoverMs} ms`)
  await gamenetJson({ OPERATOR_URL: operatorUrl }, ['scrape', 'all'])
  await gamenetJson({ OPERATOR_URL: operatorUrl }, ['status', '--wait', '180'])
})

/** At a load of 40 both projectors stay in the group while they load. */
async function keepsMembers(t: Test, kafka: KafkaBroker, operatorUrl: string): Promise<void> {
  const before = await kafka.members(GROUP)
  t.ok(before.length >= 2, `${before.length} members`)
  const burners = Array.from({ length: BURNERS }, () => spawn('sh', ['-c', 'while :; do :; done']))
  const stop = () => burners.map((burner) => burner.kill('SIGKILL'))
  t.teardown(stop)
  const endsAt = performance.now() + BURN_MS
  while (performance.now() < endsAt) {
    await gamenetJson({ OPERATOR_URL: operatorUrl }, ['scrape', 'all'])
    t.same(await kafka.members(GROUP), before, 'no member left, and none joins again')
    await wait(QUIET_MS)
  }
  t.comment(`load ${loadavg()[0]?.toFixed(0)} at the end of ${BURN_MS / 1000} s with ${BURNERS} more processes`)
  stop()
}

type Restarted = { readonly command: string; readonly url: string; running: Running; start(): Promise<Running> }

/** Two API processes and two projectors, each on its own fixed ports; the number of partitions of all topics. */
async function cluster(t: Test) {
  const programs = postgresPrograms()
  const missing = (await kafkaBrokerMissing()) ?? (programs === undefined ? 'PostgreSQL is not installed' : undefined)
  if (missing !== undefined) throw new Error(missing)
  const directory = t.testdir()
  const kafka = await startKafkaBroker()
  t.teardown(() => kafka.stop())
  const { upstream, environment } = await surroundings(t, kafka, 'rolling.')
  upstream.show({
    registered: 21_345,
    online: 88,
    titles: [{ titleId: '4d530064', name: 'Halo 2', subtitle: '', online: 40, lobbies: null }]
  })
  const front = await startClickHouseServer({ path: `${directory}/tables` })
  t.teardown(() => front.kill())
  const postgres = await startPostgres(programs ?? '')
  t.teardown(() => postgres.stop())
  const shared: Environment = {
    ...environment,
    CLICKHOUSE_URL: front.url,
    POSTGRES_URL: postgres.url,
    SHUTDOWN_DELAY_SECONDS: DRAIN_SECONDS
  }
  const startOne = async (command: string, name: string): Promise<Restarted> => {
    const [port, operatorPort] = [await freePort(), await freePort()]
    const own = { ...shared, DATA_DIR: `${directory}/${name}`, PORT: `${port}`, OPERATOR_PORT: `${operatorPort}` }
    const start = async () => {
      const started = await startGamenet(own, command)
      t.teardown(() => started.kill())
      return started
    }
    return { command, url: `http://127.0.0.1:${port}`, running: await start(), start }
  }
  const projectors = [await startOne('projector', 'projector-1'), await startOne('projector', 'projector-2')]
  const { operatorUrl } = (await startOne('ingest', 'ingest')).running
  const apis = [await startOne('api', 'api-1'), await startOne('api', 'api-2')]
  await gamenetJson({ OPERATOR_URL: operatorUrl }, ['scrape', 'all'])
  await gamenetJson({ OPERATOR_URL: operatorUrl }, ['status', '--wait', '180'])
  const topics = (await assignedTo(projectors)).size
  return { kafka, apis, projectors, operatorUrl, partitions: topics * Number(environment.KAFKA_PARTITIONS) }
}

/** Sends requests at an even pace to the processes that are ready, as a load balancer does. */
async function startBalancer(urls: readonly string[]) {
  const targets = urls.map((url) => ({ url, pool: new Pool(url, { connections: 32 }), isReady: false }))
  const [times, failures, underWay]: [number[], string[], Set<Promise<void>>] = [[], [], new Set()]
  const look = () =>
    Promise.all(
      targets.map(async (target) => {
        target.isReady = await isReady(target.url)
      })
    )
  const askOne = async (n: number): Promise<void> => {
    const begun = performance.now()
    const ready = targets.filter((target) => target.isReady)
    const target = ready[n % ready.length]
    const path = PATHS[n % PATHS.length] ?? ''
    try {
      if (target === undefined) throw new Error('no process is ready')
      const { statusCode, body } = await target.pool.request({ method: 'GET', path })
      await body.dump({ limit: Number.MAX_SAFE_INTEGER })
      if (statusCode !== 200) failures.push(`${path}: ${statusCode}`)
    } catch (error) {
      failures.push(`${path} of ${target?.url}: ${String(error)}`)
    }
    times.push(performance.now() - begun)
  }
  await look()
  const begun = performance.now()
  let requests = 0
  const timer = setInterval(() => {
    const due = Math.floor(((performance.now() - begun) * REQUESTS_PER_SECOND) / 1000)
    for (; requests < due; requests += 1) {
      const one = askOne(requests).finally(() => underWay.delete(one))
      underWay.add(one)
    }
  }, TICK_MS)
  const looking = setInterval(() => void look(), READY_MS)
  return {
    times,
    failures,
    /** Idempotent. */
    async stop() {
      clearInterval(timer)
      clearInterval(looking)
      await Promise.all(underWay)
      await Promise.all(targets.map(({ pool }) => pool.closed || pool.close()))
    }
  }
}

const isReady = (url: string): Promise<boolean> =>
  fetch(`${url}/readyz`).then(
    ({ status }) => status === 200,
    () => false
  )

async function untilReady(url: string): Promise<void> {
  const endsAt = performance.now() + WAIT_MS_MAX
  while (!(await isReady(url))) {
    if (performance.now() > endsAt) throw new Error(`${url}/readyz: ${await (await fetch(`${url}/readyz`)).text()}`)
    await wait(READY_MS)
  }
}

/** The partitions that the processes load, by topic. */
async function assignedTo(projectors: readonly Restarted[]): Promise<Map<string, number>> {
  const assigned = new Map<string, number>()
  for (const { running } of projectors) {
    const metrics = await (await fetch(`${running.operatorUrl}/metrics`)).text()
    for (const [, topic = '', count] of metrics.matchAll(
      /^gamenet_loader_assigned_partitions\{topic="(.*)"\} (\d+)$/gm
    ))
      assigned.set(topic, (assigned.get(topic) ?? 0) + Number(count))
  }
  return assigned
}

async function untilAssigned(projectors: readonly Restarted[], partitions: number): Promise<void> {
  const endsAt = performance.now() + WAIT_MS_MAX
  for (;;) {
    const assigned = await assignedTo(projectors)
    if ([...assigned.values()].reduce((sum, count) => sum + count, 0) === partitions) return
    if (performance.now() > endsAt) throw new Error(`of ${partitions} partitions: ${JSON.stringify([...assigned])}`)
    await wait(READY_MS)
  }
}
