import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { openClickHouseServer } from '@gamenet/engines'
import { openKafkaLog } from '@gamenet/engines/log'
import type { KafkaBroker, SharedKafka } from '@gamenet/engines/testing'
import { encodeEvent, instantOf, networkCountTopic, OnlineUsers } from '@gamenet/schemas'
import type { Test } from 'tap'
import { listGaps } from '../../src/operate/gap/operation.js'
import { rebuild } from '../../src/operate/rebuild/operation.js'
import { scrape } from '../../src/operate/scrape/operation.js'
import { type OpenLog, openLog } from '../../src/stores/log.js'
import {
  type Environment,
  gamenet,
  gamenetJson,
  type Opened,
  openGamenet,
  operationsAt,
  type Running
} from './gamenet.js'
import { startUpstream, type Upstream } from './upstream.js'

/* Proofs that need a real Kafka, or several processes on it. */

const LOOK_MS = 100
const TITLE = '4d530064'
const T0 = Date.UTC(2015, 5, 1)
const HOUR_MS = 3_600_000

/** An upstream network, and the variables of a service that reads it into separate topics. */
export async function surroundings(
  t: Test,
  kafka: SharedKafka,
  topicPrefix: string
): Promise<{ upstream: Upstream; environment: Environment }> {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const environment: Environment = {
    KAFKA_BROKERS: kafka.address,
    KAFKA_TOPIC_PREFIX: topicPrefix,
    KAFKA_PARTITIONS: '3',
    UPSTREAM_URL: upstream.url,
    SCRAPE_NETWORK_SECONDS: '0',
    SCRAPE_GAMES_SECONDS: '0'
  }
  return { upstream, environment }
}

/** Opens a log with another consumer group than the service. */
export async function logOfOtherProcess(t: Test, kafka: SharedKafka, environment: Environment): Promise<OpenLog> {
  const log = await openLog(
    {
      engine: 'kafka',
      brokers: [kafka.address],
      topicPrefix: environment.KAFKA_TOPIC_PREFIX ?? '',
      partitions: Number(environment.KAFKA_PARTITIONS),
      replicationFactor: 1,
      epoch: 1
    },
    'test',
    { group: 'second' }
  )
  t.teardown(() => log.close())
  return log
}

/**
 * Appends and reads through one log before the broker is killed. Returns the function that continues when the broker runs
 * again: no acknowledged message is lost, and reading resumes.
 */
export async function provesReadingResumes(t: Test, kafka: KafkaBroker): Promise<() => Promise<void>> {
  const log = openKafkaLog({
    brokers: [kafka.address],
    clientId: 'test',
    groupId: 'outage',
    epoch: 1,
    topicPrefix: 'outage.',
    partitions: 1,
    replicationFactor: 1
  })
  t.teardown(() => log.close())
  await log.ensureTopics(['thing'])
  const values = Array.from({ length: 100 }, (_, n) => `${n}`)
  const append = (part: readonly string[]) =>
    log.append(
      'thing',
      part.map((value) => ({ key: 'k', headers: {}, value }))
    )
  await append(values.slice(0, 50))
  const read: string[] = []
  const enough = new AbortController()
  let half = (): void => undefined
  const isHalfRead = new Promise<void>((resolve) => {
    half = resolve
  })
  const reading = log.consume({
    topics: ['thing'],
    startAt: async () => read.length,
    deliver: async ({ records }) => {
      read.push(...records.map(({ value }) => String(value)))
      if (read.length === 50) half()
      if (read.length >= values.length) enough.abort()
    },
    signal: enough.signal
  })
  await Promise.race([isHalfRead, reading])
  return async () => {
    await append(values.slice(50))
    await reading
    t.same(read, values, 'a broker that was killed has all that it answered, and reading went on')
  }
}

/**
 * While a service (or a projector) is stopped, Kafka loses events that are not loaded yet; returns its successor, for
 * which an operator accepts the gap. Without `apiUrl` it also serves the API.
 */
