import { deepEqual, equal, ok } from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import { createRequire } from 'node:module'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { type KafkaLog, type KafkaLogOptions, openKafkaLog } from '@gamenet/engines/log'
import { freePort, kafkaBrokerMissing, sharedKafka, until } from '@gamenet/engines/testing'
import { decodeEvent, encodeEvent, isFailure, type StalledPartition, titleCountTopic } from '@gamenet/schemas'
import fc from 'fast-check'
import kafkajs, { type Admin } from 'kafkajs'
import tap, { type Test, test } from 'tap'
import { createReason } from '../src/log/kafka-admin.js'
import { readBatches } from '../src/log/kafka-records.js'
import { patchKafkajs } from '../src/log/kafkajs-patches.js'
import { decodeByKafkajs, type EncodedBatch, encodeBatch, type KafkajsRecord, produce } from './kafka-encoding.js'
import { asAppended, message, messages, readAll, testLog } from './log-contract.js'

const bytes = fc.option(fc.uint8Array({ maxLength: 30 }).map(Buffer.from), { nil: null, freq: 9 })
const headerName = fc.oneof(fc.constantFrom('ce_id', 'ce_type', 'x'), fc.string({ unit: 'binary', maxLength: 4 }))
const header = fc.tuple(
  // kafkajs loses it.
  headerName.filter((name) => name !== '__proto__'),
  fc.oneof(fc.constant(Buffer.from('same')), bytes)
)
const record = fc.record({
  offsetDelta: fc.constantFrom(1, 1, 1, 2, 900),
  timestampDelta: fc.integer(),
  key: bytes,
  value: bytes,
  headers: fc.array(header, { maxLength: 4 })
})
const batch: fc.Arbitrary<EncodedBatch> = fc.record({
  records: fc.array(record, { minLength: 1, maxLength: 6 }).map((records) => {
    let offsetDelta = -1
    return records.map((each) => {
      offsetDelta += each.offsetDelta
      return { ...each, offsetDelta }
    })
  }),
  firstOffset: fc.nat({ max: 2 ** 40 }),
  producerId: fc.integer({ min: -1 }),
  transactional: fc.boolean(),
  isControl: fc.boolean(),
  compression: fc.constantFrom(0, 1)
})

/** A record as kafkajs decoded it, in the form of ours: the last of equal headers counts. */
function asOurs({ offset, timestamp, key, value, headers, isControlRecord, batchContext }: KafkajsRecord) {
  const all = Object.entries(headers).flatMap(([name, of]) => [of].flat().map((bytes) => [name, bytes] as const))
  const { producerId, inTransaction } = batchContext
  return {
    offset: Number(offset),
    recordedAtMs: Number(timestamp),
    key: key?.toString() ?? null,
    value,
    headers: Object.fromEntries(all.flatMap(([name, bytes]) => (bytes === null ? [] : [[name, String(bytes)]]))),
    hasFault: all.some(([, bytes]) => bytes === null),
    isControlRecord,
    batchContext: { producerId, inTransaction },
    damage: undefined
  }
}

void test("batches are read as kafkajs's own decoder reads them", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(batch, { maxLength: 3 }), fc.nat({ max: 200 }), async (batches, cut) => {
      const whole = Buffer.concat(await Promise.all(batches.map(encodeBatch)))
      // kafkajs breaks on fewer bytes.
      const fetched = whole.subarray(0, Math.max(17, whole.length - cut))
      const ours = (await readBatches(fetched)).map(({ fault, ...each }) => ({
        ...each,
        hasFault: fault !== undefined
      }))
      deepEqual(ours, (await decodeByKafkajs(fetched)).map(asOurs))
    }),
    { seed: 1, numRuns: 200 }
  )
})

void test('a batch with a wrong byte ends reading with its offset, after the batches before it', async (t) => {
  await fc.assert(
    fc.asyncProperty(batch, batch, fc.nat(), fc.integer({ min: 1, max: 255 }), async (first, second, where, bits) => {
      const [whole, hurt] = await Promise.all([encodeBatch(first), encodeBatch(second)])
      // The format, the CRC and everything that it covers.
      const at = 16 + (where % (hurt.length - 16))
      hurt[at] = (hurt[at] ?? 0) ^ bits
      const read = await readBatches(Buffer.concat([whole, hurt]))
      equal(read.length, first.records.length + 1)
      ok(t.match(read.at(-1)?.damage, `the batch at offset ${second.firstOffset}: its `))
    }),
    { seed: 1, numRuns: 100 }
  )
})

