import { randomInt } from 'node:crypto'
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { openChdb } from '@gamenet/engines'
import { freePort } from '@gamenet/engines/testing'
import { type Test, test } from 'tap'
import { boardRowsAt } from '../demo/network/boards.js'
import { readCatalogue } from '../demo/network/samples.js'
import { startDemoNetwork } from '../demo/network/server.js'
import { createWorld } from '../demo/network/world.js'
import { scrapedOften, scrapeToEnd } from '../proof/torture/embedded.js'
import { startRealEngines } from '../proof/torture/engine-actors.js'
import { type Facts, openFacts } from '../proof/torture/facts.js'
import { rebuilder } from '../proof/torture/rebuilder.js'
import { Role } from '../proof/torture/role.js'
import { startCuttingProxy } from '../proof/torture/stream/cutting-proxy.js'
import { Identities } from '../proof/torture/stream/identities.js'
import { type Filter, RestlessListener } from '../proof/torture/stream/restless-listener.js'
import { deviationOf, feedOfTables } from '../proof/torture/stream/tables-feed.js'
import { startSteppingUpstream } from '../proof/torture/upstream.js'
import { chance, titleIds, wholeChance } from '../proof/torture/world.js'
import { importFile } from '../src/operate/import/operation.js'
import { caughtUp } from '../src/operate/status/caught-up.js'
import { type Environment, operationsAt } from './service/gamenet.js'

/* The short form is api/test/stream.test.ts. */

const LISTENERS = Number(process.env.STREAM_LISTENERS ?? 1000)
const DISCONNECTIONS = Number(process.env.STREAM_DISCONNECTIONS ?? 100)
/** Parts of the disconnections, each with a separate service; those in CAMPAIGN_DIRECTORY are not repeated. */
const ROUNDS = Number(process.env.STREAM_ROUNDS ?? 4)
/** The only round to carry out, such as `kafka-2`; all unless given. */
const ROUND = process.env.STREAM_ROUND
/** Listeners of the demo network, which moves a minute in a second. */
const DEMO_LISTENERS = Math.min(200, LISTENERS)
const DEMO_SPEED = 60
const DEMO_TITLES = 6
/** Kills or stops of a process per round, spread over the disconnections: a start takes half a minute on a busy machine. */
const STRIKES = 12
const STEP_MS = 300
const IMPORT_MS = 5000
const SENTENCES = 5
/** Listeners that read what is left at the same time. */
const FINISHING = 250
const CAUGHT_UP_SECONDS_MAX = 300
const WITHOUT_SCRAPES = Object.fromEntries(Object.keys(scrapedOften()).map((name) => [name, '0']))

type Service = {
  readonly apiPorts: readonly number[]
  /** Of a process that scrapes and imports. */
  readonly operatorUrl: string
  readonly projectorUrl: string
  readonly roles: readonly Role[]
  /** From now on nothing is recorded. */
  endScrapes(): Promise<void>
  /** Ends everything; returns the directory of the tables. */
  stop(): Promise<string>
}

type Place = {
  /** Removed at the end. */
  readonly directory: string
  /** The output of all processes, kept for the diagnosis. */
  readonly log: string
}

/** What is scraped, and what listeners filter by. */
type Network = {
  readonly url: string
  readonly titleIds: readonly string[]
  readonly players: readonly string[]
  /** From now on everything stays as it is. */
  freeze(): void
  close(): Promise<void>
}

type Campaign = {
  readonly open: (t: Test, environment: Environment, place: Place) => Promise<Service>
  readonly scraped: (facts: Facts) => Promise<Network>
  readonly listeners: number
}

const campaigns: Readonly<Record<string, Campaign & { readonly rounds: number }>> = {
  demo: { open: embedded, scraped: demoNetwork, listeners: DEMO_LISTENERS, rounds: 1 },
  embedded: { open: embedded, scraped: steppingNetwork, listeners: LISTENERS, rounds: ROUNDS },
  kafka: { open: onKafka, scraped: steppingNetwork, listeners: LISTENERS, rounds: ROUNDS }
}

