import { type Test, test } from 'tap'
import { openClickHouseServer } from '../src/index.js'
import { replicasMissing, replicatedDatabase } from '../testing/replicas.js'
import { until } from '../testing/until.js'

const skip = replicasMissing()
const LOOKS = Number(process.env.CAMPAIGN_LOOKS ?? 10_000)
const ROWS = 20_000

/** Two of three replicas with a table of rows and their checkpoint. The other two are a majority. */
const pair = async (t: Test) => {
  const urls = await replicatedDatabase(t)
  const [first, middle, second] = urls.map((url) => openClickHouseServer({ url }))
  if (first === undefined || middle === undefined || second === undefined) throw new Error('there are three replicas')
  t.teardown(() => Promise.all([first.close(), middle.close(), second.close()]))
  await first.control.execute(
    'CREATE TABLE made (n UInt64, at UInt64) ENGINE = ReplicatedReplacingMergeTree(at) ORDER BY n'
  )
  await first.control.execute(
    'CREATE TABLE checkpoint (name String, next UInt64) ENGINE = ReplicatedReplacingMergeTree(next) ORDER BY name'
  )
  await second.control.sync(['made', 'checkpoint'])
  return { first, middle, second }
}

test('a checkpoint arrives before its rows, and not behind the barrier', { skip }, async (t) => {
  const { first, second } = await pair(t)
  await second.readers.rows('SELECT 1')
  await second.control.execute('SYSTEM STOP FETCHES made')
  await first.loader.execute('INSERT INTO made SELECT number, 1 FROM numbers(5)')
  await first.loader.execute("INSERT INTO checkpoint VALUES ('load', 5)")
  await second.control.sync(['checkpoint'])
  const count = 'SELECT (SELECT max(c.next) FROM checkpoint AS c) AS next, (SELECT count() FROM made AS m) AS rows'
  t.same(await second.readers.rows(count), [{ next: '5', rows: '0' }], 'a checkpoint without its rows')
  const behind = second.projections.rows('SELECT count() AS rows FROM made AS m')
  await second.control.execute('SYSTEM START FETCHES made')
  t.same(await behind, [{ rows: '5' }], 'the same read behind the barrier')
})

test('an insert is acknowledged when a majority has it', { skip }, async (t) => {
  const { first, middle, second } = await pair(t)
  for (const each of [middle, second]) await each.control.execute('SYSTEM STOP FETCHES made')
  let isAcknowledged = false
  const insert = first.loader.execute('INSERT INTO made SELECT number, 1 FROM numbers(5)').then(() => {
    isAcknowledged = true
  })
  const queued = "SELECT count() AS parts FROM system.replication_queue AS q WHERE q.table = 'made'"
  while (Number((await second.readers.rows(queued))[0]?.parts) === 0);
  t.notOk(isAcknowledged, 'one of three has the rows')
  await middle.control.execute('SYSTEM START FETCHES made')
  await insert
  t.same(await middle.readers.rows('SELECT count() AS rows FROM made AS m'), [{ rows: '5' }])
})

test('a block that is inserted, deleted and inserted again is stored, and a deletion reaches all', {
  skip
}, async (t) => {
  const { first, middle, second } = await pair(t)
  const block = new TextEncoder().encode('[1,1]\n[2,1]\n')
  const count = 'SELECT count() AS rows FROM made AS m'
  for (const deletion of ['DELETE FROM made WHERE n > 0', 'ALTER TABLE made DELETE WHERE n > 0']) {
    await first.loader.insert('made', ['n', 'at'], block)
    t.same(await second.projections.rows(count), [{ rows: '2' }])
    await middle.control.execute(deletion)
    for (const each of [first, middle, second]) t.same(await each.readers.rows(count), [{ rows: '0' }], deletion)
  }
  await first.loader.insert('made', ['n', 'at'], block)
  t.same(await second.projections.rows(count), [{ rows: '2' }])
})

test('a deletion that was killed is an error, and not one of a replica that is away', { skip }, async (t) => {
  const { first } = await pair(t)
  await first.loader.execute('INSERT INTO made SELECT number, 1 FROM numbers(5)')
  const deletion = first.control.execute('ALTER TABLE made DELETE WHERE throwIf(n = 3) = 0')
  const refused = t.rejects(deletion, { code: 341 })
  const own = "database = currentDatabase() AND table = 'made' AND NOT is_done"
  await until(async () => (await first.readers.rows(`SELECT 1 FROM system.mutations WHERE ${own}`)).length > 0)
  await first.loader.execute(`KILL MUTATION WHERE ${own}`)
  await refused
})

test('of many looks behind the barrier none sees a checkpoint without its rows', { skip, timeout: 0 }, async (t) => {
  const { first, second } = await pair(t)
  let isOver = false
  const write = async (): Promise<void> => {
    for (let next = 0; !isOver; next += ROWS) {
      await first.loader.execute(`INSERT INTO made SELECT number, 1 FROM numbers(${next}, ${ROWS})`)
      await first.loader.execute(`INSERT INTO checkpoint VALUES ('load', ${next + ROWS})`)
    }
  }
  const writing = write()
  const ahead = async (lane: 'readers' | 'projections', looks: number): Promise<number> => {
    let found = 0
    for (let look = 0; look < looks; look += 1) {
      const [read] = await second[lane].rows('SELECT max(c.next) AS next FROM checkpoint AS c')
      const next = Number(read?.next)
      const newest = 'SELECT count() AS rows FROM made AS m WHERE m.n >= {from: UInt64} AND m.n < {next: UInt64}'
      const [made] = await second[lane].rows(newest, { from: Math.max(0, next - ROWS), next })
      if (next > 0 && Number(made?.rows) < ROWS) found += 1
    }
    return found
  }
  const plain = await ahead('readers', Math.min(LOOKS, 500))
  const behind = await ahead('projections', LOOKS)
  isOver = true
  await writing
  t.comment(
    `a checkpoint ahead of its rows: ${plain} of ${Math.min(LOOKS, 500)} looks, behind the barrier ${behind} of ${LOOKS}`
  )
  t.equal(behind, 0)
})
