import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { test } from 'tap'
import { type ClickHouse, openChdb } from '../src/index.js'
import { until } from '../testing/until.js'
import { isRunning } from './clickhouse-contract.js'

/** The rights of tests that read tables of the engine itself. */
const ALL = 'GRANT ALL ON *.*'
const isGone = async (pid: number | undefined): Promise<boolean> => {
  try {
    return (await readFile(`/proc/${pid}/stat`, 'utf8')).includes(') Z ')
  } catch {
    return true
  }
}
const answers = (clickhouse: ClickHouse) => () =>
  clickhouse.readers.rows('SELECT 1 AS n').then(
    () => true,
    () => false
  )

test('a killed engine and a stopped one are started again; stored rows stay; each end is reported', async (t) => {
  const warnings: string[] = []
  const clickhouse = await openChdb({
    path: join(t.testdir(), 'clickhouse'),
    warn: (sentence) => warnings.push(sentence),
    silence: { pauseMs: 20, silenceMs: 500 }
  })
  t.teardown(() => clickhouse.close())
  await clickhouse.projections.execute('CREATE TABLE kept (a UInt8) ENGINE = MergeTree ORDER BY a')
  const insert = (a: number) => clickhouse.loader.insert('kept', ['a'], new TextEncoder().encode(`[${a}]\n`))
  for (const [n, signal] of (['SIGKILL', 'SIGSTOP'] as const).entries()) {
    await insert(n)
    const before = clickhouse.process()
    const lost = clickhouse.readers.rows('SELECT sum(sleepEachRow(0.1)) FROM numbers(300) SETTINGS max_block_size = 1')
    await until(() => clickhouse.stats().lanes.readers.running === 1, nextTurn)
    process.kill(before.pid ?? 0, signal)
    await t.rejects(lost, { code: 'engine_away' })
    await until(answers(clickhouse))
    t.equal(clickhouse.process().restarts, n + 1)
    t.ok(await isGone(before.pid))
  }
  await insert(2)
  t.same(await clickhouse.readers.rows('SELECT a FROM kept ORDER BY a'), [{ a: 0 }, { a: 1 }, { a: 2 }])
  const end = 'ClickHouse, a process of this service, has ended:'
  t.same(warnings, [
    `${end} it ended with SIGKILL. It is started again.`,
    `${end} it did not answer for 0.5 s. It is started again.`
  ])
})

test('an engine that cannot be started again is reported in the end', async (t) => {
  const path = join(t.testdir(), 'clickhouse')
  const lost = new Promise<string>((resolve) => {
    void openChdb({ path, onLost: resolve, restart: { firstMs: 1, maxMs: 1 } }).then((clickhouse) => {
      t.teardown(() => clickhouse.close())
      rmSync(path, { recursive: true, force: true })
      writeFileSync(path, 'no folder')
      process.kill(clickhouse.process().pid ?? 0, 'SIGKILL')
    })
  })
  t.match(await lost, /^ClickHouse has ended 11 times in a row: .*[^.]\.$/)
})

test('the engine ends with its parent; no process and no file remains', async (t) => {
  const path = join(t.testdir(), 'clickhouse')
  const index = new URL('../src/index.js', import.meta.url).href
  const program = `import { openChdb } from ${JSON.stringify(index)}
    const { process: of } = await openChdb({ path: ${JSON.stringify(path)} })
    console.log(of().pid)
    process.kill(process.pid, 'SIGKILL')`
  const parent = spawn(process.execPath, ['--input-type=module', '--eval', program])
  const [pid] = await once(parent.stdout, 'data')
  await until(() => isGone(Number(pid)))
  const clickhouse = await openChdb({ path })
  const mine = clickhouse.process().pid
  const files = readdirSync(path)
  await clickhouse.close()
  t.ok(await isGone(mine))
  const again = await openChdb({ path })
  await again.close()
  t.same(readdirSync(path), files)
})

test('nobody signs in without the password, and a statement has the rights of the service', async (t) => {
  const clickhouse = await openChdb({ path: join(t.testdir(), 'clickhouse') })
  t.teardown(() => clickhouse.close())
  const { port } = clickhouse.process()
  const ask = (user: string) =>
    fetch(`http://127.0.0.1:${port}/?query=SELECT+1`, {
      headers: user === '' ? {} : { Authorization: `Basic ${Buffer.from(user).toString('base64')}` }
    })
  for (const user of ['', 'default:', 'gamenet:', 'gamenet:guess']) t.not((await ask(user)).status, 200, user)
  for (const [code, statement] of [
    [497, "SELECT * FROM url('http://127.0.0.1/', 'LineAsString')"],
    [497, 'SELECT * FROM system.users'],
    [497, 'CREATE DATABASE other']
  ] as const)
    await t.rejects(clickhouse.control.rows(statement), { code }, statement)
})

