import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { openChdb } from '@gamenet/engines'
import { kafkaBrokerMissing, sharedKafka } from '@gamenet/engines/testing'
import { type People, publish } from '@gamenet/ingest'
import { migrate, storeOver } from '@gamenet/projector'
import { nameKey, type ProfileRated, ratingTopic } from '@gamenet/schemas'
import { test } from 'tap'
import { findLostWrites, keepLostUsers } from '../src/operations/lost-writes.js'
import { advanceSequences } from '../src/wiring/advance-sequences.js'
import { type LogChoice, openLog } from '../src/wiring/log.js'
import { openTestWrites } from './service/open-engines.js'

const kafkaMissing = await kafkaBrokerMissing()
if (kafkaMissing !== undefined && process.env.CI === 'true') throw new Error(kafkaMissing)
if (kafkaMissing !== undefined) console.error(`NOT TESTED: the end of a log in Kafka; ${kafkaMissing}.`)

test('a write side that is older than the tables reuses no number', async (t) => {
  const folder = t.testdir({})
  const clickhouse = await openChdb({ path: join(folder, 'tables') })
  t.teardown(() => clickhouse.close())
  const tables = clickhouse.control
  await migrate(tables)
  const writes = await openTestWrites(t, folder)
  const said: string[] = []
  const say = (_about: unknown, sentence?: string) => said.push(String(sentence))
  const logger = { error: say, warn: say }
  const advance = (engines: Parameters<typeof advanceSequences>[2]) =>
    advanceSequences(writes, storeOver(tables), engines, logger)
  const empty: LogChoice = { engine: 'lmdb', path: join(folder, 'empty'), epoch: 1 }
  const log = await openLog(empty, 'test')
  t.teardown(() => log.close())
  const look = () => advance({ log, logChoice: empty })

  await look()
  t.same(said, [], 'an empty one is not older than empty tables')
  const rated = (rater: string, revision: number) =>
    tables.execute(
      `INSERT INTO event_rating__0 (epoch, partition, offset, user_key, rater_key, revision) VALUES (1, 0, 0, 'bob', '${rater}', ${revision})`
    )
  const lostUsers = async () => (await findLostWrites(storeOver(tables), writes)).users
  await rated('ann', 1)
  await tables.execute(`INSERT INTO checkpoint (name, epoch, partition, next) VALUES ('people', 0, 0, 2)`)
  await look()
  t.same(await lostUsers(), 2)
  const keys = (...users: string[]) =>
    writes.query(`INSERT INTO person (user_key, seal_key) SELECT unnest($1::text[]), ''`, [users])
  await keys('bob', 'ann')
  t.equal(await lostUsers(), 1, 'a loss is known, although all have new keys')
  await keepLostUsers(writes, 2)
  await keepLostUsers(writes, 1)
  t.equal(await lostUsers(), 2)
  t.match(said.splice(0), [
    /changes of profiles and ratings are numbered to 0, theirs to 1\./,
    /its people are numbered to 0, theirs to 1\./
  ])
  await rated('cora', 89)
  await tables.execute(
    `INSERT INTO event_profile__0 (epoch, partition, offset, user_key, revision) VALUES (1, 0, 0, 'ann', 90)`
  )
  await tables.execute(`INSERT INTO checkpoint (name, epoch, partition, next) VALUES ('people', 0, 0, 8)`)
  await look()
  t.match(said, [
    /changes of profiles and ratings are numbered to 1, theirs to 90\./,
    /its people are numbered to 3, theirs to 7\./
  ])
  t.same(await writes.query(`SELECT nextval('revision') AS n, nextval('person_id_seq') AS person`), [
    { n: '91', person: '8' }
  ])
  await look()
  t.equal(said.length, 2, 'then it is newer')
  await writes.script(`DELETE FROM lost_people; SELECT setval('person_id_seq', 33)`)
  await tables.execute(`INSERT INTO checkpoint (name, epoch, partition, next) VALUES ('people', 0, 0, 9)`)
  await look()
  t.same([said.length, await lostUsers()], [2, 1], 'after a crash, the sequence is ahead of the people')
  await writes.query(`INSERT INTO forgotten (name_hash, person_id, forgotten_at) VALUES ('', 8, now())`)
  await writes.script('DELETE FROM lost_people')
  await look()
  t.same(await writes.query('SELECT FROM lost_people'), [], 'the key of an erased user is not lost')

  for (const engine of kafkaMissing === undefined ? (['lmdb', 'kafka'] as const) : (['lmdb'] as const))
    await t.test(`nor is one that is older than events of a log in ${engine} that the tables lack`, async (t) => {
      const logChoice: LogChoice =
        engine === 'lmdb'
          ? { engine, path: join(folder, 'log'), epoch: 1 }
          : {
              engine,
              brokers: [(await sharedKafka(t)).address],
              topicPrefix: `sequences-${randomUUID()}.`,
              partitions: 1,
              replicationFactor: 1,
              epoch: 2
            }
      const log = await openLog(logChoice, 'test')
      t.teardown(() => log.close())
      const { epoch } = logChoice
      const look = () => advance({ log, logChoice })
      // Above the numbers to which the first of these leaps.
      const from = epoch === 1 ? 1000 : Date.now() * 100 + 1000
      const ratings = Array.from({ length: 600 }, (_, n) => ({ ...RATING, revision: from + n }))
      await publish(log, ratingTopic, ratings, { source: '/test' }, peopleFrom(from))
      const [extent] = await log.extents('rating')
      const loadedTo = (next: number) =>
        tables.execute(
          `INSERT INTO checkpoint (name, epoch, partition, next) VALUES ('load:rating', ${epoch}, 0, ${next})`
        )
      await loadedTo(Number(extent?.next) - 1)
      said.splice(0)
      await look()
      t.match(said, [new RegExp(`theirs to ${from + 599}\\.`), new RegExp(`theirs to ${from + 1}\\.`)])
      const lost = 'SELECT l.people FROM lost_people AS l ORDER BY l.above DESC LIMIT 1'
      t.same(await writes.query(lost), [{ people: '2' }], 'later starts know how many keys are lost')
      t.ok((await findLostWrites(storeOver(tables), writes)).users >= 2)
      const absurd = { ce_id: 'rating/1/2/99999999999999999999@2026-05-02T00:00:00Z' }
      await log.append('rating', [{ key: 'bob', headers: absurd, value: '{}' }])
      await look()
      t.equal(said.length, 2)
      await loadedTo(600)
      await publish(log, ratingTopic, [{ ...RATING, revision: from + 600 }], { source: '/test' }, peopleFrom(50))
      await log.close()
      await look()
      t.match(said.slice(-2), Array(2).fill(/older than the tables or the log is unknown: .*continue after \d{15}/))
      const [next] = await writes.query<{ n: string }>(`SELECT nextval('revision') AS n`)
      t.ok(Number(next?.n) > from + 600, 'numbers of a log that cannot be read are not reused')
    })
})

const RATING: ProfileRated = {
  username: 'Bob',
  raterUsername: 'Ann',
  stars: 1,
  comment: null,
  revision: 1,
  ratedAt: '2026-05-02T00:00:00Z'
}

function peopleFrom(first: number): People {
  return {
    seals: async (usernames) =>
      new Map([...usernames].map((username, n) => [nameKey(username), { id: first + n, key: new Uint8Array(32) }])),
    passedOver: () => undefined
  }
}
