import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type KafkaLog, type KafkaLogOptions, openKafkaLog } from '@gamenet/engines/log'
import { kafkaBrokerMissing, startKafkaBroker } from '@gamenet/engines/testing'
import kafkajs from 'kafkajs'
import { after, type Test, test } from 'tap'
import { asAppended, message, messages, readAll, testLog } from './log-contract.js'

const missing = await kafkaBrokerMissing()

if (missing !== undefined) {
  void test('the contract of logs on a real Kafka', async (t) => {
    if (process.env.CI === 'true') t.fail(missing)
    else t.pass(`SKIPPED, NOTHING OF KAFKA WAS TESTED: ${missing}`, { skip: missing })
  })
} else {
  const broker = await startKafkaBroker()
  after(() => broker.stop())

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

  void test('an append to a topic that was not made is refused with a sentence', async (t) => {
    await t.rejects(
      openLog(t).append('nothing', messages(1)),
      /did not take an append to nothing: .*has to be made first/s
    )
  })

  void test('a reader learns which offsets the retention took away', async (t) => {
    const topicPrefix = `${randomUUID()}.`
    const log = openLog(t, { topicPrefix })
    await log.ensureTopics(['thing'])
    await log.append('thing', messages(10))
    const admin = new kafkajs.Kafka({ brokers: [broker.address], logLevel: kafkajs.logLevel.NOTHING }).admin()
    await admin.connect()
    await admin.fetchTopicOffsets(`${topicPrefix}thing`)
    await admin.deleteTopicRecords({ topic: `${topicPrefix}thing`, partitions: [{ partition: 0, offset: '6' }] })
    await admin.disconnect()
    t.same(await log.extents('thing'), [{ epoch: 1, partition: 0, first: 6, next: 10 }])
    await t.rejects(
      readAll(log, 'thing', 1, () => 2),
      /offsets 2 to 5 of thing, epoch 1, partition 0 are no longer in Kafka/
    )
    t.same([...(await readAll(log, 'thing', 4)).values()].flat().map(asAppended), messages(4, 6))
  })

  void test('two members of a group share the partitions, and one takes over what the other leaves', async (t) => {
    const shared = { topicPrefix: `${randomUUID()}.`, groupId: randomUUID(), partitions: 4 }
    const logs = [openLog(t, shared), openLog(t, shared)]
    await logs[0]?.ensureTopics(['thing'])
    const sent = Array.from({ length: 200 }, (_, i) => message(i, `key-${i % 40}`))
    const stored = new Map<number, number>()
    const seen = new Set<string>()
    const given: Set<number>[] = [new Set(), new Set()]
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

  void test('a broker that is killed and comes back loses nothing that was answered, and reading goes on', async (t) => {
    const log = openLog(t)
    await log.ensureTopics(['thing'])
    await log.append('thing', messages(50))
    const read: string[] = []
    const enough = new AbortController()
    let isRestarted: Promise<void> | undefined
    const reading = log.consume({
      topics: ['thing'],
      startAt: async () => 0,
      deliver: async ({ records }) => {
        read.push(...records.map((record) => asAppended(record).value))
        if (read.length === 50) isRestarted ??= broker.restart().then(() => log.append('thing', messages(50, 50)))
        if (read.length >= 100) enough.abort()
      },
      signal: enough.signal
    })
    await reading
    await isRestarted
    t.same(
      read,
      messages(100).map(({ value }) => value)
    )
  })

  void test('a broker that cannot be reached is told with its address', async (t) => {
    const away = openLog(t, { brokers: ['127.0.0.1:1'] })
    await t.rejects(away.append('thing', messages(1)), /Kafka at 127\.0\.0\.1:1 did not take an append to thing/)
  })
}
