import { join } from 'node:path'
import { openChdb } from '@gamenet/engines'
import { migrate, storeOver } from '@gamenet/projector'
import { test } from 'tap'
import { isAcceptedOlder, olderWrites, requireNewestWrites } from '../src/stores/older-writes.js'
import { openTestWrites } from './service/open-engines.js'

test('a write side that is older than the tables is refused until it is accepted, and no number is used twice', async (t) => {
  const folder = t.testdir({})
  const clickhouse = await openChdb({ path: join(folder, 'tables') })
  t.teardown(() => clickhouse.close())
  const tables = clickhouse.control
  await migrate(tables)
  const store = storeOver(tables)
  const writes = await openTestWrites(t, folder)
  const start = (isAccepted = false) => requireNewestWrites(writes, store, isAccepted)
  const refused = (message: RegExp) => t.rejects(start(), { part: 'writes', message })
  const sequences = async () => {
    const [row] = await writes.query<{ n: string; person: string }>(
      'SELECT r.last_value AS n, p.last_value AS person FROM revision AS r, person_id_seq AS p'
    )
    return [Number(row?.n), Number(row?.person)] as const
  }
  const loaded = (person: number, revision: number) =>
    tables
      .execute(`INSERT INTO checkpoint (name, epoch, partition, next) VALUES ('people', 0, 0, ${person + 1})`)
      .then(() =>
        tables.execute(
          `INSERT INTO event_rating__0 (epoch, partition, offset, user_key, rater_key, revision) VALUES (1, 0, 0, 'bob', 'ann', ${revision})`
        )
      )

  await loaded(2, 5)
  await refused(
    /^PostgreSQL is older than the tables: it has people up to number 0 and changes up to 0, the tables have people up to 2 and changes up to 5\. Repair: put a newer copy/
  )
  await refused(/--accept-older/)
  t.same(await sequences(), [1, 1], 'its numbers stay as they are')
  t.match(await olderWrites(writes, store), { tables: { person: 2, revision: 5 }, writes: { person: 0, revision: 0 } })

  t.notOk(await isAcceptedOlder(writes))
  const before = Date.now() * 100
  await start(true)
  t.ok(await isAcceptedOlder(writes))
  const [revision, person] = await sequences()
  t.ok(revision >= before && person >= before, `${revision}, ${person}`)
  await start()
  t.ok((await sequences())[0] > revision, 'each start continues at the clock')

  await loaded(person + 7, 5)
  await refused(/^PostgreSQL is older than the tables: it has people up to number 2 /)
  await writes.query(`INSERT INTO erasure (name_hash, person_ids, erased_at) VALUES ('', ARRAY[$1::bigint], now())`, [
    person + 7
  ])
  await start()
  await writes.query("SELECT nextval('person_id_seq')")
  t.pass('an erased person is known')

  const future = 900_000_000_000_000
  await writes.query(`SELECT setval('revision', $1::bigint)`, [future])
  await start()
  t.equal((await sequences())[0], future, 'a sequence never goes back')
  await loaded(person + 7, future + 1)
  await refused(/changes up to 900000000000001\./)
})
