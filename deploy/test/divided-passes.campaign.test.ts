import { createServer, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  kafkaBrokerMissing,
  postgresPrograms,
  startClickHouseServer,
  startKafkaBroker,
  startPostgres,
  until
} from '@gamenet/engines/testing'
import {
  encodeEvent,
  type LogMessage,
  matchListTopic,
  networkCountTopic,
  type Topic,
  titleCountTopic
} from '@gamenet/schemas'
import { type Test, test } from 'tap'
import { openLog } from '../src/stores/log.js'
import { AUTHORIZED, type Environment, gamenetJson, type Running, startGamenet } from './service/gamenet.js'
import { surroundings } from './service/kafka-proofs.js'

/* The short form is divided-passes.test.ts. */

const ROUNDS = 20
const TITLES = 1000
const LISTED = 1000
const TAKEOVER_MS_MAX = 20_000
const LOOK_MS = 100
const BEGIN_MS = Date.UTC(2026, 2, 14)
const HOUR_MS = 3_600_000

test('several projectors read together what one reads, and take over what a stopped one had', async (t) => {
  const cluster = await startCluster(t)
  const rows: number[] = []
  const projectors: Projector[] = []
  for (let n = 1; n <= 3; n += 1) {
    projectors.push(await cluster.start())
    await untilDivided(projectors)
    const before = projectors.map(({ rows }) => rows())
    for (let round = 0; round < ROUNDS; round += 1) await cluster.feed(n, round)
    const shares = projectors.map((each, at) => each.rows() - (before[at] ?? 0))
    const together = shares.reduce((sum, each) => sum + each, 0)
    rows.push(together)
    const [ratio, largest] = [together / (rows[0] ?? 0), Math.max(...shares) / together]
    t.comment(
      `${n} projectors read ${together} rows in ${ROUNDS} rounds: ${ratio.toFixed(2)} times what one reads; ` +
        `shares ${shares.map((share) => (share / together).toFixed(2)).join(', ')}`
    )
    t.ok(ratio <= 1.05, `${ratio.toFixed(3)} times`)
    if (n > 1) t.ok(largest <= 0.6, `largest share ${largest.toFixed(2)}`)
  }
  const [one, two, three] = projectors
  if (one === undefined || two === undefined || three === undefined) throw new Error('there are three projectors')
  const took = async (what: string, left: readonly Projector[]) => {
    const begun = performance.now()
    await untilDivided(left)
    const ms = performance.now() - begun
    t.comment(`takeover from a ${what} projector after ${(ms / 1000).toFixed(1)} s`)
    t.ok(ms <= TAKEOVER_MS_MAX, `${Math.round(ms)} ms`)
  }
  await three.running.kill()
  await took('killed', [one, two])
  two.running.process.kill('SIGSTOP')
  await took('stopped', [one])
  await cluster.feed(4, 0, [one])
  two.running.process.kill('SIGCONT')
  await untilDivided([one, two])
  await cluster.feed(4, 1, [one, two])
})

type Projector = { readonly running: Running; rows(): number }

