import { once } from 'node:events'
import { createServer, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
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
  instantOf,
  type LogMessage,
  matchListTopic,
  networkCountTopic,
  type Topic,
  titleCountTopic
} from '@gamenet/schemas'
import { type Test, test } from 'tap'
import { Status } from '../src/operate/status/operation.js'
import { openLog } from '../src/stores/log.js'
import { AUTHORIZED, gamenetJson, type Running, startGamenet } from './service/gamenet.js'
import { surroundings } from './service/kafka-proofs.js'

/* The short form is divided-passes.test.ts. */

const ROUNDS = 20
const TITLES = 1000
const TAKEOVER_MS_MAX = 20_000
const LOOK_MS = 100
const BEGIN_MS = Date.UTC(2026, 2, 14)

test('several projectors read together what one reads, and take over what a stopped one had', async (t) => {
  const engines = await startEngines(t)
  let alone = 0
  for (const count of [1, 2, 3]) {
    const world = await engines.world(count)
    for (let round = 0; round < ROUNDS; round += 1) await world.feed()
    const shares = world.projectors.map(({ rows }) => sumOf(rows))
    const together = shares.reduce((sum, each) => sum + each, 0)
    if (count === 1) alone = together
    const [ratio, largest] = [together / alone, Math.max(...shares) / together]
    t.comment(
      `${count} projectors read ${together} rows in ${ROUNDS} rounds, ${ratio.toFixed(2)} times what one reads; ` +
        `shares ${shares.map((share) => (share / together).toFixed(2)).join(', ')}`
    )
    for (const { rows } of world.projectors) t.comment(`  ${[...rows].map((each) => each.join(' ')).join(', ')}`)
    t.ok(ratio <= 1.05, `${ratio.toFixed(3)} times`)
    if (count > 1) t.ok(largest <= 0.6, `largest share ${largest.toFixed(2)}`)
    if (count === 3) await takeOver(t, world)
    for (const { running } of world.projectors) await running.kill()
  }
})

/** Kills one projector, stops another one, and continues it. */
async function takeOver(t: Test, { projectors, feed }: World): Promise<void> {
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
  await feed()
  two.running.process.kill('SIGCONT')
  await untilDivided([one, two])
  await feed()
}

/** A projector, and the rows that its statements have read, by what they are. */
type Projector = { readonly running: Running; readonly rows: ReadonlyMap<string, number> }

type World = {
  readonly projectors: readonly Projector[]
  /** Appends what a round of a scrape finds, and waits until it is projected. */
  feed(): Promise<void>
}

/** Kafka, PostgreSQL and ClickHouse. Each world has topics and a database of its own. */
async function startEngines(t: Test) {
  const programs = postgresPrograms()
  const missing = (await kafkaBrokerMissing()) ?? (programs === undefined ? 'PostgreSQL is not installed' : undefined)
  if (missing !== undefined) throw new Error(missing)
  const kafka = await startKafkaBroker()
  t.teardown(() => kafka.stop())
  const tables = await startClickHouseServer({ path: `${t.testdir()}/tables` })
  t.teardown(() => tables.stop())
  const postgres = await startPostgres(programs ?? '')
  t.teardown(() => postgres.stop())
  const world = async (count: number): Promise<World> => {
    const topicPrefix = `divided${count}.`
    const { environment } = await surroundings(t, kafka, topicPrefix)
    const log = await openLog(
      {
        engine: 'kafka',
        brokers: [kafka.address],
        topicPrefix,
        partitions: Number(environment.KAFKA_PARTITIONS),
        replicationFactor: 1,
        epoch: 1
      },
      'test'
    )
    t.teardown(() => log.close())
    await tables.ask(`CREATE DATABASE world_${count}`, { format: 'JSONEachRow' })
    const projectors: Projector[] = []
    for (let n = 0; n < count; n += 1) {
      const counter = await countRows(t, tables.url)
      const own = { CLICKHOUSE_URL: `${counter.url}/world_${count}`, POSTGRES_URL: postgres.url }
      const running = await startGamenet({ ...environment, ...own }, 'projector')
      t.teardown(() => running.kill())
      projectors.push({ running, rows: counter.rows })
    }
    await untilDivided(projectors)
    let round = 0
    const feed = async () => {
      for (const [topic, messages] of roundOf(round)) await log.append(topic, messages)
      round += 1
      const operatorUrl = projectors[0]?.running.operatorUrl ?? ''
      const { deadLetters } = Status.parse(
        await gamenetJson({ OPERATOR_URL: operatorUrl }, ['status', '--wait', '120'])
      )
      t.same(deadLetters, {}, 'every event is loaded')
    }
    return { projectors, feed }
  }
  return { world }
}

/** What a round of a scrape finds, a minute after the round before it. */
function roundOf(round: number): [string, LogMessage[]][] {
  const observedAt = instantOf(BEGIN_MS + round * 60_000)
  const at = <Event>(topic: Topic<Event>, events: readonly Event[]): [string, LogMessage[]] => [
    topic.name,
    events.map((event) => encodeEvent(topic, event, { source: '/test' }))
  ]
  const titleIds = Array.from({ length: TITLES }, (_, n) => (0x10_00_00_00 + n).toString(16))
  return [
    at(networkCountTopic, [{ observedAt, registered: 1000, online: 10 + round }]),
    at(
      titleCountTopic,
      titleIds.map((titleId, n) => ({ titleId, observedAt, online: (n * round) % 97 }))
    ),
    at(
      matchListTopic,
      titleIds.map((titleId, n) => ({
        titleId,
        observedAt,
        matches: [{ hostName: `host ${n % 7}`, currentPlayers: 1 + (round % 4), maxPlayers: 8 }]
      }))
    )
  ]
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

const sumOf = (rows: ReadonlyMap<string, number>) => [...rows.values()].reduce((sum, each) => sum + each, 0)

/** A proxy of ClickHouse that adds up the rows that its statements read, as it says in their answers. */
async function countRows(t: Test, target: string) {
  const { hostname, port, username, password } = new URL(target)
  const rows = new Map<string, number>()
  const proxy = createServer(async (asked, answer) => {
    const body = await buffer(asked)
    const sql = `${new URL(asked.url ?? '/', target).searchParams.get('query') ?? ''} ${body.toString('latin1', 0, 4000)}`
    const what = /INSERT INTO \w+|FROM \w+/.exec(sql)?.[0] ?? 'other'
    const options = { hostname, port, path: asked.url, method: asked.method, headers: asked.headers }
    const forwarded = request(options, (answered: IncomingMessage) => {
      const summary = answered.headers['x-clickhouse-summary']
      const read = typeof summary === 'string' ? Number(JSON.parse(summary).read_rows) : 0
      if (read > 0) rows.set(what, (rows.get(what) ?? 0) + read)
      answer.writeHead(answered.statusCode ?? 502, answered.headers)
      answered.pipe(answer)
    })
    forwarded.on('error', () => answer.destroy())
    answer.on('close', () => forwarded.destroy())
    forwarded.end(body)
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  t.teardown(() => {
    proxy.close()
    proxy.closeAllConnections()
  })
  const { port: own } = proxy.address() as AddressInfo
  return { url: `http://${username}:${password}@127.0.0.1:${own}`, rows }
}
