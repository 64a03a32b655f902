import { readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type ClickHouse, openChdb } from '@gamenet/engines'
import { until } from '@gamenet/engines/testing'
import { migrate, readSide, storeOver } from '@gamenet/projector'
import { Failure, Refusal } from '@gamenet/schemas'
import { pino } from 'pino'
import { Registry } from 'prom-client'
import { type Test, test } from 'tap'
import { erase } from '../src/operate/erase/operation.js'
import { damageOfTables } from '../src/operate/verify/damage-of-tables.js'
import { openTableDamage } from '../src/stores/damaged-tables.js'
import { engineFailure, noteDamage } from '../src/stores/engine-failures.js'
import { loggedError } from '../src/stores/logged-error.js'
import { watchedTables } from '../src/stores/watched-tables.js'
import { flipMiddle } from './service/damaged-files.js'

const REFUSED = { name: 'Refusal', code: 'data_damaged', status: 503 }
const SQL = 'SELECT 1 AS one FROM {network_count: Identifier} AS n'

test('requests that need a damaged table, or one computed from it, are refused; others are answered', async (t) => {
  const clickhouse = await brokenTables(t, ['event_network_count', 'title__7'])
  const registry = new Registry()
  const damage = await open(clickhouse, registry)
  const readers = damage.guarded(clickhouse.readers)
  await t.rejects(readers.rows(SQL, { network_count: 'network_count__0' }), REFUSED)
  const hours = 'SELECT 1 AS one FROM {network_count_hour: Identifier} AS h'
  await t.rejects(readers.json(hours, { network_count_hour: 'network_count_hour__0' }), REFUSED)
  t.same(
    await readers.rows(SQL, { network_count: 'network_count__9' }).catch(({ code }) => code),
    60,
    'another generation'
  )
  t.same(await readers.rows('SELECT t.title_id FROM {title: Identifier} AS t', { title: 'title__0' }), [])
  const reason = /^event_network_count is damaged: 1 of its parts .* gamenet start rebuilds it\.$/
  t.match(await damage.status(), [{ table: 'event_network_count', state: 'repairing', reason }])
  t.match(await registry.metrics(), /gamenet_damaged_tables\{table="event_network_count"\} 1/)
  damage.repairedBy({ caughtUp: async () => undefined })
  t.match(await damage.status(), [{ reason: /it is being rebuilt/ }])
  damage.tables.leave('event_network_count__0', 'its repair failed twice')
  t.match(await damage.status(), [{ state: 'left', reason: /; its repair failed twice\.$/ }])
  await damage.tables.lose([['network-count 0/3', 'Neither the log nor a part has the positions 0 to 6.']])
  t.match(await damage.status(), [{}, { state: 'left', reason: /positions 0 to 6/ }])
  await damage.stop()
  t.notOk(await damage.whenSound())
})

test('a statement that meets damage is refused, and its table is marked', async (t) => {
  const engine = await brokenTables(t, [])
  for (const [table, file, how] of [
    ['title__0', /\.bin$/, 'deleted'],
    ['title_status__0', /mrk/, 'deleted'],
    ['network_count__0', /\.bin$/, 'flipped']
  ] as const) {
    await engine.control.execute(`INSERT INTO ${table} SELECT * FROM generateRandom() LIMIT 1`)
    const path = await partOf(engine, table)
    for (const name of readdirSync(path).filter((each) => file.test(each)))
      await (how === 'deleted' ? rmSync(join(path, name)) : flipMiddle(join(path, name)))
    const { clickhouse, damageWatch } = watchedTables(engine)
    const damage = await openTableDamage({ engines: { store: storeOver(engine.control), damageWatch }, ...quiet() })
    const { rows } = damage.guarded(clickhouse.readers)
    await t.rejects(rows(`SELECT t.* FROM ${table} AS t`), REFUSED, table)
    while (!damage.tables.has(table)) await new Promise(setImmediate)
    t.match((await damage.tables.inUse()).at(-1), { name: table, reason: /^its part \S+ does not match its checksum/ })
    const bare = table.slice(0, -3)
    await t.rejects(rows(`SELECT 1 AS one FROM {${bare}: Identifier} AS t`, { [bare]: table }), REFUSED, 'also others')
    await damage.stop()
  }
})