/** Kafka, PostgreSQL and ClickHouse, and projectors that each ask ClickHouse through a counter of rows. */
async function startCluster(t: Test) {
  const programs = postgresPrograms()
  const missing = (await kafkaBrokerMissing()) ?? (programs === undefined ? 'PostgreSQL is not installed' : undefined)
  if (missing !== undefined) throw new Error(missing)
  const kafka = await startKafkaBroker()
  t.teardown(() => kafka.stop())
  const { environment } = await surroundings(t, kafka, 'divided.')
  const tables = await startClickHouseServer({ path: `${t.testdir()}/tables` })
  t.teardown(() => tables.stop())
  const postgres = await startPostgres(programs ?? '')
  t.teardown(() => postgres.stop())
  const log = await openLog(
    {
      engine: 'kafka',
      brokers: [kafka.address],
      topicPrefix: 'divided.',
      partitions: Number(environment.KAFKA_PARTITIONS),
      replicationFactor: 1,
      epoch: 1
    },
    'test'
  )
  t.teardown(() => log.close())
  const projectors: Projector[] = []
  const start = async (): Promise<Projector> => {
    const counter = await countRows(t, tables.url)
    const own: Environment = { ...environment, CLICKHOUSE_URL: counter.url, POSTGRES_URL: postgres.url }
    const running = await startGamenet(own, 'projector')
    t.teardown(() => running.kill())
    const projector = { running, rows: counter.rows }
    projectors.push(projector)
    return projector
  }
  /** Appends what one round of a scrape finds, and waits until it is projected. */
  const feed = async (phase: number, round: number, alive = projectors) => {
    const observedAt = new Date(BEGIN_MS + phase * HOUR_MS + round * 60_000).toISOString()
    const at = <Event>(topic: Topic<Event>, events: readonly Event[]): [string, LogMessage[]] => [
      topic.name,
      events.map((event) => encodeEvent(topic, event, { source: '/test' }))
    ]
    const titleId = (n: number) => (0x10_00_00_00 + n).toString(16)
    const numbers = (count: number) => Array.from({ length: count }, (_, n) => n)
    const batches = [
      at(networkCountTopic, [{ observedAt, registered: 1000, online: 10 + round }]),
      at(
        titleCountTopic,
        numbers(TITLES).map((n) => ({ titleId: titleId(n), observedAt, online: (n * round) % 97 }))
      ),
      at(
        matchListTopic,
        numbers(LISTED).map((n) => ({
          titleId: titleId(n),
          observedAt,
          matches: [{ hostName: `host ${n % 7}`, currentPlayers: 1 + (round % 4), maxPlayers: 8 }]
        }))
      )
    ]
    for (const [topic, messages] of batches) await log.append(topic, messages)
    await gamenetJson({ OPERATOR_URL: alive[0]?.running.operatorUrl ?? '' }, ['status', '--wait', '120'])
  }
  return { start, feed }
}

/** Waits until each projection is run by one of these projectors, and each of them runs some. */
async function untilDivided(projectors: readonly Projector[]): Promise<void> {
  await until(async () => {
    const owned = await Promise.all(projectors.map(({ running }) => ownOf(running)))
    const all = new Set(owned.flatMap(({ all }) => [...all]))
    const own = owned.flatMap(({ own }) => [...own])
    return (
      all.size > 0 &&
      own.length === all.size &&
      new Set(own).size === all.size &&
      owned.every((each) => each.own.size > 0)
    )
  }, LOOK_MS)
}

/** The projections that a process knows, and those that it runs. */
async function ownOf({ operatorUrl }: Running) {
  const metrics = await (await fetch(`${operatorUrl}/metrics`, { headers: AUTHORIZED })).text()
  const shown = [...metrics.matchAll(/^gamenet_projection_own\{projection="(.*)"\} ([01])$/gm)]
  return {
    all: new Set(shown.map(([, name = '']) => name)),
    own: new Set(shown.filter(([, , isOwn]) => isOwn === '1').map(([, name = '']) => name))
  }
}

/** A proxy of ClickHouse that adds up the rows that its statements read, as it says in their answers. */
async function countRows(t: Test, target: string): Promise<{ readonly url: string; rows(): number }> {
  const { hostname, port, username, password } = new URL(target)
  let rows = 0
  const proxy = createServer((asked, answer) => {
    const options = { hostname, port, path: asked.url, method: asked.method, headers: asked.headers }
    const forwarded = request(options, (answered: IncomingMessage) => {
      const summary = answered.headers['x-clickhouse-summary']
      if (typeof summary === 'string') rows += Number(JSON.parse(summary).read_rows)
      answer.writeHead(answered.statusCode ?? 502, answered.headers)
      answered.pipe(answer)
    })
    forwarded.on('error', () => answer.destroy())
    answer.on('close', () => forwarded.destroy())
    asked.pipe(forwarded)
  })
  proxy.listen(0, '127.0.0.1')
  await new Promise((resolve) => proxy.once('listening', resolve))
  t.teardown(() => {
    proxy.close()
    proxy.closeAllConnections()
  })
  return {
    url: `http://${username}:${password}@127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    rows: () => rows
  }
}