/** For logs whose broker stays unavailable. */
const IMPATIENT = { retries: 2, patienceMs: 500 }

const missing = await kafkaBrokerMissing()

if (missing !== undefined) {
  void test('the contract of logs on a real Kafka', async (t) => {
    if (process.env.CI === 'true') t.fail(missing)
    else t.pass(`SKIPPED, NOTHING OF KAFKA WAS TESTED: ${missing}`, { skip: missing })
  })
} else {
  const broker = await sharedKafka(tap)

  testLog({
    name: 'Kafka log',
    runs: 5,
    async place(t) {
      const topicPrefix = `${randomUUID()}.`
      const groupId = randomUUID()
      return {
        async open({ partitions, epoch = 1, topics }) {
          const log = openKafkaLog({
            brokers: [broker.address],
            clientId: 'contract',
            groupId,
            epoch,
            topicPrefix,
            partitions,
            replicationFactor: 1
          })
          t.teardown(() => log.close())
          await log.ensureTopics(topics)
          return log
        }
      }
    }
  })

  const openLog = (t: Test, options: Partial<KafkaLogOptions> = {}): KafkaLog => {
    const log = openKafkaLog({
      brokers: [broker.address],
      clientId: 'test',
      groupId: randomUUID(),
      epoch: 1,
      topicPrefix: `${randomUUID()}.`,
      partitions: 1,
      replicationFactor: 1,
      ...options
    })
    t.teardown(() => log.close())
    return log
  }

  const withAdmin = async <Answer>(use: (admin: Admin) => Promise<Answer>): Promise<Answer> => {
    const admin = new kafkajs.Kafka({ brokers: [broker.address], logLevel: kafkajs.logLevel.NOTHING }).admin()
    await admin.connect()
    try {
      return await use(admin)
    } finally {
      await admin.disconnect()
    }
  }
  /** Reads in the background; `until` resolves when what was read so far is enough. */
  const follow = (log: KafkaLog, topics: readonly string[], startAt: (topic: string) => number = () => 0) => {
    const values: string[] = []
    const stalled: StalledPartition[] = []
    const stop = new AbortController()
    let look: () => void = () => {}
    const reading = log.consume({
      topics,
      startAt: async (topic) => startAt(topic),
      deliver: async ({ records }) => {
        values.push(...records.map((record) => asAppended(record).value))
        look()
      },
      onStall: (stall) => {
        stalled.push(stall)
        look()
      },
      signal: stop.signal
    })
    return {
      values,
      stalled,
      async until(isEnough: () => boolean): Promise<void> {
        while (!isEnough()) {
          const changed = new Promise<void>((resolve) => {
            look = resolve
          })
          await Promise.race([changed, reading])
        }
      },
      async stop(): Promise<void> {
        stop.abort()
        await reading
      }
    }
  }

  /** A way to the broker on which a test may do harm. */
  const openProxy = async (t: Test) => {
    const { proxied } = broker
    if (proxied === undefined) throw new Error('there is no listener to go through')
    const proxy = await startProxy(proxied)
    t.teardown(() => proxy.close())
    return proxy
  }

  void test('an append to a missing topic is refused with a sentence', async (t) => {
    await t.rejects(
      openLog(t).append('nothing', messages(1)),
      /refused an append to nothing: .*create the topic first/s
    )
  })

  void test('topics are created with the configured partitions and settings, and by default keep everything', async (t) => {
    const made = async (options: Partial<KafkaLogOptions>) => {
      const topicPrefix = `${randomUUID()}.`
      await openLog(t, { ...options, topicPrefix }).ensureTopics(['shaped'])
      const name = `${topicPrefix}shaped`
      return await withAdmin(async (admin) => {
        const { topics } = await admin.fetchTopicMetadata({ topics: [name] })
        const configNames = ['cleanup.policy', 'compression.type', 'retention.ms', 'segment.bytes']
        const resources = [{ type: kafkajs.ConfigResourceTypes.TOPIC, name, configNames }]
        const entries = (await admin.describeConfigs({ includeSynonyms: false, resources })).resources[0]?.configEntries
        const settings = entries?.map(({ configName, configValue }) => [configName, configValue]) ?? []
        return { partitions: topics[0]?.partitions.length, ...Object.fromEntries(settings) }
      })
    }
    const asAlways = { 'cleanup.policy': 'delete', 'compression.type': 'producer', 'retention.ms': '-1' }
    t.match(await made({}), { partitions: 1, ...asAlways })
    const configEntries = { 'cleanup.policy': 'compact', 'segment.bytes': '1048576' }
    t.match(await made({ partitions: 3, configEntries }), { partitions: 3, ...configEntries, 'retention.ms': '-1' })
    t.match(await made({ configEntries: { 'retention.ms': '86400000' } }), { 'retention.ms': '86400000' })
    await t.rejects(
      made({ configEntries: { 'cleanup.policy': 'forget' } }),
      /the topics .*shaped cannot be created: .*/
    )
  })

  void test('an append larger than a message of the broker is stored in order', async (t) => {
    const log = openLog(t)
    await log.ensureTopics(['long'])
    // Random text: gzip makes little of it smaller.
    const sent = messages(60).map((each) => ({ ...each, key: 'one', value: randomBytes(48_000).toString('base64') }))
    await log.append('long', sent)
    const read = [...(await readAll(log, 'long', 60)).values()].flat()
    t.same(
      read.map(({ value }) => String(value)),
      sent.map(({ value }) => value)
    )
  })

  void test('repeatedly closed connections leave no listeners', async (t) => {
    patchKafkajs()
    const load = createRequire(import.meta.url)
    const Connection = load('kafkajs/src/network/connection')
    const logger = { namespace: () => logger, debug: () => undefined, error: () => undefined }
    const socketFactory = load('kafkajs/src/network/socketFactory')()
    const timeouts = { connectionTimeout: 10_000, requestTimeout: 10_000 }
    const address = { host: '127.0.0.1', port: await freePort() }
    const connection = new Connection({ ...address, ...timeouts, logger, socketFactory })
    await t.rejects(connection.connect(), /ECONNREFUSED/)
    const before = connection.socket.listenerCount('connect')
    for (let times = 1; times <= 20; times += 1) await connection.disconnect()
    t.equal(connection.socket.listenerCount('connect'), before)
  })

  void test('topics that may not be created are reported with the remedy', (t) => {
    const refused = Object.assign(new Error('Not authorized to access topics'), { type: 'TOPIC_AUTHORIZATION_FAILED' })
    const reason = createReason(Object.assign(new Error('Topic creation errors'), { errors: [refused, refused] }))
    t.equal(
      reason,
      'Not authorized to access topics. Allow this user to create topics, or create them yourself: docs/operators/kafka.md'
    )
    const invalid = Object.assign(new Error('Replication-factor is invalid'), { type: 'INVALID_REPLICATION_FACTOR' })
    t.equal(
      createReason(invalid),
      'Replication-factor is invalid. Check KAFKA_REPLICATION, KAFKA_PARTITIONS and KAFKA_TOPIC_CONFIG'
    )
    t.end()
  })

  void test('topics that the broker compresses with another codec are read', async (t) => {
    for (const codec of ['uncompressed', 'snappy', 'lz4', 'zstd']) {
      const log = openLog(t, { configEntries: { 'compression.type': codec } })
      await log.ensureTopics(['thing'])
      // More than one block of each codec.
      const sent = messages(3000)
      await log.append('thing', sent)
      t.same([...(await readAll(log, 'thing', 3000)).values()].flat().map(asAppended), sent, codec)
    }
  })

  void test('a message with a header without a value is delivered as unreadable, and later messages follow', async (t) => {
    const topicPrefix = `${randomUUID()}.`
    const log = openLog(t, { topicPrefix })
    const { name } = titleCountTopic
    await log.ensureTopics([name])
    const event = { titleId: '4d530064', observedAt: '2026-01-01T00:00:00Z', online: 5 }
    const { headers, value } = encodeEvent(titleCountTopic, event, { source: '/test' })
    const encoded = Object.entries(headers).map(([name, text]) => [name, Buffer.from(text)] as const)
    const shared = { timestampDelta: 0, key: null, value: Buffer.from(value) }
    const records = [
      { ...shared, offsetDelta: 0, headers: [...encoded, ['x', null] as const] },
      { ...shared, offsetDelta: 1, headers: encoded }
    ]
    await produce(broker.address, topicPrefix + name, await encodeBatch({ records }))
    const read = (await readAll(log, name, 2)).get(0) ?? []
    t.match(
      read.map((record) => decodeEvent(titleCountTopic, record)),
      [
        { ok: false, reason: 'the header x has no value' },
        { ok: true, event }
      ]
    )
  })

  void test('a damaged batch stalls only its partition, and is read when it is repaired', async (t) => {
    const proxy = await openProxy(t)
    const topicPrefix = `${randomUUID()}.`
    const writer = openLog(t, { topicPrefix, configEntries: { 'compression.type': 'uncompressed' } })
    await writer.ensureTopics(['hurt', 'kept'])
    await writer.append('hurt', messages(2))
    await writer.append('hurt', messages(3, 2))
    const log = openLog(t, { topicPrefix, brokers: [proxy.address] })
    proxy.damage('"n":3')
    await t.rejects(readAll(log, 'hurt', 5), {
      message:
        /^hurt, epoch 1, partition 0 of Kafka cannot be read from offset 2 on: the batch at offset 2: its CRC-32C is /
    })
    const reader = follow(log, ['hurt', 'kept'])
    await reader.until(() => reader.stalled.length > 0)
    await writer.append('kept', messages(1, 10))
    await reader.until(() => reader.values.includes(message(10).value))
    proxy.damage(undefined)
    await reader.until(() => reader.values.includes(message(4).value))
    await reader.stop()
    t.match(reader.stalled, [
      { topic: 'hurt', partition: 0, wanted: 2, damage: /^the batch at offset 2: its CRC-32C is / }
    ])
  })

  void test('a reader learns which offsets retention has deleted', async (t) => {
    const topicPrefix = `${randomUUID()}.`
    const log = openLog(t, { topicPrefix })
    await log.ensureTopics(['thing'])
    await log.append('thing', messages(10))
    await broker.deleteRecords(`${topicPrefix}thing`, { partition: 0, offset: 6 })
    t.same(await log.extents('thing'), [{ epoch: 1, partition: 0, first: 6, next: 10 }])
    await t.rejects(
      readAll(log, 'thing', 1, () => 2),
      /offsets 2 to 5 of thing, epoch 1, partition 0 are no longer in Kafka/
    )
    t.same([...(await readAll(log, 'thing', 4)).values()].flat().map(asAppended), messages(4, 6))
  })

  void test('retention that passed a reader stalls only its topic, until the reader may continue later', async (t) => {
    const topicPrefix = `${randomUUID()}.`
    const log = openLog(t, { topicPrefix })
    await log.ensureTopics(['lost', 'kept'])
    await log.append('lost', messages(10))
    await log.append('kept', messages(3))
    await broker.deleteRecords(`${topicPrefix}lost`, { partition: 0, offset: 6 })
    let start = 2
    const reader = follow(log, ['lost', 'kept'], (topic) => (topic === 'lost' ? start : 0))
    await reader.until(() => reader.stalled.length > 0 && reader.values.length === 3)
    t.same(reader.stalled, [{ topic: 'lost', epoch: 1, partition: 0, first: 6, next: 10, wanted: 2 }])
    await log.append('kept', messages(1, 3))
    await reader.until(() => reader.values.length === 4)
    start = 6
    await reader.until(() => reader.values.length === 8)
    await reader.stop()
    t.same(reader.stalled.length, 1, 'it is reported once')
    t.same(
      reader.values.slice(4),
      messages(4, 6).map(({ value }) => value)
    )
  })

  void test('a topic that is recreated during reading stalls, and is read from its start in the next epoch', async (t) => {
    const topicPrefix = `${randomUUID()}.`
    const log = openLog(t, { topicPrefix, stalledMs: 600, metadataMs: 500 })
    await log.ensureTopics(['thing'])
    await log.append('thing', messages(10))
    const reader = follow(log, ['thing'])
    await reader.until(() => reader.values.length === 10)
    await withAdmin(async (admin) => {
      await admin.deleteTopics({ topics: [`${topicPrefix}thing`] })
      await until(async () => !(await admin.listTopics()).includes(`${topicPrefix}thing`))
    })
    const next = openLog(t, { topicPrefix, epoch: 2 })
    await next.ensureTopics(['thing'])
    await next.append('thing', messages(3, 100))
    await reader.until(() => reader.stalled.length > 0)
    await reader.stop()
    t.match(reader.stalled, [{ first: 0, wanted: 10 }])
    t.equal(reader.values.length, 10, 'nothing of the new one is taken for a continuation')
    const recreated = follow(next, ['thing'])
    await recreated.until(() => recreated.values.length === 3)
    await recreated.stop()
  })

  void test('added partitions are read without a restart', async (t) => {
    const topicPrefix = `${randomUUID()}.`
    const log = openLog(t, { topicPrefix, metadataMs: 500 })
    await log.ensureTopics(['thing'])
    await log.append('thing', messages(20))
    const reader = follow(log, ['thing'])
    await reader.until(() => reader.values.length === 20)
    await withAdmin((admin) =>
      admin.createPartitions({ topicPartitions: [{ topic: `${topicPrefix}thing`, count: 4 }] })
    )
    const adding = openLog(t, { topicPrefix })
    await adding.append('thing', messages(40, 20))
    await reader.until(() => reader.values.length === 60)
    await reader.stop()
    t.equal(new Set(reader.values).size, 60)
    t.ok((await adding.extents('thing')).filter(({ next }) => next > 0).length > 1)
  })

  void test('a consumer that hangs silently is replaced, and nothing is read twice', async (t) => {
    const proxy = await openProxy(t)
    const topicPrefix = `${randomUUID()}.`
    const writer = openLog(t, { topicPrefix })
    await writer.ensureTopics(['thing'])
    const crashes: string[] = []
    const log = openLog(t, {
      topicPrefix,
      brokers: [proxy.address],
      stalledMs: 1500,
      sessionMs: 1500,
      onCrash: ({ message }) => crashes.push(message)
    })
    await writer.append('thing', messages(5))
    const reader = follow(log, ['thing'], () => reader.values.length)
    await reader.until(() => reader.values.length === 5)
    t.ok(proxy.freezeFetches() > 0, 'connections hang that were asked for records')
    await writer.append('thing', messages(5, 5))
    await reader.until(() => reader.values.length === 10)
    await reader.stop()
    const isPublished = crashes.some((crash) =>
      /^thing, partition 0 was stuck at offset 5 of 10 for 1500 ms$/.test(crash)
    )
    t.ok(isPublished, crashes.join())
    t.same(
      reader.values,
      messages(10).map(({ value }) => value)
    )
  })

  void test('control records at the end of a partition are passed: nothing waits for their offsets', async (t) => {
    const topicPrefix = `${randomUUID()}.`
    const crashes: string[] = []
    const log = openLog(t, { topicPrefix, stalledMs: 1500, onCrash: ({ message }) => crashes.push(message) })
    await log.ensureTopics(['thing'])
    const kafka = new kafkajs.Kafka({ brokers: [broker.address], logLevel: kafkajs.logLevel.NOTHING })
    const producer = kafka.producer({ transactionalId: randomUUID(), maxInFlightRequests: 1, idempotent: true })
    await producer.connect()
    t.teardown(() => producer.disconnect())
    const produced = async (n: number, isCommitted: boolean) => {
      const transaction = await producer.transaction()
      await transaction.send({ topic: `${topicPrefix}thing`, messages: [{ key: 'a', value: `${n}` }] })
      await (isCommitted ? transaction.commit() : transaction.abort())
    }
    const nexts: (number | undefined)[] = []
    const values: string[] = []
    let look: () => void = () => {}
    const stop = new AbortController()
    const reading = log.consume({
      topics: ['thing'],
      startAt: async () => 0,
      deliver: async ({ records, next }) => {
        values.push(...records.map(({ value }) => String(value)))
        nexts.push(next)
        look()
      },
      signal: stop.signal
    })
    const passed = async (next: number) => {
      while (nexts.at(-1) !== next)
        await new Promise<void>((resolve) => {
          look = resolve
        })
    }
    await produced(1, true)
    await passed(2)
    await produced(2, false)
    await passed(4)
    await produced(3, true)
    await passed(6)
    stop.abort()
    await reading
    t.same(values, ['1', '3'])
    t.same(crashes, [])
    t.match(await log.extents('thing'), [{ next: 6 }])
  })

  void test('a killed member leaves its partitions to another one within its session timeout', async (t) => {
    const shared = { topicPrefix: `${randomUUID()}.`, groupId: randomUUID(), sessionMs: 1500 }
    const log = openLog(t, shared)
    await log.ensureTopics(['thing'])
    await log.append('thing', messages(5))
    const options = {
      ...shared,
      brokers: [broker.address],
      clientId: 'c',
      epoch: 1,
      partitions: 1,
      replicationFactor: 1
    }
    const program = `
      import { openKafkaLog } from ${JSON.stringify(new URL('../src/log.js', import.meta.url).href)}
      const log = openKafkaLog(${JSON.stringify(options)})
      await log.consume({ topics: ['thing'], startAt: async () => 0, signal: new AbortController().signal,
        deliver: async () => { console.log('read'); await new Promise(() => {}) } })`
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit']
    })
    await once(child.stdout, 'data')
    const reader = follow(log, ['thing'])
    child.kill('SIGKILL')
    await reader.until(() => reader.values.length === 5)
    await reader.stop()
    t.equal(reader.values.length, 5)
  })

  void test('a broker with TLS and passwords is used, and a wrong password is reported without its text', async (t) => {
    const { secured } = broker
    if (secured === undefined) throw new Error('there is no secured listener')
    const ssl = { ca: await readFile(secured.caFile, 'utf8') }
    const { username, password } = secured
    const asked: string[] = []
    const tokens = createHttpServer(({ headers }, response) => {
      asked.push(headers.authorization ?? '')
      response.end(JSON.stringify({ token_type: 'Bearer', access_token: unsignedToken(username) }))
    }).listen(0, '127.0.0.1')
    await once(tokens, 'listening')
    t.teardown(() => tokens.close())
    const tokenUrl = `http://127.0.0.1:${(tokens.address() as AddressInfo).port}/token`
    for (const sasl of [
      { mechanism: 'plain', username, password },
      { mechanism: 'scram-sha-512', username, password },
      { mechanism: 'oauthbearer', username, password: 'of a client', tokenUrl }
    ] as const) {
      const log = openLog(t, { brokers: [secured.address], ssl, sasl })
      await log.ensureTopics(['thing'])
      await log.append('thing', messages(2))
      t.equal((await readAll(log, 'thing', 2)).get(0)?.length, 2, sasl.mechanism)
    }
    t.same([...new Set(asked)], [`Basic ${Buffer.from(`${username}:of%20a%20client`).toString('base64')}`])
    const nobody = { mechanism: 'oauthbearer', username, password, tokenUrl: 'http://127.0.0.1:9/token' } as const
    await t.rejects(
      openLog(t, { ...IMPATIENT, brokers: [secured.address], ssl, sasl: nobody }).ensureTopics(['thing']),
      {
        message: /KAFKA_SASL_TOKEN_URL .* cannot be reached/
      }
    )
    const wrong = openLog(t, {
      ...IMPATIENT,
      brokers: [secured.address],
      ssl,
      sasl: { mechanism: 'plain', username, password: 'not-the-word' }
    })
    const refusal = await wrong.ensureTopics(['thing']).catch((error: Error) => error)
    t.match(refusal, { message: /cannot be reached: .*(Authentication|password)/i })
    const stranger = openLog(t, {
      ...IMPATIENT,
      brokers: [secured.address],
      ssl: {},
      sasl: { mechanism: 'plain', username, password }
    })
    await t.rejects(
      stranger.ensureTopics(['thing']),
      { message: /cannot be reached: .*certificate/ },
      'a foreign authority'
    )
    t.notMatch(String(refusal), /not-the-word/)
  })

  void test('two members of a group share the partitions, and one takes over those of the other', async (t) => {
    const shared = { topicPrefix: `${randomUUID()}.`, groupId: randomUUID(), partitions: 4 }
    const logs = [openLog(t, shared), openLog(t, shared)]
    await logs[0]?.ensureTopics(['thing'])
    const sent = Array.from({ length: 200 }, (_, i) => message(i, `key-${i % 40}`))
    const stored = new Map<number, number>()
    const seen = new Set<string>()
    const given: Set<number>[] = [new Set(), new Set()]
    const assigned: number[][] = [[], []]
    const stops = [new AbortController(), new AbortController()]
    let wake: () => void = () => {}
    const until = async (isTrue: () => boolean): Promise<void> => {
      while (!isTrue()) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    }
    const readings = logs.map((log, i) =>
      log.consume({
        topics: ['thing'],
        startAt: async (_topic, _epoch, partition) => {
          given[i]?.add(partition)
          wake()
          return stored.get(partition) ?? 0
        },
        deliver: async ({ partition, records }) => {
          for (const record of records) seen.add(asAppended(record).value)
          stored.set(partition, (records.at(-1)?.offset ?? 0) + 1)
          wake()
        },
        onAssigned: (partitions) => assigned[i]?.push(partitions.get('thing') ?? 0),
        signal: stops[i]?.signal ?? AbortSignal.abort()
      })
    )
    await until(() => given.every((partitions) => partitions.size > 0))
    await logs[0]?.append('thing', sent.slice(0, 100))
    await until(() => seen.size === 100)
    stops[0]?.abort()
    await readings[0]
    await logs[1]?.append('thing', sent.slice(100))
    await until(() => seen.size === 200)
    stops[1]?.abort()
    await readings[1]
    t.equal(given[1]?.size, 4, 'the second member ended with all partitions')
    t.equal(assigned[0]?.at(-1), 0, 'a member that left has none')
    t.same(assigned[1]?.slice(-2), [4, 0])
  })

  void test('logs that share the partitions in separate groups read each of them once, added ones too', async (t) => {
    const topicPrefix = `${randomUUID()}.`
    const logs = [0, 1].map((index) =>
      openLog(t, { topicPrefix, partitions: 4, metadataMs: 500, share: { index, of: 2 } })
    )
    await logs[0]?.ensureTopics(['thing'])
    const given: number[][] = [[], []]
    const seen: string[] = []
    const stop = new AbortController()
    let wake: () => void = () => {}
    const readings = logs.map((log, i) =>
      log.consume({
        topics: ['thing'],
        startAt: async (_topic, _epoch, partition) => {
          given[i]?.push(partition)
          wake()
          return 0
        },
        deliver: async ({ records }) => {
          seen.push(...records.map((record) => asAppended(record).value))
          wake()
        },
        signal: stop.signal
      })
    )
    const until = async (isTrue: () => boolean): Promise<void> => {
      while (!isTrue()) {
        const changed = new Promise<void>((resolve) => {
          wake = resolve
        })
        await Promise.race([changed, ...readings])
      }
    }
    const sent = Array.from({ length: 200 }, (_, i) => message(i, `key-${i % 40}`))
    await logs[0]?.append('thing', sent.slice(0, 100))
    await until(() => seen.length >= 100)
    await withAdmin((admin) =>
      admin.createPartitions({ topicPartitions: [{ topic: `${topicPrefix}thing`, count: 6 }] })
    )
    await until(() => given.flat().length === 6)
    await openLog(t, { topicPrefix }).append('thing', sent.slice(100))
    await until(() => seen.length >= 200)
    stop.abort()
    await Promise.all(readings)
    t.same(
      given.map((partitions) => partitions.sort()),
      [
        [0, 2, 4],
        [1, 3, 5]
      ]
    )
    t.equal(seen.length, 200)
    t.equal(new Set(seen).size, 200)
  })

  void test('a process that closed its log ends by itself', async (t) => {
    const program = `
      import { openKafkaLog } from ${JSON.stringify(new URL('../src/log.js', import.meta.url).href)}
      const log = openKafkaLog({ brokers: [${JSON.stringify(broker.address)}], clientId: 'c', groupId: ${JSON.stringify(randomUUID())},
        epoch: 1, topicPrefix: ${JSON.stringify(`${randomUUID()}.`)}, partitions: 1, replicationFactor: 1 })
      await log.ensureTopics(['thing'])
      await log.append('thing', [{ key: 'k', headers: {}, value: '{}' }])
      const enough = new AbortController()
      await log.consume({ topics: ['thing'], startAt: async () => 0, deliver: async () => enough.abort(), signal: enough.signal })
      await log.close()`
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: 'inherit' })
    const [code] = await once(child, 'exit')
    t.equal(code, 0)
  })

  void test('a process that closed its logs while the broker was stopped ends when the broker continues', async (t) => {
    const proxy = await openProxy(t)
    const program = `
      import { once } from 'node:events'
      import { openKafkaLog } from ${JSON.stringify(new URL('../src/log.js', import.meta.url).href)}
      const logs = Array.from({ length: 4 }, () => openKafkaLog({ brokers: [${JSON.stringify(proxy.address)}], clientId: 'c',
        groupId: ${JSON.stringify(randomUUID())}, epoch: 1, topicPrefix: ${JSON.stringify(`${randomUUID()}.`)}, partitions: 1, replicationFactor: 1 }))
      const [reading, appending, asking, beginning] = logs
      for (const log of [reading, appending, asking]) await log.ensureTopics(['thing'])
      const append = (log) => log.append('thing', [{ key: 'k', headers: {}, value: '{}' }])
      await append(appending)
      process.stdout.write('up')
      await once(process.stdin, 'data')
      process.stdin.destroy()
      const asked = [reading.consume({ topics: ['thing'], startAt: async () => 0, deliver: async () => {}, signal: new AbortController().signal }),
        append(appending), asking.extents('thing'), append(beginning)]
      for (const one of asked) one.catch(() => {})
      await new Promise(setImmediate)
      await Promise.all(logs.map((log) => log.close()))
      process.stdout.write('closed')`
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['pipe', 'pipe', 'inherit']
    })
    t.teardown(() => child.kill('SIGKILL'))
    const ended = once(child, 'exit')
    const said = async (): Promise<string> =>
      String(await Promise.race([once(child.stdout, 'data'), ended.then(() => 'it ended')]))
    t.equal(await said(), 'up')
    proxy.stand(true)
    child.stdin.write('\n')
    t.equal(await said(), 'closed')
    proxy.stand(false)
    t.same(await ended, [0, null])
  })

  void test('a log that was opened while the broker was stopped appends when the broker continues', async (t) => {
    const proxy = await openProxy(t)
    const shared = { topicPrefix: `${randomUUID()}.`, brokers: [proxy.address] }
    const before = openLog(t, shared)
    await before.ensureTopics(['thing'])
    const log = openLog(t, { ...shared, ...IMPATIENT })
    proxy.stand(true)
    const [appended, read] = await Promise.allSettled([log.append('thing', messages(1)), log.extents('thing')])
    proxy.stand(false)
    for (const each of [appended, read]) t.ok(each.status === 'rejected' && isFailure(each.reason, 'log_unreachable'))
    await log.append('thing', messages(1))
    t.equal((await log.extents('thing')).length, 1)
  })

  void test('topics that a broker refuses to list, such as before the election of a leader, are requested again', async (t) => {
    const proxy = await openProxy(t)
    const log = openLog(t, { topicPrefix: `${randomUUID()}.`, brokers: [proxy.address] })
    // The first question for metadata finds the brokers, the second one lists their topics.
    proxy.cutAtMetadata(2)
    await log.ensureTopics(['thing'])
    t.ok(proxy.metadataRequests() > 2, 'it was refused once, and asked again')
    t.equal((await log.extents('thing')).length, 1)
  })

  void test('a broker that cannot be reached is reported with its address', async (t) => {
    const away = openLog(t, { ...IMPATIENT, brokers: ['127.0.0.1:1'] })
    const refusal = await away.append('thing', messages(1)).catch((error: unknown) => error)
    t.ok(isFailure(refusal, 'log_unreachable'), 'so that it may wait')
    t.match(refusal, { message: /Kafka at 127\.0\.0\.1:1 refused an append to thing/ })
  })
}

