import { join } from 'node:path'
import { openChdb } from '@gamenet/engines'
import { migrate, storeOver } from '@gamenet/projector'
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
  const look = () =>
    advanceSequences(writes, storeOver(tables), {
      error: (_about: unknown, sentence?: string) => said.push(String(sentence))
    })

  await look()
  t.same(said, [], 'an empty one is not older than empty tables')
  await tables.execute(`INSERT INTO event_rating__0 (epoch, partition, offset, revision) VALUES (1, 0, 0, 1)`)
  await tables.execute(`INSERT INTO checkpoint (name, epoch, partition, next) VALUES ('people', 0, 0, 2)`)
  await look()
  t.match(said.splice(0), [
    /changes of profiles and ratings are numbered to 0, those of the tables to 1\./,
    /its people are numbered to 0, those of the tables to 1\./
  ])
  await tables.execute(`INSERT INTO event_rating__0 (epoch, partition, offset, revision) VALUES (1, 0, 0, 89)`)
  await tables.execute(`INSERT INTO event_profile__0 (epoch, partition, offset, revision) VALUES (1, 0, 0, 90)`)
  await tables.execute(`INSERT INTO checkpoint (name, epoch, partition, next) VALUES ('people', 0, 0, 8)`)
  await look()
  t.match(said, [
    /changes of profiles and ratings are numbered to 1, those of the tables to 90\./,
    /its people are numbered to 1, those of the tables to 7\./
  ])
  t.same(await writes.query(`SELECT nextval('revision') AS n, nextval('person_id_seq') AS person`), [
    { n: '91', person: '8' }
  ])
  await look()
  t.equal(said.length, 2, 'then it is newer')
})
