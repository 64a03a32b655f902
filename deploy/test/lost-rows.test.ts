import { readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type ClickHouse, openChdb } from '@gamenet/engines'
import { LogUnreachable } from '@gamenet/engines/log'
import { migrate, readSide, storeOver } from '@gamenet/projector'
import { Refusal, topics } from '@gamenet/schemas'
import { pino } from 'pino'
import { Registry } from 'prom-client'
import { type Test, test } from 'tap'
import { erase } from '../src/operate/erase/operation.js'
import { requireRepaired } from '../src/operate/rebuild/operation.js'
import { damageOfTables } from '../src/operate/verify/damage-of-tables.js'
import { engineFailure } from '../src/stores/engine-failures.js'
import { loggedError } from '../src/stores/logged-error.js'
import { openLostRows, type RepairTime } from '../src/stores/lost-rows.js'
import { flipMiddle } from './service/damaged-files.js'

const SQL = 'SELECT 1 AS one FROM {network_count: Identifier} AS n'

test('requests that need lost rows are refused until the rows are restored, all others are answered', async (t) => {
  const clickhouse = await brokenTables(t, ['network_count', 'title__7'])
  const { lostRows, registry } = await open(clickhouse, 'now')
  const readers = lostRows.guarded(clickhouse.readers)
  const refused = {
    name: 'Refusal',
    code: 'table_incomplete',
    status: 503,
    message: /the table network_count were lost/
  }
  await t.rejects(readers.rows(SQL, { network_count: 'network_count__0' }), refused)
  await t.rejects(readers.json('SELECT 1 FROM {network_count_hour: Identifier} AS h', {}), {
    ...refused,
    message: /network_count_hour/
  })
  t.same(await readers.rows('SELECT t.title_id FROM {title: Identifier} AS t', { title: 'title__0' }), [])
  t.match(await lostRows.status(), [
    { table: 'network_count', parts: 1, state: 'repairing', reason: /being restored from the log/ },
    { table: 'title__7', parts: 1, state: 'left', reason: /the service drops it/ }
  ])
  t.same(lostRows.repairing(), ['network_count'])
  t.match(await registry.metrics(), /gamenet_lost_parts\{table="network_count"\} 1/)

  let settle = () => {}
  const caughtUp = new Promise<void>((resolve) => {
    settle = resolve
  })
  t.throws(() => requireRepaired(lostRows.repairing()), /Rows of network_count were lost/)
  lostRows.finish({ caughtUp: () => caughtUp })
  await t.rejects(readers.rows(SQL, { network_count: 'network_count__0' }), refused)
  settle()
  while (lostRows.repairing().length > 0 || (await lostRows.status()).length > 1) await new Promise(setImmediate)
  t.ok(await lostRows.whenRepaired())
  requireRepaired(lostRows.repairing())
  t.same(await readers.rows(SQL, { network_count: 'network_count__0' }), [])
  t.match(await registry.metrics(), /gamenet_lost_parts\{table="network_count"\} 0/)
  t.match(await lostRows.status(), [{ table: 'title__7' }], 'rows that were not restored stay reported')
  await lostRows.stop()
})

test('answers up to a position wait for the end of the log while the position of the tables is lost', async (t) => {
  const clickhouse = await brokenTables(t, ['checkpoint'])
  const { lostRows } = await open(clickhouse, 'now', {
    extents: async () => [{ epoch: 0, partition: 0, first: 0, next: 5 }]
  })
  const { rows } = lostRows.guarded(clickhouse.readers)
  const { positions } = readSide(storeOver({ ...clickhouse.control, rows }))
  const serving = { nameOf: String, checkpointOf: String } as never
  await t.rejects(positions(serving, ['project:leaderboard-history']), { code: 'table_incomplete', status: 503 })
  const waits: unknown[] = []
  const caughtUp = async ({ targets = [] }: { targets?: readonly unknown[] } = {}) => void waits.push(...targets)
  lostRows.finish({ caughtUp })
  t.ok(await lostRows.whenRepaired())
  t.equal(waits.length, topics.length)
  t.match(waits, [{ next: 5 }])
  t.same(await positions(serving, ['project:leaderboard-history']), [])
  await lostRows.stop()
})