test('a statement that meets damaged bookkeeping continues with what is left', async (t) => {
  const engine = await brokenTables(t, [])
  const { clickhouse, damageWatch } = watchedTables(engine)
  const damage = await openTableDamage({ engines: { store: storeOver(engine.control), damageWatch }, ...quiet() })
  const tables = damage.guarded(clickhouse.readers)
  for (const next of [7, 8])
    await engine.control.execute(
      `INSERT INTO checkpoint (name, epoch, partition, next) VALUES ('project:title-${next}', 0, 0, ${next})`
    )
  const path = await partOf(engine, 'checkpoint')
  for (const name of readdirSync(path).filter((each) => each.endsWith('.bin'))) await flipMiddle(join(path, name))
  const all = 'SELECT c.* FROM checkpoint AS c'
  // The first of them detaches the part, also for the others.
  const read = (['projections', 'control', 'rebuild'] as const).map((lane) => clickhouse[lane].rows(all))
  for (const rows of await Promise.all(read)) t.equal(rows.length, 1)
  t.match(await damage.status(), [{ table: 'checkpoint', state: 'repairing', reason: /written again/ }])
  const { positions } = readSide(storeOver({ ...clickhouse.control, rows: (...query) => tables.rows(...query) }))
  const serving = { nameOf: String, checkpointOf: String } as never
  await t.rejects(positions(serving, ['project:title']), REFUSED, 'answers up to a position would end too early')
  let isDone = () => {}
  const caughtUp = () => new Promise<void>((resolve) => (isDone = resolve))
  damage.repairedBy({ caughtUp })
  await t.rejects(positions(serving, ['project:title']), REFUSED)
  isDone()
  await until(async () => (await damage.status()).length === 0, 0)
  t.same(await positions(serving, ['project:title']), [])
  await damage.stop()
})

test('a value that an expression cannot read is not damage', async (t) => {
  const clickhouse = await brokenTables(t, [])
  const readers = (await open(clickhouse)).guarded(clickhouse.readers)
  for (const sql of [
    `SELECT toInt32({v: String}) AS a`,
    `SELECT base64Decode(concat('!', {v: String})) AS a`,
    `SELECT base64Decode(concat('!', {v: String}, toString(n.number))) AS a FROM numbers(5) AS n`,
    `SELECT toInt32(substring(toString(n.number), 5)) AS a, {v: String} AS v FROM numbers(5) AS n`
  ]) {
    await t.rejects(readers.rows(sql, { v: '' }), { name: 'ClickHouseError' }, sql)
  }
})

test('requests that do not fit a table are refused if its definition is damaged', async (t) => {
  const clickhouse = await brokenTables(t, [])
  const { rows } = (await open(clickhouse)).guarded(clickhouse.readers)
  const read = () => rows('SELECT t.name_key AS name FROM title__0 AS t')
  await t.rejects(rows('SELECT t.nothing AS nothing FROM title__0 AS t'), { code: 47 }, 'a defect of the program')
  await clickhouse.control.execute('ALTER TABLE title__0 RENAME COLUMN name_key TO nbme_key')
  await t.rejects(read(), { code: 'data_damaged', cause: { code: 47 } })
  const damage = engineFailure(await read().catch((error: unknown) => error), true)
  t.match(damage, { part: 'tables', what: /damaged$/, repair: /move the folder `tables`/ })
})

test('a refusal because of a table that is listed as damaged is no other damage', (t) => {
  const met = new Set<string>()
  noteDamage(met, engineFailure(new Refusal('data_damaged'), true))
  t.same([...met], [])
  noteDamage(met, engineFailure(new Refusal('data_damaged', [], { cause: new Error('page 3') }), true))
  t.match([...met], [/^The write side is damaged: page 3/])
  t.end()
})