for (const [name, { rounds, ...campaign }] of Object.entries(campaigns)) {
  for (let round = 1; round <= rounds; round += 1) {
    if (ROUND !== undefined && ROUND !== `${name}-${round}`) continue
    test(`${name}, round ${round} of ${rounds}: listeners miss nothing and receive nothing twice`, (t) =>
      once(t, `${name}-${round}`, (log) => follows(t, campaign, log)))
  }
}

async function steppingNetwork(facts: Facts): Promise<Network> {
  const upstream = await startSteppingUpstream(facts)
  return { ...upstream, titleIds, players: Array.from({ length: 16 }, (_, n) => `player ${n}`) }
}

async function demoNetwork({ seed }: Facts): Promise<Network> {
  const world = createWorld(seed, { catalogue: readCatalogue().slice(0, DEMO_TITLES) })
  let frozenMs: number | undefined
  const network = await startDemoNetwork({ seed, world, speed: DEMO_SPEED, now: () => frozenMs ?? Date.now() })
  const boards = world.titles.flatMap((title) => world.boardsOf(title))
  return {
    url: network.url,
    titleIds: world.titles.map(({ titleId }) => titleId),
    players: boards.flatMap((board) => boardRowsAt(seed, board, Date.now()).map(({ playerName }) => playerName)),
    freeze() {
      frozenMs = Date.now()
    },
    close: () => network.close()
  }
}

/** Carries a round out, unless its figures are there already. */
async function once(t: Test, name: string, work: (log: string) => Promise<object>): Promise<void> {
  const file = join(process.env.CAMPAIGN_DIRECTORY ?? t.testdir({}), name)
  if (existsSync(`${file}.json`)) {
    t.pass(`done in an earlier run: ${readFileSync(`${file}.json`, 'utf8')}`)
    return
  }
  const figures = JSON.stringify(await work(`${file}.log`))
  t.comment(`${name}: ${figures}`)
  if (t.passing()) writeFileSync(`${file}.json`, figures)
}