export async function provesGap(
  t: Test,
  world: {
    readonly kafka: SharedKafka
    readonly environment: Environment
    readonly role: 'all' | 'projector'
    readonly apiUrl?: string
  }
): Promise<Opened> {
  const { kafka, environment } = world
  const topic = networkCountTopic.name
  const log = await logOfOtherProcess(t, kafka, environment)
  const counts = Array.from({ length: 3 }, (_, n) =>
    encodeEvent(networkCountTopic, { observedAt: instantOf(T0 + n * HOUR_MS), online: 31 + n }, { source: '/test' })
  )
  await log.append(topic, counts)
  const events = await readAll(log, [topic])
  const last = events.at(-1)
  const lost = events.filter(({ partition, value }) => partition === last?.partition && /"online":3[12]/.test(value))
  if (last === undefined || lost.length !== 2) throw new Error('three counts of one partition were to stand in the log')
  const { partition, offset } = last
  await kafka.deleteRecords(`${environment.KAFKA_TOPIC_PREFIX}${topic}`, { partition, offset })

  const service = await openGamenet(t, environment, world.role)
  const reach = { OPERATOR_URL: service.operatorUrl }
  const operations = operationsAt(service.operatorUrl)
  while ((await operations.run(listGaps, {})).open.length === 0) await pause(LOOK_MS)
  const listed = await gamenet(reach, ['gap', 'list'])
  t.match(listed, { code: 0, stdout: /^Stalled: / })
  t.match(listed.stdout, `${offset - 2}`, 'it says from where on')
  t.match(await gamenet(reach, ['gap', 'accept', 'network-cuont']), {
    code: 2,
    stderr: /no topic "network-cuont"; there are/
  })
  const nothing = await gamenet(reach, ['gap', 'accept', 'scrape'])
  t.match(nothing, { code: 0, stdout: 'Nothing of scrape is missing; nothing was changed.\n' })
  t.match(await gamenet(reach, ['gap', 'accept', topic]), {
    code: 0,
    stdout: `Loading of ${topic}, epoch 1, partition ${partition} continues at ${offset}; offsets ${offset - 2} to ${offset - 1} stay missing.\n`
  })
  t.match(await gamenetJson(reach, ['status', '--wait', '180']), { wait: { caughtUp: true }, stalled: [] })
  t.match(await gamenetJson(reach, ['gap', 'list']), {
    open: [],
    accepted: [{ topic, partition, first: offset - 2, next: offset }]
  })
  const day = `from=${instantOf(T0)}&to=${instantOf(T0 + 24 * HOUR_MS)}`
  const apiUrl = world.apiUrl ?? service.apiUrl
  t.match(await (await fetch(`${apiUrl}/api/network-stats/online-24h?${day}`)).json(), [{ online_count: 33 }])
  return service
}

/** Two processes scrape the same pages at once: duplicates have one id, and a change of a board is published once. */
export async function provesTwoIngests(
  t: Test,
  world: { upstream: Upstream; log: OpenLog; operatorUrls: readonly [string, string]; apiUrl: string }
): Promise<void> {
  const { upstream, log, operatorUrls, apiUrl } = world
  const changes = async (): Promise<unknown[]> =>
    (await (await fetch(`${apiUrl}/api/leaderboard-changes`)).json()) as unknown[]
  const page = (score: string): void => {
    const game = { titleId: TITLE, name: 'Halo 2', subtitle: '', online: 40, lobbies: null, hasBoards: true }
    upstream.show({ registered: 21_345, online: 88, titles: [game] })
    upstream.showGame(TITLE, {
      lobbies: [{ host: 'ann', players: 3, most: 16 }],
      boards: [{ leaderboardId: 9, name: 'Kills', entries: [{ rank: 1, name: 'ann', score }] }]
    })
  }
  page('7')
  await operationsAt(operatorUrls[0]).run(scrape, { source: 'all' })
  await gamenetJson({ OPERATOR_URL: operatorUrls[0] }, ['status', '--wait', '180'])
  const before = await changes()
  page('8')
  const runs = await Promise.all(operatorUrls.map((url) => operationsAt(url).run(scrape, { source: 'all' })))
  t.ok(runs.flat().some(({ source, published }) => source === 'boards' && published > 0))
  t.match(await gamenetJson({ OPERATOR_URL: operatorUrls[0] }, ['status', '--wait', '180']), {
    wait: { caughtUp: true }
  })
  t.equal((await changes()).length, before.length + 1, 'the one change of the board')
  const valueById = new Map<string, string>()
  const topics = ['network-count', 'title-count', 'title', 'match-list', 'presence', 'leaderboard-entry']
  for (const { topic, id, value } of await readAll(log, topics)) {
    const known = valueById.get(id) ?? value
    if (topic === 'leaderboard-entry' && valueById.has(id)) t.fail(`${id} was published twice`)
    if (known !== value) t.fail(`${id} is published with ${known} and with ${value}`)
    valueById.set(id, value)
  }
}