test('a repair that cannot begin here refuses reads, and asks no one to drop anything', async (t) => {
  const clickhouse = await brokenTables(t, ['event_network_count'])
  const away = { extents: async () => Promise.reject(new Error('away')) }
  for (const [repairs, log] of [
    ['later', undefined],
    ['now', away]
  ] as const) {
    const { lostRows } = await open(clickhouse, repairs, log)
    lostRows.finish({ caughtUp: () => Promise.reject(t.fail('no repair has begun')) })
    t.notOk(await lostRows.whenRepaired())
    const readers = lostRows.guarded(clickhouse.readers)
    await t.rejects(
      readers.rows('SELECT 1 AS one FROM {event_network_count: Identifier} AS e', { event_network_count: 'title__7' }),
      { code: 'table_incomplete' }
    )
    const [status] = await lostRows.status()
    t.match(status, { table: 'event_network_count', state: 'left', reason: /next gamenet start/ })
    t.notMatch(status?.reason, /DROP/)
    await lostRows.stop()
  }
})

test('without the keys of people, nothing about them is loaded again by itself', async (t) => {
  const clickhouse = await brokenTables(t, ['event_presence', 'network_count'])
  const { lostRows } = await open(clickhouse, 'now', undefined, async () => true)
  t.match(
    (await lostRows.status()).map(({ state, reason }) => [state, reason]),
    Array(2).fill(['left', /not loaded again, because PostgreSQL lacks keys/])
  )
  const { rows } = lostRows.guarded(clickhouse.readers)
  const read = rows('SELECT e.offset AS offset FROM {event_presence: Identifier} AS e', {
    event_presence: 'event_presence__0'
  })
  await t.rejects(read, { code: 'table_incomplete' }, 'no answer is wrong')
  await lostRows.stop()
})

test('rows that stay lost are reported at each start, also when their parts are dropped', async (t) => {
  const clickhouse = await brokenTables(t, [])
  await clickhouse.control.execute(
    `INSERT INTO checkpoint (name, epoch, partition, next) VALUES ('gone:network-count', 0, 3, 7)`
  )
  const { lostRows, registry } = await open(clickhouse, 'now')
  t.match(await lostRows.status(), [
    { table: 'event_network_count', state: 'left', reason: /partition 3, only from offset 7/ }
  ])
  t.match(await registry.metrics(), /gamenet_lost_parts\{table="event_network_count"\} 1/)
})

test('requests that need a part are refused when one of its files vanished while the service runs', async (t) => {
  const clickhouse = await brokenTables(t, [])
  const { lostRows } = await open(clickhouse, 'now')
  const { rows } = lostRows.guarded(clickhouse.readers)
  for (const [table, file] of [
    ['title__0', /\.bin$/],
    ['title_status__0', /mrk/]
  ] as const) {
    await clickhouse.control.execute(`INSERT INTO ${table} SELECT * FROM generateRandom() LIMIT 1`)
    const parts = 'SELECT p.path AS path FROM system.parts AS p WHERE p.table = {table: String} AND p.active'
    const [part] = await clickhouse.control.rows(parts, { table })
    for (const name of readdirSync(String(part?.path)).filter((each) => file.test(each)))
      rmSync(join(String(part?.path), name))
    await t.rejects(rows(`SELECT t.* FROM ${table} AS t`), { code: 'data_damaged', status: 503 }, table)
  }
})

test('a value that an expression cannot read is not damage', async (t) => {
  const clickhouse = await brokenTables(t, [])
  const readers = (await open(clickhouse, 'now')).lostRows.guarded(clickhouse.readers)
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
  const { lostRows } = await open(clickhouse, 'now')
  const { rows } = lostRows.guarded(clickhouse.readers)
  const read = () => rows('SELECT t.name_key AS name FROM title__0 AS t')
  await t.rejects(rows('SELECT t.nothing AS nothing FROM title__0 AS t'), { code: 47 }, 'a defect of the program')
  await clickhouse.control.execute('ALTER TABLE title__0 RENAME COLUMN name_key TO nbme_key')
  await t.rejects(read(), { code: 'data_damaged', cause: { code: 47 } })
  const damage = engineFailure(await read().catch((error: unknown) => error), 'chDB')
  t.match(damage, { part: 'tables', what: /damaged$/, repair: /move the folder `tables`/ })
})