test('the log has a refusal without its stack, unless it has a cause', async (t) => {
  const { message } = new Refusal('data_damaged')
  t.same(loggedError(new Refusal('data_damaged')), { code: 'data_damaged', message })
  t.match(loggedError(new Refusal('data_damaged', [], { cause: new Error('bytes') })), { stack: /caused by.*bytes/s })
  const cause = new Error('the answer, of status 500, is invalid')
  for (const code of ['auth_away', 'chat_away', 'engine_away', 'engine_busy', 'disk_full'] as const) {
    const { message } = new Refusal(code, ['The tables'])
    t.same(loggedError(new Refusal(code, ['The tables'], { cause })), {
      code,
      message: `${message} (${cause.message})`
    })
  }
  t.same(loggedError(new Failure('log_unreachable', 'Kafka did not answer', { cause })), {
    message: 'Kafka did not answer'
  })
  t.match(loggedError(new Error('a defect')), { message: 'a defect', stack: /damaged-tables/ })
})

test('tables of a server are only reported, with the commands to type', async (t) => {
  const clickhouse = await brokenTables(t, ['event_network_count'])
  const damage = await openTableDamage({
    engines: { store: storeOver(clickhouse.control), damageWatch: undefined },
    ...quiet()
  })
  const read = { event_network_count: 'event_network_count__0' }
  const sql = 'SELECT 1 AS one FROM {event_network_count: Identifier} AS e'
  t.same(await damage.guarded(clickhouse.readers).rows(sql, read), [])
  t.match(await damage.status(), [
    {
      table: 'event_network_count__0',
      state: 'left',
      reason: /gamenet rebuild.*ALTER TABLE event_network_count__0 DROP/
    }
  ])
  t.same(await damage.tables.inUse(), [])
  await clickhouse.control.execute('INSERT INTO title__0 SELECT * FROM generateRandom() LIMIT 1')
  await flipMiddle(join(await partOf(clickhouse, 'title__0'), 'data.bin'))
  const repair = /^restore the part on the server .* or detach it .* gamenet rebuild/
  for (const run of ['once', 'again'])
    t.match(await damageOfTables(clickhouse, undefined, () => undefined), [{ repair }], run)
})

test('a username is not reported as unknown while a damaged table may name it', async (t) => {
  const none = { rows: async () => [], query: async () => [] }
  const needs = {
    engines: { clickhouse: { control: none }, names: {}, writes: async () => none },
    damage: { tables: { inUse: async () => [{ table: 'presence' }] } },
    finishErasures: () => t.fail('nothing was entered'),
    stopping: new AbortController().signal
  }
  const run = erase.run(needs as never, { username: 'ann', anyway: false }, { onProgress: () => undefined } as never)
  await t.rejects(run, { message: /^Rows of presence may be missing .* or use --anyway\.$/ })
})

function quiet() {
  return { registry: new Registry(), logger: pino({ level: 'silent' }) }
}

async function open(clickhouse: ClickHouse, registry = new Registry()) {
  const engines = { store: storeOver(clickhouse.control), damageWatch: watchedTables(clickhouse).damageWatch }
  return await openTableDamage({ engines, ...quiet(), registry })
}

/** Returns the folder of a part of a table. */
async function partOf({ control }: ClickHouse, table: string): Promise<string> {
  const sql = 'SELECT p.path AS path FROM system.parts AS p WHERE p.table = {table: String} AND p.active LIMIT 1'
  return String((await control.rows(sql, { table }))[0]?.path)
}

/** Migrated tables; only the named ones have a part that the engine could not read. */
async function brokenTables(t: Test, names: readonly string[]): Promise<ClickHouse> {
  const clickhouse = await openChdb({ path: join(t.testdir({}), 'tables') })
  t.teardown(() => clickhouse.close())
  const tables = clickhouse.control
  await migrate(tables)
  await tables.execute('CREATE TABLE title__7 AS title__0')
  for (const name of names.map((table) => (table.includes('__') || table === 'checkpoint' ? table : `${table}__0`))) {
    await tables.execute(`INSERT INTO ${name} SELECT * FROM generateRandom() LIMIT 1`)
    const [part] = await tables.rows(
      `SELECT p.name AS name, t.data_paths[1] AS path FROM system.parts AS p JOIN system.tables AS t ON t.name = p.table
       WHERE p.table = {name: String} AND p.active LIMIT 1`,
      { name }
    )
    await tables.execute(`ALTER TABLE ${name} DETACH PARTITION ALL`)
    const folder = join(String(part?.path), 'detached')
    for (const each of readdirSync(folder)) renameSync(join(folder, each), join(folder, `broken-on-start_${each}`))
  }
  return clickhouse
}