/**
 * Kills the projector that has begun a rebuild; the other one fills it. Then swaps and rolls back while two processes answer
 * from a table and its rollup: each answer is entirely from before or from after the swap.
 */
export async function provesRebuild(
  t: Test,
  world: {
    readonly clickhouse: string
    readonly directory: string
    readonly ingest: string
    readonly owner: Running
    readonly other: Pick<Running, 'operatorUrl'>
    readonly apiUrls: readonly string[]
    /** Between two answers. */
    readonly pauseMs: number
  }
): Promise<void> {
  const { apiUrls, directory, owner, other } = world
  const halfHours = Array.from({ length: 8 }, (_, n) => `${TITLE},${instantOf(T0 + (n * HOUR_MS) / 2)},${7 + n}`)
  await writeFile(join(directory, 'counts.csv'), ['titleId,observedAt,online', ...halfHours, ''].join('\n'))
  await gamenetJson({ OPERATOR_URL: world.ingest }, ['import', 'title-count', join(directory, 'counts.csv')])
  await spoil(t, world.clickhouse)
  const [old, right] = ['4242,4242,4242,4242', '8,10,12,14']

  await operationsAt(owner.operatorUrl).run(rebuild.start, { projection: 'title-count' })
  await owner.kill()
  const operations = operationsAt(other.operatorUrl)
  const reach = { OPERATOR_URL: other.operatorUrl }
  for (let state = ''; state !== 'filled'; await pause(LOOK_MS)) {
    state = (await operations.run(rebuild.list, {}))[0]?.state ?? ''
    if (state !== 'filling' && state !== 'filled') throw new Error(`the rebuild is ${state}`)
  }
  t.equal((await gamenet(reach, ['rebuild', 'verify', 'title-count'])).code, 1, 'the tables that serve were spoilt')

  const seen = apiUrls.map((): string[] => [])
  let isOn = true
  let questions = 0
  const ask = async (n: number): Promise<void> => {
    while (isOn) {
      // Each query is new, so its answer is read from the tables.
      questions += 1
      const window = `from=${instantOf(T0 + HOUR_MS / 2 - questions)}&to=${instantOf(T0 + 4 * HOUR_MS - 1)}`
      const answer = await fetch(`${apiUrls[n]}/api/title/${TITLE}/online-users/history?${window}&resolution=3600`)
      const text = await answer.text()
      const points = answer.status === 200 ? (JSON.parse(text) as { online_count: number }[]) : []
      const shown = answer.status === 200 ? points.map(({ online_count }) => online_count).join() : text
      if (seen[n]?.at(-1) !== shown) seen[n]?.push(shown)
      if (world.pauseMs > 0) await pause(world.pauseMs)
    }
  }
  const asking = apiUrls.map((_, n) => ask(n))
  try {
    while (seen.some((each) => each.length < 1)) await pause(LOOK_MS)
    await gamenetJson(reach, ['rebuild', 'swap', 'title-count', '--accept-differences'])
    while (seen.some((each) => each.length < 2)) await pause(LOOK_MS)
    await gamenetJson(reach, ['rebuild', 'rollback', 'title-count'])
    while (seen.some((each) => each.length < 3)) await pause(LOOK_MS)
  } finally {
    isOn = false
    await Promise.all(asking)
  }
  for (const each of seen) t.same(each, [old, right, old], `of ${questions} answers none was a mixture`)

  await provesReload(t, other)
}

