import { join } from 'node:path'
import { openChdb } from '@gamenet/engines'
import { openEmbeddedLog } from '@gamenet/engines/log'
import { type People, publish } from '@gamenet/ingest'
import { migrate, storeOver } from '@gamenet/projector'
import { nameKey, type ProfileRated, ratingTopic } from '@gamenet/schemas'
import { test } from 'tap'
import { advanceSequences } from '../src/wiring/advance-sequences.js'
import { openTestWrites } from './service/open-engines.js'

test('a write side that is older than the tables reuses no number', async (t) => {
  const folder = t.testdir({})
  const clickhouse = await openChdb({ path: join(folder, 'tables') })
  t.teardown(() => clickhouse.close())
  const tables = clickhouse.control
  await migrate(tables)
  const writes = await openTestWrites(t, folder)
  const said: string[] = []
  const log = openEmbeddedLog({ path: join(folder, 'log'), epoch: 1 })
  t.teardown(() => log.close())
  const look = () =>
    advanceSequences(
      writes,
      storeOver(tables),
      { ...log, files: log },
      { error: (_about: unknown, sentence?: string) => said.push(String(sentence)) }
    )

  await look()
  t.same(said, [], 'an empty one is not older than empty tables')
  await tables.execute(`INSERT INTO event_rating__0 (epoch, partition, offset, revision) VALUES (1, 0, 0, 1)`)
  await tables.execute(`INSERT INTO checkpoint (name, epoch, partition, next) VALUES ('people', 0, 0, 2)`)
  await look()
  t.match(said.splice(0), [
    /changes of profiles and ratings are numbered to 0, theirs to 1\./,
    /its people are numbered to 0, theirs to 1\./
  ])
  await tables.execute(`INSERT INTO event_rating__0 (epoch, partition, offset, revision) VALUES (1, 0, 0, 89)`)
  await tables.execute(`INSERT INTO event_profile__0 (epoch, partition, offset, revision) VALUES (1, 0, 0, 90)`)
  await tables.execute(`INSERT INTO checkpoint (name, epoch, partition, next) VALUES ('people', 0, 0, 8)`)
  await look()
  t.match(said, [
    /changes of profiles and ratings are numbered to 1, theirs to 90\./,
    /its people are numbered to 1, theirs to 7\./
  ])
  t.same(await writes.query(`SELECT nextval('revision') AS n, nextval('person_id_seq') AS person`), [
    { n: '91', person: '8' }
  ])
  await look()
  t.equal(said.length, 2, 'then it is newer')

  await t.test('nor is one that is older than events of the log that the tables lack', async (t) => {
    const people: People = {
      seals: async (usernames) =>
        new Map([...usernames].map((username, n) => [nameKey(username), { id: 40 + n, key: new Uint8Array(32) }])),
      passedOver: () => undefined
    }
    const ratings = Array.from({ length: 600 }, (_, n) => ({
      username: 'Bob',
      raterUsername: 'Ann',
      stars: 1,
      comment: null,
      revision: 100 + n,
      ratedAt: '2026-05-02T00:00:00Z'
    }))
    await publish(log, ratingTopic, ratings, { source: '/test' }, people)
    const [extent] = await log.extents('rating')
    await tables.execute(
      `INSERT INTO checkpoint (name, epoch, partition, next) VALUES ('load:rating', 1, 0, ${Number(extent?.next) - 1})`
    )
    said.splice(0)
    await look()
    t.match(said, [/numbered to 91, theirs to 699\./, /numbered to 8, theirs to 41\./])
    const absurd = { ce_id: 'rating/1/2/99999999999999999999@2026-05-02T00:00:00Z' }
    await log.append('rating', [{ key: 'bob', headers: absurd, value: '{}' }])
    await look()
    t.equal(said.length, 2)
    await tables.execute(`INSERT INTO checkpoint (name, epoch, partition, next) VALUES ('load:rating', 1, 0, 600)`)
    await publish(log, ratingTopic, [{ ...(ratings[0] as ProfileRated), revision: 700 }], { source: '/test' }, people)
    await log.close()
    await look()
    t.match(said.at(-1), /cannot be compared with PostgreSQL/, 'a log that cannot be read ends no start')
  })
})