async function follows(t: Test, { open, scraped, listeners: count }: Campaign, log: string): Promise<object> {
  // The socket of PostgreSQL has a path of at most 107 bytes.
  const directory = await mkdtemp(join(tmpdir(), 'gamenet-stream-'))
  // PostgreSQL runs as another user.
  await chmod(directory, 0o755)
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  const seed = Number(process.env.STREAM_SEED ?? randomInt(2 ** 31))
  t.comment(`STREAM_SEED=${seed}`)
  const facts = openFacts(directory, seed, open.name)
  const network = await scraped(facts)
  t.teardown(() => network.close())
  const service = await open(t, { ...scrapedOften(), UPSTREAM_URL: network.url }, { directory, log })
  const proxies = await Promise.all(service.apiPorts.map((port, n) => startCuttingProxy(port, seed + n)))
  t.teardown(() => {
    for (const proxy of proxies) proxy.close()
  })
  await Promise.all(service.roles.map((role) => role.start()))
  const identities = new Identities()
  const listeners = Array.from(
    { length: count },
    (_, n) => new RestlessListener(filterOf(network, seed, n), identities, seed, n)
  )
  const ports = [...service.apiPorts, ...proxies.map(({ port }) => port)]
  const each = Math.ceil(DISCONNECTIONS / ROUNDS)
  let isOver = false
  const disconnections = () => sum(listeners.map(({ disconnections }) => disconnections))
  const progress = () => (isOver ? 1 : disconnections() / (count * each))
  // A failure is reported when the disturbances have ended.
  const disturbed = disturb(service, network, facts, progress)
  const followed = await Promise.allSettled(listeners.map((listener) => listener.run(ports, each)))
  isOver = true
  await disturbed
  const failed = followed.filter((result) => result.status === 'rejected')
  t.same(failed.map(({ reason }) => String(reason)).slice(0, SENTENCES), [], 'no cursor is refused')
  network.freeze()
  await scrapeToEnd(service)
  await service.endScrapes()
  const { behind } = await operationsAt(service.projectorUrl).run(caughtUp, { seconds: CAUGHT_UP_SECONDS_MAX })
  t.same(behind, [], 'everything is readable')
  const unfinished = listeners.entries()
  const finish = async (): Promise<void> => {
    for (const [n, listener] of unfinished) await listener.finish(ports[n % service.apiPorts.length] ?? 0)
  }
  await Promise.all(Array.from({ length: FINISHING }, finish))
  const tables = await openChdb({ path: await service.stop() })
  t.teardown(() => tables.close())
  const feed = (await feedOfTables(tables)).map((identity) => identities.number(identity))
  const deviations = listeners.flatMap(({ journal, abandoned, filter }) => [
    deviationOf(journal, feed, filter, identities),
    ...abandoned.map((each) => deviationOf(each, feed, filter, identities, true))
  ])
  const figures = {
    seed,
    listeners: count,
    disconnections: disconnections(),
    events: feed.length,
    received: sum(listeners.flatMap(({ journal, abandoned }) => [journal, ...abandoned].map(({ length }) => length))),
    missed: sum(deviations.map(({ missed }) => missed)),
    duplicates: sum(deviations.map(({ duplicates }) => duplicates)),
    slowestPollMs: Math.max(...listeners.map(({ slowestPollMs }) => slowestPollMs)),
    ...facts.counts
  }
  t.ok(figures.events > 0)
  t.equal(figures.missed, 0, 'missed')
  t.equal(figures.duplicates, 0, 'received twice')
  t.same(deviations.flatMap(({ sentence }) => sentence ?? []).slice(0, SENTENCES), [], 'in order')
  return figures
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

async function embedded(t: Test, environment: Environment, { directory, log }: Place): Promise<Service> {
  const [port, operatorPort] = await Promise.all([freePort(), freePort()])
  const data = join(directory, 'data')
  const more = { ...environment, DATA_DIR: data, PORT: `${port}`, OPERATOR_PORT: `${operatorPort}` }
  const service = roleOf(t, log, 'start', more)
  const quiet = roleOf(t, log, 'start', { ...more, ...WITHOUT_SCRAPES, SCRAPE_REQUESTS_PER_SECOND: '1000' })
  const operatorUrl = `http://127.0.0.1:${operatorPort}`
  return {
    apiPorts: [port],
    operatorUrl,
    projectorUrl: operatorUrl,
    roles: [service],
    async endScrapes() {
      await service.stop()
      await quiet.start()
    },
    async stop() {
      await quiet.stop()
      return join(data, 'tables')
    }
  }
}

async function onKafka(t: Test, environment: Environment, { directory, log }: Place): Promise<Service> {
  const engines = await startRealEngines(join(directory, 'engines'))
  t.teardown(() => engines.stop())
  const [api = 0, otherApi = 0, ingest = 0, projector = 0] = await Promise.all(Array.from({ length: 4 }, freePort))
  const role = (name: string, command: string, ports: Environment) =>
    roleOf(t, log, command, {
      ...environment,
      KAFKA_BROKERS: engines.kafka,
      KAFKA_PARTITIONS: '3',
      CLICKHOUSE_URL: engines.clickhouse,
      POSTGRES_URL: engines.postgres,
      DATA_DIR: join(directory, 'data', name),
      ...ports
    })
  const scraping = role('ingest', 'ingest', { OPERATOR_PORT: `${ingest}` })
  const roles = [
    scraping,
    role('projector', 'projector', { OPERATOR_PORT: `${projector}` }),
    role('api', 'api', { PORT: `${api}` }),
    role('other-api', 'api', { PORT: `${otherApi}` })
  ]
  return {
    apiPorts: [api, otherApi],
    operatorUrl: `http://127.0.0.1:${ingest}`,
    projectorUrl: `http://127.0.0.1:${projector}`,
    roles,
    endScrapes: () => scraping.stop(),
    async stop() {
      for (const each of roles) if (each !== scraping) await each.stop()
      await engines.stopClickHouse()
      return engines.tables
    }
  }
}

function roleOf(t: Test, log: string, command: string, environment: Environment): Role {
  const role = new Role(command, command, environment, {
    written: (text) => appendFileSync(log, text),
    fault: (sentence) => t.fail(sentence)
  })
  t.teardown(() => role.kill())
  return role
}

function filterOf({ titleIds, players }: Network, seed: number, listener: number): Filter {
  const draw = (number: number) => chance(seed, listener, number)
  const some = (kinds: readonly string[]) => {
    const chosen = kinds.filter((_, n) => draw(10 + n) < 0.5)
    return chosen.length === 0 ? kinds.slice(0, 1) : chosen
  }
  const titleId = titleIds[wholeChance(titleIds.length, seed, listener, 1)] ?? ''
  if (draw(2) < 0.3) return { titleId, kinds: some(['title-count', 'match', 'change', 'record']) }
  if (draw(2) < 0.6) return { titleId, leaderboardId: 1 + Math.floor(draw(3) * 2), kinds: some(['change', 'record']) }
  if (draw(2) < 0.8)
    return { player: players[Math.floor(draw(3) * players.length)] ?? '', kinds: some(['change', 'record']) }
  if (draw(2) < 0.95) return { kinds: some(['count', 'title-count', 'match', 'change', 'record', 'achievement']) }
  return {}
}

/** Kills and stops processes, rebuilds, swaps and rolls back, and imports old counts, until the progress is 1 and everything is up. */
async function disturb(service: Service, network: Network, facts: Facts, progress: () => number): Promise<void> {
  const { seed } = facts
  const isOver = () => progress() === 1
  const strikes = async (): Promise<void> => {
    for (let n = 0; n < STRIKES; n += 1) {
      while (progress() < (n + chance(seed, n, 401)) / STRIKES) await pause(STEP_MS)
      if (isOver()) return
      const role = service.roles[wholeChance(service.roles.length, seed, n, 402)]
      // Half of them are asked to stop first, and some of these have ended when they are killed.
      const isAsked = chance(seed, n, 403) < 0.5
      await role?.strike({ downMs: 100, afterMs: isAsked ? 2000 * chance(seed, n, 404) : undefined })
      facts.add({ fact: 'struck', kind: 'kill', who: 'service', when: isAsked ? 'shutdown' : 'any' })
    }
  }
  const repeat = async (ms: number, work: (round: number) => Promise<unknown>): Promise<void> => {
    // What the kill of a process interrupts is tried again.
    for (let round = 0; !isOver(); round += 1) {
      await work(round).catch(() => undefined)
      await pause(ms)
    }
  }
  const projectors = [operationsAt(service.projectorUrl)]
  const { next } = rebuilder({ projectors, facts, rebuilt: [], say: () => undefined })
  await Promise.all([
    strikes(),
    repeat(STEP_MS, next),
    repeat(IMPORT_MS, (round) => importOld(service, network, round))
  ])
  await Promise.all(service.roles.map((role) => role.isUp()))
}

/** Imports counts that are older than all others, for titles of the world: they come at the end of the stream. */
async function importOld({ operatorUrl }: Service, { titleIds }: Network, round: number): Promise<void> {
  const lines = Array.from({ length: 50 }, (_, n) => {
    const titleId = titleIds[n % titleIds.length]
    return `${titleId},${1_262_304_000 + round * 86_400 + n * 60},${n}`
  })
  const text = ['titleId,observedAt,online', ...lines].join('\n')
  const request = { topic: 'title-count', file: `old-${round}.csv`, columns: {}, set: {}, strict: false }
  await operationsAt(operatorUrl).run(importFile, { request, content: bytesOf(text) })
}

async function* bytesOf(text: string): AsyncIterable<Uint8Array> {
  yield Buffer.from(text)
}