/** A rebuild reads a topic from Kafka again; its partitions are divided among several threads. */
export async function provesReload(t: Test, { operatorUrl }: Pick<Running, 'operatorUrl'>): Promise<void> {
  const reach = { OPERATOR_URL: operatorUrl }
  await gamenetJson(reach, ['rebuild', 'start', 'title', '--from-log', '--follow'])
  t.match(await gamenetJson(reach, ['rebuild', 'verify', 'title']), {
    isEqual: true,
    tables: [{ table: 'event_title' }]
  })
  await gamenetJson(reach, ['rebuild', 'cancel', 'title'])
}

const SWAPS = 26
const REBUILT = ['title-latest', 'title-count', 'network-count']
const READERS_PER_API = 2

/**
 * Swaps and rollbacks of rebuilt tables, by either projector, during continuous requests and new counts: answers of one
 * path with one ETag have one body in all processes, no reader gets an older count than before, and no answer fails or
 * is computed twice.
 */
export async function provesSwaps(
  t: Test,
  world: {
    readonly upstream: Upstream
    readonly ingest: string
    readonly projectors: readonly string[]
    readonly apis: readonly Pick<Running, 'apiUrl' | 'operatorUrl'>[]
  }
): Promise<void> {
  const reach = { OPERATOR_URL: world.ingest }
  let counted = 100
  const count = async () => {
    counted += 1
    const titles = [{ titleId: TITLE, name: 'Halo 2', subtitle: '', online: counted, lobbies: null }]
    world.upstream.show({ registered: 21_345, online: counted, titles })
    await gamenetJson(reach, ['scrape', 'network'])
  }
  await count()
  await gamenetJson(reach, ['status', '--wait', '180'])
  const readers = swapReaders(world.apis.map(({ apiUrl }) => apiUrl ?? ''))
  const late: number[] = []
  const slowest = { between: [] as number[], around: [] as number[] }
  try {
    for (let n = 0; n < SWAPS; n += 2) {
      const projection = REBUILT[(n / 2) % REBUILT.length] ?? ''
      const [one, other] = [n / 2, n / 2 + 1].map((each) => operationsAt(world.projectors[each % 2] ?? ''))
      if (one === undefined || other === undefined) throw new Error('there are two projectors')
      await one.run(rebuild.start, { projection, isFromLog: n % 4 === 0 })
      while ((await one.run(rebuild.list, {}))[0]?.state !== 'filled') await pause(LOOK_MS)
      // A new count changes the same answers as a swap.
      readers.slowest()
      await count()
      await readers.untilAllShow(counted)
      slowest.between.push(readers.slowest())
      t.equal((await other.run(rebuild.verify, { projection })).isEqual, true)
      for (const move of [
        () => one.run(rebuild.swap, { projection, acceptDifferences: false }),
        () => other.run(rebuild.rollback, { projection })
      ]) {
        readers.slowest()
        const [{ lateMs }] = await Promise.all([move(), count()])
        late.push(lateMs)
        slowest.around.push(readers.slowest())
      }
    }
    await gamenetJson(reach, ['status', '--wait', '180'])
    await readers.untilAllShow(counted)
  } finally {
    await readers.stop()
  }
  t.same(readers.faults, [])
  for (const { operatorUrl } of world.apis) {
    const metrics = await (await fetch(`${operatorUrl}/metrics`)).text()
    t.match(metrics, /^gamenet_answer_repeats_total 0$/m, 'no answer is computed twice')
  }
  const most = (values: readonly number[]) => Math.round(Math.max(...values))
  const middle = (values: readonly number[]) => Math.round(values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0)
  t.comment(
    `${SWAPS} swaps, ${readers.answers()} answers of ${world.apis.length * READERS_PER_API} readers, ${readers.identities()} ETags; data late by ${middle(late)} ms in the middle, by at most ${most(late)} ms; slowest answer around each swap ${middle(slowest.around)} ms in the middle, at most ${most(slowest.around)} ms; around a scrape alone ${middle(slowest.between)} and ${most(slowest.between)} ms`
  )
}