test('the log has a refusal without its stack, unless it has a cause', async (t) => {
  const sentence = 'Rows of the table title were lost and are being restored from the log; retry later.'
  t.same(loggedError(new Refusal('table_incomplete', ['title'])), { code: 'table_incomplete', message: sentence })
  t.match(loggedError(new Refusal('data_damaged', [], { cause: new Error('bytes') })), { stack: /caused by.*bytes/s })
  const cause = new Error('the answer, of status 500, is invalid')
  for (const code of ['auth_away', 'chat_away', 'engine_away', 'engine_busy', 'disk_full'] as const) {
    const { message } = new Refusal(code, ['The tables'])
    t.same(loggedError(new Refusal(code, ['The tables'], { cause })), {
      code,
      message: `${message} (${cause.message})`
    })
  }
  t.same(loggedError(new LogUnreachable('Kafka did not answer', { cause })), { message: 'Kafka did not answer' })
  t.match(loggedError(new Error('a defect')), { message: 'a defect', stack: /lost-rows/ })
})

test('tables of a server are only reported, with the commands to type', async (t) => {
  const clickhouse = await brokenTables(t, ['event_network_count'])
  const { lostRows } = await open(clickhouse, 'never')
  t.same(
    await lostRows
      .guarded(clickhouse.readers)
      .rows('SELECT 1 AS one FROM {event_network_count: Identifier} AS e', { event_network_count: 'title__7' }),
    []
  )
  t.match(await lostRows.status(), [
    { table: 'event_network_count', state: 'left', reason: /gamenet rebuild.*ALTER TABLE event_network_count__0 DROP/ }
  ])
  t.same(lostRows.repairing(), [])
})

test('a damaged part on a server is reported with the way out, and not detached', async (t) => {
  const { control, rebuild } = await brokenTables(t, [])
  await control.execute('INSERT INTO title__0 SELECT * FROM generateRandom() LIMIT 1')
  const [part] = await control.rows(
    "SELECT p.path AS path FROM system.parts AS p WHERE p.table = 'title__0' AND p.active"
  )
  await flipMiddle(join(String(part?.path), 'data.bin'))
  const options = { repair: true, isServer: true, lost: [] }
  const repair = /^restore the part on the server .* or detach it .* gamenet rebuild/
  for (const run of ['once', 'again'])
    t.match(
      await damageOfTables({ control, rebuild }, options, () => undefined),
      [{ repair, repaired: undefined }],
      run
    )
})

test('a damaged part of an event table is not detached while the log cannot read events of its topic', async (t) => {
  const { control, rebuild } = await brokenTables(t, [])
  await control.execute('INSERT INTO event_title__0 SELECT * FROM generateRandom() LIMIT 1')
  const [part] = await control.rows(
    "SELECT p.path AS path FROM system.parts AS p WHERE p.table = 'event_title__0' AND p.active"
  )
  await flipMiddle(join(String(part?.path), 'data.bin'))
  const found = async (topic: string) =>
    await damageOfTables({ control, rebuild }, { repair: true, lost: [], faults: [{ topic }] }, () => undefined)
  t.match(await found('title'), [{ repair: /gamenet restore DIR\. The log cannot read/, repaired: undefined }])
  t.match(await found('title-count'), [{ repaired: /^it was detached/ }], 'still there, and of another topic')
})

test('a username is not reported as unknown while rows that may name it are restored', async (t) => {
  const none = { rows: async () => [], query: async () => [] }
  const needs = (repairing: readonly string[]) => ({
    engines: { clickhouse: { control: none }, names: {}, writes: async () => none },
    lostRows: { repairing: () => repairing },
    finishErasures: () => t.fail('nothing was entered'),
    stopping: new AbortController().signal
  })
  const run = (repairing: readonly string[]) =>
    erase.run(needs(repairing) as never, { username: 'ann', anyway: false }, { onProgress: () => undefined } as never)
  await t.rejects(run(['presence']), { message: /^Rows of presence were lost .* or use --anyway\.$/ })
})

async function open(
  clickhouse: ClickHouse,
  repairs: RepairTime,
  log: object = { extents: async () => [] },
  areKeysLost = async () => false
) {
  const registry = new Registry()
  const engines = { store: storeOver(clickhouse.control), log: log as never, names: { log: 'LMDB' } }
  const lines: unknown[] = []
  const logger = pino({}, { write: (line) => lines.push(JSON.parse(line)) })
  const lostRows = await openLostRows({ engines, repairs, areKeysLost, registry, logger })
  return { lostRows, registry, lines }
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
