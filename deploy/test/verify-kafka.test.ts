import { randomUUID } from 'node:crypto'
import { kafkaBrokerMissing, sharedKafka } from '@gamenet/engines/testing'
import { publish } from '@gamenet/ingest'
import { presenceTopic, scrapeTopic } from '@gamenet/schemas'
import { type Test, test } from 'tap'
import { type LogChoice, openLog } from '../src/stores/log.js'
import { readStored, runsOf } from '../src/stores/read-stored.js'
import { fill, openWorld, sighting } from './service/erasure-world.js'
import { openTestWrites } from './service/open-engines.js'
import { damageFound, enginesOf } from './service/verified-world.js'

const kafkaMissing = await kafkaBrokerMissing()
if (kafkaMissing !== undefined && process.env.CI === 'true') throw new Error(kafkaMissing)
if (kafkaMissing !== undefined) console.error(`NOT TESTED: verify with Kafka; ${kafkaMissing}.`)

async function kafkaChoice(t: Test): Promise<LogChoice> {
  const brokers = [(await sharedKafka(t)).address]
  const topicPrefix = `verify-${randomUUID()}.`
  return { engine: 'kafka', brokers, topicPrefix, partitions: 1, replicationFactor: 1, epoch: 1 }
}

test('a log that is only read gets no topics', kafkaMissing ? { skip: kafkaMissing } : {}, async (t) => {
  const log = await openLog(await kafkaChoice(t), 'test', { isReading: true })
  t.teardown(() => log.close())
  t.same(await log.extents(scrapeTopic.name), [])
})

test('records are split where offsets are missing', (t) => {
  const records = [4, 5, 8, 10, 11].map((offset) => ({ offset, key: null, headers: {}, value: null }))
  const offsets = runsOf(records).map((run) => run.map(({ offset }) => offset))
  t.same(offsets, [[4, 5], [8], [10, 11]])
  t.end()
})

test('lost keys and rows are found by reading Kafka', kafkaMissing ? { skip: kafkaMissing } : {}, async (t) => {
  const world = await openWorld(t, (folder) => openTestWrites(t, folder), await kafkaChoice(t))
  await fill(world)
  t.same((await damageFound(enginesOf(world))).findings, [])

  const { clickhouse, log, people, projector, writes } = world
  await writes.script("DELETE FROM person WHERE user_key = 'ben'")
  await publish(log, presenceTopic, [sighting('ben', 99)], { source: '/test' }, people)
  await projector.caughtUp()
  await writes.script("UPDATE person SET seal_key = sha256(seal_key) WHERE user_key = 'ann'")
  await clickhouse.control.execute('DELETE FROM event_profile__0 WHERE offset < 2')
  const seals = ['achievement-unlock', 'presence', 'profile', 'rating'].map((topic) => ({
    part: 'seals',
    what: new RegExp(`^the keys of 1 people cannot decrypt their events of ${topic} 1/0, from offset \\d+ on$`)
  }))
  // Of an epoch that the log no longer has, and of a topic that was recreated.
  await clickhouse.control.execute(
    "INSERT INTO checkpoint (name, epoch, partition, next) VALUES ('load:scrape', 0, 0, 7), ('load:scrape', 1, 0, 9)"
  )
  const { findings } = await damageFound(enginesOf(world))
  t.match(
    findings.sort((a, b) => a.what.localeCompare(b.what)),
    [
      { part: 'checkpoints', what: 'event_profile holds 1 events of profile 1/0 below 3; the log has 2' },
      {
        part: 'checkpoints',
        what: 'scrape 1/0 is loaded up to 9; the log has 0 to 0',
        repair: 'set LOG_EPOCH=2 for all processes and restart them: docs/operators/kafka.md'
      },
      ...seals
    ]
  )
})

test('a damaged batch of Kafka ends the reading of its partition alone', async (t) => {
  const place = { topic: 'presence', epoch: 1 }
  const extents = [0, 1, 2].map((partition) => ({ epoch: 1, partition, first: 4, next: 6 }))
  const record = (offset: number) => ({ offset, key: null, headers: {}, value: null })
  const starts: number[] = []
  const log: Parameters<typeof readStored>[0]['log'] = {
    extents: async () => extents,
    consume: async ({ startAt, deliver, onStall, signal }) => {
      onStall?.({ ...place, partition: 0, first: 4, next: 6, wanted: 4, damage: 'its CRC is wrong' })
      // Retention passes the start of another one.
      onStall?.({ ...place, partition: 1, first: 5, next: 6, wanted: 4 })
      for (const partition of [1, 2]) starts.push(await startAt('presence', 1, partition))
      await deliver({ ...place, partition: 1, records: [record(5)] })
      t.notOk(signal.aborted)
      await deliver({ ...place, partition: 2, records: [record(4)], next: 5 })
      t.notOk(signal.aborted)
      await deliver({ ...place, partition: 2, records: [], next: 6 })
      t.ok(signal.aborted, 'the last offset may be that of a control record')
    }
  }
  const taken: number[] = []
  const damages: unknown[] = []
  await readStored(
    { log, logChoice: { engine: 'lmdb', path: '', epoch: 1 } },
    {
      topics: ['presence'],
      take: ({ records }) => void taken.push(...records.map(({ offset }) => offset)),
      onDamage: ({ partition }, damage) => damages.push([partition, damage])
    }
  )
  t.same([starts, taken, damages], [[0, 4], [5, 4], [[0, 'its CRC is wrong']]])
})