const LANDLOCK = { skip: process.platform !== 'linux' && 'Landlock is of Linux' }

test('the kernel confines the engine to its directory and its port', LANDLOCK, async (t) => {
  const folder = t.testdir({ secret: 'hidden' })
  const secret = join(folder, 'secret')
  for (const abiMax of [0, 1, 3, 4, 0xffff]) {
    const limits = { control: { seconds: 2, memoryBytes: 2 ** 28, threads: 1 } }
    const clickhouse = await openChdb({ path: join(folder, `tables-${abiMax}`), grants: ALL, abiMax, limits })
    const { landlock } = clickhouse.process()
    t.ok(landlock === (abiMax < 2 ? 0 : abiMax) || landlock < abiMax, `${landlock} of ${abiMax}`)
    const rows = (statement: string) => clickhouse.control.rows(statement)
    await clickhouse.control.execute('CREATE TABLE kept (a UInt8) ENGINE = MergeTree ORDER BY a')
    await clickhouse.control.execute('INSERT INTO kept VALUES (1)')
    await clickhouse.control.execute(`ALTER TABLE kept DETACH PART 'all_1_1_0'`)
    await clickhouse.control.execute('DROP TABLE kept')
    t.match(await rows(`SELECT toString(toDateTime('2026-07-01 12:00:00', 'Europe/Berlin')) AS at`), [{ at: /^2026/ }])
    const reads = [
      `SELECT file('${secret}') AS text`,
      `SELECT * FROM file('/etc/passwd', 'LineAsString')`,
      `SELECT toDateTime(0, 'file:${secret}') AS at`,
      `SELECT * FROM file('/proc/1/environ', 'LineAsString')`
    ]
    for (const statement of landlock > 0 ? reads : [])
      await t.rejects(rows(statement), { name: 'ClickHouseError' }, `${abiMax}: ${statement}`)
    if (landlock >= 4) {
      const { port } = clickhouse.process()
      const own = `url('http://127.0.0.1:${port}/ping', 'LineAsString') SETTINGS http_max_tries = 1`
      await t.rejects(rows(`SELECT * FROM (SELECT * FROM ${own})`), { message: /Permission denied/ })
    }
    await clickhouse.close()
  }
})

test('stored rows survive closing and opening', async (t) => {
  const path = join(t.testdir(), 'clickhouse')
  const first = await openChdb({ path })
  await first.projections.execute('CREATE TABLE kept (a UInt8) ENGINE = MergeTree ORDER BY a')
  await first.loader.insert('kept', ['a'], new TextEncoder().encode('[7]\n'))
  await first.close()
  const second = await openChdb({ path })
  t.teardown(() => second.close())
  t.same(await second.readers.rows('SELECT a FROM kept'), [{ a: 7 }])
})

test('a directory opens with any number of broken parts, which the engine detaches', async (t) => {
  const path = join(t.testdir(), 'clickhouse')
  const first = await openChdb({ path })
  await first.projections.execute('CREATE TABLE kept (a UInt8) ENGINE = MergeTree ORDER BY a PARTITION BY a')
  // One more than the engine tolerates by default.
  await first.projections.execute('INSERT INTO kept SELECT number FROM numbers(101)')
  await first.loader.insert('kept', ['a'], new TextEncoder().encode('[200]\n'))
  await first.close()
  for (const file of readdirSync(path, { recursive: true, encoding: 'utf8' })) {
    if (/\/\d+_\d+_\d+_0\//.test(file) && !file.includes('/200_')) truncateSync(join(path, file))
  }
  const second = await openChdb({ path })
  t.teardown(() => second.close())
  t.same(await second.readers.rows('SELECT a FROM kept'), [{ a: 200 }])
  t.same(
    await second.readers.rows('SELECT d.reason, toUInt8(count()) AS n FROM system.detached_parts AS d GROUP BY ALL'),
    [{ reason: 'broken-on-start', n: 101 }]
  )
})

test('tables flush inserted and merged parts, also tables that existed before', async (t) => {
  const clickhouse = await openChdb({ path: join(t.testdir(), 'clickhouse'), grants: ALL })
  t.teardown(() => clickhouse.close())
  const settings = await clickhouse.readers.rows(
    `SELECT s.name, s.value FROM system.merge_tree_settings AS s
     WHERE match(s.name, '^(fsync|min_.*_to_fsync_after_merge)') ORDER BY s.name`
  )
  t.same(settings, [
    { name: 'fsync_after_insert', value: '1' },
    { name: 'fsync_part_directory', value: '1' },
    { name: 'min_compressed_bytes_to_fsync_after_merge', value: '1' },
    { name: 'min_rows_to_fsync_after_merge', value: '1' }
  ])
})

test('a directory in use by another process is refused in one sentence', async (t) => {
  const path = join(t.testdir(), 'clickhouse')
  const clickhouse = await openChdb({ path })
  t.teardown(() => clickhouse.close())
  const index = fileURLToPath(new URL('../src/index.js', import.meta.url))
  const program = `import { openChdb } from ${JSON.stringify(index)}
    await openChdb({ path: ${JSON.stringify(path)} }).then(() => console.log('opened'), (error) => console.log(error.message))`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program])
  t.match(stdout, /^The ClickHouse directory .* is in use by another process \(\d+\); .*\.\n$/)
  t.same(await clickhouse.readers.rows('SELECT 1 AS n'), [{ n: 1 }], 'the holder is unharmed')
})

