import type { SharedKafka } from '@gamenet/engines/testing'
import { until } from '@gamenet/engines/testing'
import { encodeEvent, instantOf, networkCountTopic } from '@gamenet/schemas'
import type { Test } from 'tap'
import { listGaps } from '../../src/operate/gap/operation.js'
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
const _TITLE = '4d530064'
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
async function logOfOtherProcess(t: Test, kafka: SharedKafka, environment: Environment): Promise<OpenLog> {
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
 * While a projector is stopped, Kafka loses events that are not loaded yet; returns its successor, for which an operator
 * accepts the gap.
 */
export async function provesGap(
  t: Test,
  world: { readonly kafka: SharedKafka; readonly environment: Environment; readonly apiUrl: string }
): Promise<Opened> {
  const { kafka, environment, apiUrl } = world
  const topic = networkCountTopic.name
  const log = await logOfOtherProcess(t, kafka, environment)
  const counts = Array.from({ length: 3 }, (_, n) =>
    encodeEvent(networkCountTopic, { observedAt: instantOf(T0 + n * HOUR_MS), online: 31 + n }, { source: '/test' })
  )
  await log.append(topic, counts)
  const events = await readAll(log, topic)
  const last = events.at(-1)
  const lost = events.filter(({ partition, value }) => partition === last?.partition && /"online":3[12]/.test(value))
  if (last === undefined || lost.length !== 2) throw new Error('three counts of one partition were to stand in the log')
  const { partition, offset } = last
  await kafka.deleteRecords(`${environment.KAFKA_TOPIC_PREFIX}${topic}`, { partition, offset })

  const service = await openGamenet(t, environment, 'projector')
  const reach = { OPERATOR_URL: service.operatorUrl }
  const operations = operationsAt(service.operatorUrl)
  await until(async () => (await operations.run(listGaps, {})).open.length > 0, LOOK_MS)
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
  t.match(await (await fetch(`${apiUrl}/api/network-stats/online-24h?${day}`)).json(), [{ online_count: 33 }])
  return service
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

type Event = { readonly partition: number; readonly offset: number; readonly value: string }

/** Returns all current messages of a topic, by partition in order. */
async function readAll(log: OpenLog, topic: string): Promise<Event[]> {
  const wanted = (await log.extents(topic)).reduce((sum, { first, next }) => sum + next - first, 0)
  const events: Event[] = []
  const enough = new AbortController()
  if (wanted === 0) return events
  await log.consume({
    topics: [topic],
    startAt: async () => 0,
    deliver: async ({ partition, records }) => {
      for (const { offset, value } of records) events.push({ partition, offset, value: String(value) })
      if (events.length >= wanted) enough.abort()
    },
    signal: enough.signal
  })
  return events.sort((a, b) => a.partition - b.partition || a.offset - b.offset)
}