/**
 * Stands between clients and a broker: connections that were asked for records can be made to hang forever, one can be cut instead
 * of an answer about metadata, a text in answers can be damaged, and all can stand still, as with a broker that is stopped, until they
 * go on.
 */
async function startProxy({ address, through }: { address: string; through: number }) {
  const FETCH = 1
  const METADATA = 3
  let metadataRequests = 0
  let cutAt = 0
  let isRunning = false
  let damaged: string | undefined
  const fetching = new Set<() => void>()
  const sockets = new Set<Socket>()
  const [host, port] = address.split(':')
  const server = createServer((client) => {
    const upstream = connect(Number(port), host)
    let isFrozen = false
    const freeze = (): void => {
      isFrozen = true
    }
    client.on('data', (request) => {
      if (isFrozen) return
      const read = request.length >= 6 ? request.readInt16BE(4) : undefined
      if (read === FETCH) fetching.add(freeze)
      if (read === METADATA) {
        metadataRequests += 1
        if (metadataRequests === cutAt) {
          client.destroy()
          return
        }
      }
      upstream.write(request)
    })
    upstream.on('data', (answer) => {
      const at = damaged === undefined ? -1 : answer.indexOf(damaged)
      if (at >= 0) answer[at] = 0
      if (!isFrozen) client.write(answer)
    })
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client]
    ] as const) {
      sockets.add(socket)
      if (isRunning) socket.pause()
      socket.on('error', () => other.destroy())
      socket.on('close', () => {
        sockets.delete(socket)
        fetching.delete(freeze)
        other.destroy()
      })
    }
  })
  server.listen(through, '127.0.0.1')
  await once(server, 'listening')
  return {
    address: `127.0.0.1:${through}`,
    stand(still: boolean) {
      isRunning = still
      for (const socket of sockets) still ? socket.pause() : socket.resume()
    },
    freezeFetches() {
      for (const freeze of fetching) freeze()
      return fetching.size
    },
    damage(text: string | undefined) {
      damaged = text
    },
    cutAtMetadata(nth: number) {
      cutAt = nth
    },
    metadataRequests: () => metadataRequests,
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    }
  }
}

/** A JWT without a signature, which Apache Kafka accepts unless it is configured otherwise. */
function unsignedToken(sub: string): string {
  const seconds = Math.floor(Date.now() / 1000)
  const part = (content: object) => Buffer.from(JSON.stringify(content)).toString('base64url')
  return `${part({ alg: 'none' })}.${part({ sub, iat: seconds, exp: seconds + 600 })}.`
}