test('a damaged definition of a table is refused with the name of its file, and its bytes are not printed', async (t) => {
  const path = join(t.testdir(), 'clickhouse')
  const first = await openChdb({ path })
  await first.projections.execute('CREATE TABLE kept (a UInt8) ENGINE = MergeTree ORDER BY a')
  await first.close()
  const file = join(path, 'metadata', 'default', 'kept.sql')
  const sound = readFileSync(file)
  const digit = sound.indexOf("UUID '") + 10
  for (const [at, byte] of [
    [40, 0x07],
    [40, 0xe1],
    // With another digit the table would be empty.
    [digit, sound[digit] === 0x31 ? 0x32 : 0x31]
  ] as const) {
    const damaged = Buffer.from(sound)
    damaged[at] = byte
    writeFileSync(file, damaged)
    await t.rejects(openChdb({ path }), {
      code: 'tables_unopened',
      message: /the definition in .*kept\.sql is damaged/
    })
  }
  writeFileSync(file, sound)
  await (await openChdb({ path })).close()
})

test('a library that cannot be loaded, and a process that is killed while it starts, do not blame the tables', async (t) => {
  const folder = t.testdir({ 'libchdb.so': 'no library' })
  const [path, library] = [join(folder, 'clickhouse'), join(folder, 'libchdb.so')]
  for (const file of [library, join(folder, 'missing.so')]) {
    const message = /^The library of ClickHouse cannot be loaded \(.*\)\. Run `npm ci`\.$/
    await t.rejects(openChdb({ path, library: file }), { code: 'engine_unstarted', message }, file)
  }
  const children = () => readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').trim().split(' ')
  const before = process.platform === 'linux' ? children() : undefined
  if (before === undefined) return
  const killed = t.rejects(openChdb({ path }), {
    code: 'engine_unstarted',
    message: 'ClickHouse was killed by SIGKILL while it started: too little memory?'
  })
  for (const pid of children().filter((each) => !before.includes(each))) process.kill(Number(pid), 'SIGKILL')
  await killed
  await (await openChdb({ path })).close()
})

test('two directories are open side by side; a path that is not a directory is refused in one sentence', async (t) => {
  const dir = t.testdir()
  const clickhouse = await openChdb({ path: join(dir, 'first') })
  t.teardown(() => clickhouse.close())
  const second = await openChdb({ path: join(dir, 'second') })
  t.teardown(() => second.close())
  await clickhouse.loader.execute('CREATE TABLE kept (a UInt8) ENGINE = MergeTree ORDER BY a')
  t.same(await second.readers.rows('EXISTS TABLE kept'), [{ result: 0 }])
  writeFileSync(join(dir, 'file'), '')
  await t.rejects(openChdb({ path: join(dir, 'file') }), { message: /cannot be written \(EEXIST\)/ })
})