/** Readers with continuous requests that compare the answers. */
function swapReaders(apiUrls: readonly string[]) {
  const paths = [
    '/api/online-users',
    '/api/games',
    `/api/title/${TITLE}/online-users/history`,
    '/api/network-stats/online-24h'
  ]
  const bodies = new Map<string, string>()
  const faults: string[] = []
  const shown = new Map<number, number>()
  let [isOn, answers, slowestMs] = [true, 0, 0]
  const read = async (url: string, reader: number) => {
    for (let n = 0; isOn; n += 1) {
      const path = paths[n % paths.length] ?? ''
      const begun = performance.now()
      const answer = await fetch(url + path)
      const body = await answer.text()
      slowestMs = Math.max(slowestMs, performance.now() - begun)
      answers += 1
      if (answer.status !== 200) faults.push(`${path}: ${answer.status} ${body}`)
      const identity = `${path} ${answer.headers.get('etag')}`
      const before = bodies.get(identity) ?? body
      bodies.set(identity, body)
      if (before !== body) faults.push(`${identity} is ${before} and ${body}`)
      if (path !== '/api/online-users' || answer.status !== 200) continue
      const online = OnlineUsers.parse(JSON.parse(body))['Halo 2']?.online ?? 0
      if (online < (shown.get(reader) ?? 0)) faults.push(`reader ${reader} gets ${online} after ${shown.get(reader)}`)
      shown.set(reader, online)
    }
  }
  const urls = apiUrls.flatMap((url) => Array.from({ length: READERS_PER_API }, () => url))
  const reading = urls.map(read)
  return {
    faults,
    answers: () => answers,
    identities: () => bodies.size,
    /** The slowest answer since the last call, in ms. */
    slowest: () => {
      const most = slowestMs
      slowestMs = 0
      return most
    },
    untilAllShow: async (online: number) => {
      while (urls.some((_, reader) => shown.get(reader) !== online)) await pause(LOOK_MS)
    },
    stop: async () => {
      isOn = false
      await Promise.all(reading)
    }
  }
}

/**
 * Inserts a count without an event into the table and its rollup: the same value, because another projector may compute
 * the rollup again.
 */
async function spoil(t: Test, url: string): Promise<void> {
  const tables = openClickHouseServer({ url })
  t.teardown(() => tables.close())
  const known = { title: TITLE, from: T0 / 1000, to: (T0 + 4 * HOUR_MS) / 1000 }
  await tables.control.execute(
    `INSERT INTO title_count__0 (title_id, ts, online, sessions, lobby_players, position)
     SELECT c.title_id, c.ts, 4242, c.sessions, c.lobby_players, 18446744073709551615 FROM title_count AS c FINAL
     WHERE c.title_id = {title: String} AND c.ts >= fromUnixTimestamp({from: UInt32}) AND c.ts < fromUnixTimestamp({to: UInt32})`,
    known
  )
  await tables.control.execute(
    `INSERT INTO title_count_hour__0 (title_id, hour, min, max, max_at, sum, samples, position)
     SELECT h.title_id, h.hour, h.min, 4242, h.max_at, h.sum, h.samples, 18446744073709551615 FROM title_count_hour AS h FINAL
     WHERE h.title_id = {title: String} AND h.hour >= fromUnixTimestamp({from: UInt32}) AND h.hour < fromUnixTimestamp({to: UInt32})`,
    known
  )
}

type Event = {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  /** Source and id together identify an event: two pages of one second may show the same title. */
  readonly id: string
  readonly value: string
}

/** Returns all current messages of topics, by partition in order. One reader, because each joins its group first. */
async function readAll(log: OpenLog, topics: readonly string[]): Promise<Event[]> {
  const extents = (await Promise.all(topics.map((topic) => log.extents(topic)))).flat()
  const wanted = extents.reduce((sum, { first, next }) => sum + next - first, 0)
  const events: Event[] = []
  const enough = new AbortController()
  if (wanted === 0) return events
  await log.consume({
    topics,
    startAt: async () => 0,
    deliver: async ({ topic, partition, records }) => {
      for (const { offset, headers, value } of records)
        events.push({ topic, partition, offset, id: `${headers.ce_source} ${headers.ce_id}`, value: String(value) })
      if (events.length >= wanted) enough.abort()
    },
    signal: enough.signal
  })
  return events.sort((a, b) => a.partition - b.partition || a.offset - b.offset)
}
