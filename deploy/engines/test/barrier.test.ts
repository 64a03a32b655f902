import { type Test, test } from 'tap'
import { barrierOf, tablesIn } from '../src/clickhouse/barrier.js'
import { ClickHouseError } from '../src/clickhouse/clickhouse.js'

/** A barrier whose server answers from a table of statements; others are answered with nothing. */
const answered = (answers: Readonly<Record<string, string | number>>) => {
  const asked: string[] = []
  const barrier = barrierOf(async (text) => {
    const statement = text.split('\n')[0]?.trim() ?? ''
    asked.push(statement)
    const answer = Object.entries(answers).find(([start]) => statement.startsWith(start))?.[1] ?? ''
    if (typeof answer === 'number') throw new ClickHouseError(`Code: ${answer}`, { code: answer })
    return new TextEncoder().encode(answer)
  })
  return { barrier, asked, syncs: () => asked.filter((each) => each.startsWith('SYSTEM')) }
}

const REPLICATED = { 'SELECT d.name': 'gamenet\tReplicated' }

test('a statement waits for the tables that it reads, and for no other one', (t) => {
  const cases: [string, Record<string, unknown>, string[]][] = [
    ['SELECT max(c.next) FROM checkpoint AS c', {}, ['checkpoint']],
    [
      'INSERT INTO a (x) SELECT e.x FROM {event_a: Identifier} AS e LEFT JOIN b AS s ON s.x = e.x',
      { event_a: 'event_a__7' },
      ['b', 'event_a__7']
    ],
    ['SELECT 1 FROM numbers(5)', {}, []],
    ['WITH r AS (SELECT 1 FROM a AS x) SELECT * FROM r', {}, ['a']],
    ["SELECT ' FROM b' FROM a AS x", {}, ['a']],
    ['SELECT p.rows FROM system.parts AS p', {}, []],
    ['SELECT * FROM gamenet.dead_letter AS p FINAL', {}, ['dead_letter']]
  ]
  for (const [sql, parameters, tables] of cases) t.same(tablesIn(sql, parameters), tables, sql)
  t.end()
})

test('a database that does not replicate is asked once, and never waited for', async (t) => {
  const { barrier, asked } = answered({})
  await barrier.before('SELECT 1 FROM checkpoint AS c', {})
  await barrier.sync(['checkpoint'])
  t.equal(asked.length, 1)
})

test('a statement about tables waits for the list of tables', async (t) => {
  for (const sql of ['SELECT t.name FROM system.tables AS t', 'CREATE TABLE a AS b', 'SHOW CREATE TABLE a']) {
    const { barrier, syncs } = answered(REPLICATED)
    await barrier.before(sql, {})
    t.same(syncs(), ['SYSTEM SYNC DATABASE REPLICA gamenet'], sql)
  }
})

test('reads leave out a replica that is away, and wait for the others where servers share their tables', async (t) => {
  const readsOf = async (engine: string) => await answered({ 'SELECT d.name': `gamenet\t${engine}` }).barrier.reads()
  t.same(await readsOf('Atomic'), {})
  t.same(await readsOf('Replicated'), { skip_unavailable_shards: 1 })
  t.same(await readsOf('Shared'), { select_sequential_consistency: 1 })
})

test('a view waits for the tables that it reads; its definition is read once', async (t) => {
  const { barrier, syncs, asked } = answered({
    ...REPLICATED,
    'SYSTEM SYNC REPLICA seen': 36,
    'SELECT t.as_select': 'SELECT * FROM gamenet.first AS f JOIN gamenet.second AS s ON s.x = f.x'
  })
  await barrier.sync(['seen'])
  await barrier.sync(['seen'])
  const ofTables = ['SYSTEM SYNC REPLICA first LIGHTWEIGHT', 'SYSTEM SYNC REPLICA second LIGHTWEIGHT']
  t.same(syncs(), ['SYSTEM SYNC REPLICA seen LIGHTWEIGHT', ...ofTables, ...ofTables])
  t.equal(asked.filter((each) => each.startsWith('SELECT t.as_select')).length, 1)
})

test('a table that this replica lacks is waited for; one that is dropped is left to the statement', async (t) => {
  const { barrier, syncs } = answered({ ...REPLICATED, 'SYSTEM SYNC REPLICA': 60 })
  await barrier.sync(['gone'])
  const once = 'SYSTEM SYNC REPLICA gone LIGHTWEIGHT'
  t.same(syncs(), [once, 'SYSTEM SYNC DATABASE REPLICA gamenet', once])
})

test('a table that its replica has not started yet is waited for', async (t) => {
  let tries = 0
  const barrier = barrierOf(async (text) => {
    if (!text.startsWith('SYSTEM')) return new TextEncoder().encode('gamenet\tReplicated')
    tries += 1
    if (tries < 3) throw new ClickHouseError('Code: 242', { code: 242 })
    return new Uint8Array()
  })
  await barrier.sync(['made'])
  t.equal(tries, 3)
})

test('a replica that lags is away, and its error names what it lacks', async (t: Test) => {
  const { barrier } = answered({
    ...REPLICATED,
    'SYSTEM SYNC REPLICA': 159,
    'SELECT q.new_part_name': 'all_0_0_0\tr2\tr1'
  })
  const error = await barrier.sync(['checkpoint']).catch((cause: unknown) => cause)
  t.match(error, { code: 'engine_away' })
  t.match((error as Error).cause, {
    message: 'Table checkpoint of replica r2 lacks part all_0_0_0 of replica r1 after 30 s.'
  })
})