test('streams wait for slow readers; a few run at once and some wait; a reader that disconnects ends its stream', async (t) => {
  const clickhouse = await openChdb({ path: join(t.testdir(), 'clickhouse') })
  t.teardown(() => clickhouse.close())
  const { readers, control, stats } = clickhouse
  const endless = `SELECT n.number AS number, 'endless-stream' AS mark FROM numbers(1000000000000) AS n`
  const open3 = () => readers.stream(endless, {}, { format: 'CSVWithNames' })
  const bodies = await Promise.all([open3(), open3(), open3()])
  const leaving = new AbortController()
  const waiting = Array.from({ length: 64 }, () =>
    t.rejects(readers.stream(endless, {}, { format: 'CSVWithNames', signal: leaving.signal }), { message: 'left' })
  )
  await t.rejects(open3(), { code: 'engine_busy', retryAfterSeconds: 5 })
  leaving.abort(new Error('left'))
  await Promise.all(waiting)
  t.same((await readers.rows('SELECT 1 AS one'))[0], { one: 1 }, 'answers go on meanwhile')
  for (const body of bodies) body.destroy()
  await until(() => stats().lanes.exports.running === 0, nextTurn)
  t.notOk(await isRunning(control, 'endless-stream'))
  const abort = new AbortController()
  const aborted = await readers.stream(endless, {}, { format: 'Parquet', signal: abort.signal })
  abort.abort(new Error('left'))
  await t.rejects(buffer(aborted))
  await until(() => stats().lanes.exports.running === 0, nextTurn)
})

test('a question runs as a user who reads the tables of datasets only, within limits', async (t) => {
  const clickhouse = await openChdb({ path: join(t.testdir(), 'clickhouse') })
  t.teardown(() => clickhouse.close())
  for (const table of ['title_count__0', 'title_count__7', 'profile']) {
    await clickhouse.loader.execute(`CREATE TABLE ${table} (online UInt32) ENGINE = MergeTree ORDER BY online`)
  }
  const ask = (sql: string, own = {}) => clickhouse.readers.json(sql, {}, { isQuestion: true, ...own })
  await ask('SELECT max(online) AS peak FROM title_count__0 UNION ALL SELECT 1 FROM title_count__7')
  await ask('SELECT 1 AS a', { limits: { seconds: 30, memoryBytes: 2 ** 29 } })
  for (const [code, statement] of [
    [497, 'SELECT * FROM profile'],
    [497, 'SELECT * FROM system.processes'],
    [497, `SELECT * FROM url('http://127.0.0.1:9', 'CSV', 'a String')`],
    [497, `INSERT INTO title_count__0 VALUES (1)`],
    [452, 'SELECT 1 AS a SETTINGS max_execution_time = 31'],
    [164, 'SELECT 1 AS a SETTINGS readonly = 0'],
    [456, `SELECT $$ ' $$ AS a, {title_count: Identifier} AS b`]
  ] as const)
    await t.rejects(ask(statement), { code }, statement)
  const abort = new AbortController()
  const endless = `SELECT sum(n.number) AS long_question FROM numbers(1000000000000) AS n`
  const answer = t.rejects(ask(endless, { signal: abort.signal }), { message: 'left' })
  await until(() => isRunning(clickhouse.control, 'long_question'))
  abort.abort(new Error('left'))
  await answer
  await until(async () => !(await isRunning(clickhouse.control, 'long_question')))
})

test('a statement beyond the memory of the whole engine is refused as busy, and the engine continues', async (t) => {
  const MIB = 1024 * 1024
  const readers = { seconds: 60, memoryBytes: 8192 * MIB, threads: 1 }
  const clickhouse = await openChdb({
    path: join(t.testdir(), 'clickhouse'),
    memoryBytes: 256 * MIB,
    limits: { readers }
  })
  t.teardown(() => clickhouse.close())
  await clickhouse.projections.execute('CREATE TABLE kept (a UInt8) ENGINE = MergeTree ORDER BY a')
  const greedy = () => clickhouse.readers.rows('SELECT length(groupArray(n.number)) AS n FROM numbers(1000000000) AS n')
  for (let round = 0; round < 3; round += 1) {
    await t.rejects(greedy(), { code: 'engine_busy', status: 503 })
    await clickhouse.loader.insert('kept', ['a'], new TextEncoder().encode(`[${round}]\n`))
  }
  t.same(await clickhouse.readers.rows('SELECT count() AS n FROM kept'), [{ n: '3' }])
})

test('the engine writes no tables about itself: only our tables grow in its directory', async (t) => {
  const path = join(t.testdir(), 'clickhouse')
  const clickhouse = await openChdb({ path })
  t.teardown(() => clickhouse.close())
  await clickhouse.projections.execute('CREATE TABLE kept (a UInt8) ENGINE = MergeTree ORDER BY a')
  await t.rejects(clickhouse.readers.rows('SELECT nothing_of_that_name'))
  const tables = await clickhouse.control.rows(
    `SELECT t.database AS database, t.name AS name FROM system.tables AS t WHERE notEmpty(t.data_paths)`
  )
  t.same(tables, [{ database: 'default', name: 'kept' }])
})
