import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Session } from 'chdb'
import { test } from 'tap'
import { CleanSession } from '../src/clickhouse/clean-session.js'
import { memoryFile } from '../src/clickhouse/memory-file.js'
import { ClickHouseError, openChdb, openStatementCheck } from '../src/index.js'
import { StatementRefused } from '../src/sql/check-select.js'
import { HOSTILE_STATEMENTS, HUGE_STATEMENTS } from '../testing/hostile-statements.js'
import { clickhouseContract, isRunning, until } from './clickhouse-contract.js'

let lastDirectory = 0
clickhouseContract('chDB', async (t, options = {}) => {
  lastDirectory += 1
  if (!existsSync(t.testdirName)) t.testdir()
  const clickhouse = await openChdb({ path: join(t.testdirName, `clickhouse-${lastDirectory}`), ...options })
  t.teardown(() => clickhouse.close())
  return clickhouse
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

test('a statement that outlives its limit and the grace is reported', async (t) => {
  const limits = { readers: { seconds: 0.05, memoryBytes: 2 ** 28, threads: 1 } }
  const reports: string[] = []
  const overdue = { graceMs: 50, report: (sentence: string) => void reports.push(sentence) }
  const clickhouse = await openChdb({ path: join(t.testdir(), 'clickhouse'), limits, overdue })
  t.teardown(() => clickhouse.close())
  await clickhouse.readers.rows('SELECT 1')
  t.same(reports, [])
  // The engine checks its limit between blocks only.
  await clickhouse.readers.rows('SELECT sleep(0.5)').catch(() => undefined)
  t.match(reports, [/lane readers \(SELECT sleep\(0\.5\)\) did not end within its limit of 0\.05 s/])
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
  const clickhouse = await openChdb({ path: join(t.testdir(), 'clickhouse') })
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

const withMemoryFiles = {
  skip: existsSync('/dev/shm') && existsSync('/proc/self/fd') ? false : 'no files in memory here'
}

test('no file remains of a block, stored or rejected', withMemoryFiles, async (t) => {
  const clickhouse = await openChdb({ path: join(t.testdir(), 'clickhouse') })
  t.teardown(() => clickhouse.close())
  await clickhouse.projections.execute('CREATE TABLE kept (a UInt64) ENGINE = MergeTree ORDER BY a')
  const head = Buffer.from('\x01\x02\x01a\x06UInt64')
  const native = Buffer.concat([head, new Uint8Array(new BigUint64Array([7n, 8n]).buffer)])
  const insert = (bytes: Uint8Array) => clickhouse.loader.insert('kept', ['a'], { columns: ['a'], native: bytes })
  await insert(native)
  await t.rejects(insert(native.subarray(0, -1)), ClickHouseError)
  t.same(await clickhouse.readers.rows('SELECT a FROM kept ORDER BY a'), [{ a: '7' }, { a: '8' }])
  const opened = await Promise.all(
    readdirSync('/proc/self/fd').map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => 'closed meanwhile'))
  )
  t.same(opened.filter((path) => path.startsWith('/dev/shm/gamenet-')).length, 0)
})

test('a connection that could not be cleaned is cleaned at the next statement', async (t) => {
  const path = join(t.testdir(), 'clickhouse')
  let isFailing = true
  const session = new CleanSession(path, ['--async_load_databases=0'], (directory, connectionArgs) => {
    const real = new Session(directory, { connectionArgs })
    const query = real.queryAsync.bind(real)
    real.queryAsync = (sql, options) =>
      isFailing && sql === `SELECT 'clean'` ? query('SELECT no_memory', options) : query(sql, options)
    return real
  })
  t.teardown(() => session.close())
  const ask = async () => (await session.query('SELECT 7', 'TabSeparated')).text()
  await t.rejects(session.query('SELECT nothing_such', 'TabSeparated'), /nothing_such/)
  await t.rejects(ask(), /no_memory/, 'it does not answer with what may stand in front')
  isFailing = false
  await session.idle()
  await ask().catch(() => undefined)
  t.equal(await ask(), '7\n')
})

test('rows are stored by the calling thread, with any number of threads of the lane', async (t) => {
  const given: unknown[] = []
  const noting = (session: Session): Session =>
    new Proxy(session, {
      get: (of, name) => {
        const value: unknown = Reflect.get(of, name, of)
        if (typeof value !== 'function') return value
        return (...parameters: unknown[]) => {
          if (name === 'insert') given.push(...parameters)
          return Reflect.apply(value, of, parameters)
        }
      }
    })
  const session = new CleanSession(join(t.testdir(), 'clickhouse'), [], (directory, connectionArgs) =>
    noting(new Session(directory, { connectionArgs }))
  )
  t.teardown(() => session.close())
  await session.query('CREATE TABLE few (a UInt8) ENGINE = MergeTree ORDER BY a', 'TabSeparated')
  const settings = { max_threads: 2, max_memory_usage: 1e9 }
  await session.insert({
    table: 'few',
    columns: ['a'],
    settings,
    format: 'JSONCompactEachRow',
    values: Buffer.from('[7]\n')
  })
  t.match(given, [{ settings: { max_threads: 1, max_memory_usage: 1e9 } }])
  t.equal(given.length, 1)
  t.equal((await session.query('SELECT a FROM few', 'TabSeparated')).text(), '7\n')
})

test('a file in memory has a path in this process, and no name for other processes', withMemoryFiles, async (t) => {
  const folder = t.testdir()
  const bytes = new TextEncoder().encode('some bytes')
  for (const memory of [folder, join(folder, 'missing')]) {
    const file = memoryFile(bytes, folder, memory)
    t.same(readdirSync(folder), [])
    t.same(new Uint8Array(readFileSync(file.path)), bytes)
    file.close()
  }
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
      engine: 'tables',
      message: /the definition in .*kept\.sql is damaged/
    })
  }
  writeFileSync(file, sound)
  await (await openChdb({ path })).close()
})

test('a second directory in one process, and a path that is not a directory, are refused in one sentence', async (t) => {
  const dir = t.testdir()
  const clickhouse = await openChdb({ path: join(dir, 'first') })
  t.teardown(() => clickhouse.close())
  await t.rejects(openChdb({ path: join(dir, 'second') }), { message: /one process can have only one\.$/ })
  writeFileSync(join(dir, 'file'), '')
  await t.rejects(openChdb({ path: join(dir, 'file') }), { message: /cannot be written \(EEXIST\)/ })
})

test('streams start no process; a stream after an abandoned one is complete', async (t) => {
  const { readers, close } = await openChdb({ path: join(t.testdir(), 'clickhouse') })
  t.teardown(close)
  const { PATH } = process.env
  t.teardown(() => {
    process.env.PATH = PATH
  })
  process.env.PATH = ''
  const rows = 'SELECT n.number AS number FROM numbers(200000) AS n'
  const whole = Buffer.byteLength(Array.from({ length: 200_000 }, (_, n) => `{"number":${n}}\n`).join(''))
  for (let n = 0; n < 6; n += 1) {
    const left = await readers.stream(rows, {}, { format: 'JSONEachRow' })
    left.destroy()
    await once(left, 'close')
    const body = await readers.stream(rows, {}, { format: 'JSONEachRow' })
    t.equal((await buffer(body)).length, whole)
  }
})

test('streams work after a cleaner of temporary files removed their pipes', async (t) => {
  const { TMPDIR } = process.env
  t.teardown(() => {
    if (TMPDIR === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = TMPDIR
  })
  const directory = t.testdir({ temporary: {} })
  const temporary = join(directory, 'temporary')
  process.env.TMPDIR = temporary
  const { readers, close } = await openChdb({ path: join(directory, 'clickhouse') })
  t.teardown(close)
  const folder = join(temporary, readdirSync(temporary).find((name) => name.startsWith('gamenet-')) ?? '')
  rmSync(folder, { recursive: true })
  const count = async () =>
    (await buffer(await readers.stream('SELECT 1 AS one', {}, { format: 'JSONEachRow' }))).toString()
  t.same(await Promise.all([count(), count(), count()]), Array(3).fill('{"one":1}\n'))
  const folders = readdirSync(temporary).map((name) => join(temporary, name))
  t.same(
    folders.map((path) => statSync(path).mode & 0o777),
    [0o700, 0o700, 0o700]
  )
  await close()
  t.same(readdirSync(temporary), [])
})

test('streams wait for slow readers; a few run at once and some wait; a reader that disconnects ends its stream', async (t) => {
  const clickhouse = await openChdb({ path: join(t.testdir(), 'clickhouse') })
  t.teardown(() => clickhouse.close())
  const { readers, control, stats } = clickhouse
  const endless = `SELECT n.number AS number, 'endless-stream' AS mark FROM system.numbers AS n`
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
  await until(async () => stats().lanes.exports.running === 0)
  t.notOk(await isRunning(control, 'endless-stream'))
  const abort = new AbortController()
  const aborted = await readers.stream(endless, {}, { format: 'Parquet', signal: abort.signal })
  abort.abort(new Error('left'))
  await t.rejects(buffer(aborted))
  await until(async () => stats().lanes.exports.running === 0)
})
test('a running engine refuses hostile statements', async (t) => {
  const clickhouse = await openChdb({ path: join(t.testdir(), 'clickhouse') })
  t.teardown(() => clickhouse.close())
  for (const table of ['title_count', 'secret']) {
    await clickhouse.loader.execute(`CREATE TABLE ${table} (online UInt32) ENGINE = Memory`)
  }
  const check = await openStatementCheck(clickhouse.readers, ['title_count'])
  t.equal(
    await check('SELECT max(online) AS peak FROM title_count -- ever', {}),
    'SELECT max(online) AS peak\nFROM title_count'
  )
  for (const statement of [...HOSTILE_STATEMENTS, ...HUGE_STATEMENTS]) {
    const found = await check(statement, {}).catch((error: unknown) => error)
    if (!(found instanceof StatementRefused)) t.fail(statement.slice(0, 200), { found })
  }
})

test('too few threads are reported, enough are not', async (t) => {
  const warnings: string[] = []
  const open = async (threadPoolSize: number): Promise<void> => {
    const path = join(t.testdir(), String(threadPoolSize))
    const clickhouse = await openChdb({ path, threadPoolSize, warn: (sentence) => warnings.push(sentence) })
    await clickhouse.close()
  }
  await open(16)
  t.same(warnings, [])
  await open(4)
  t.match(warnings, [/UV_THREADPOOL_SIZE is 4; .* need at least 15/])
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
  await clickhouse.control.execute('SYSTEM FLUSH LOGS')
  const tables = await clickhouse.control.rows(
    `SELECT t.database AS database, t.name AS name FROM system.tables AS t WHERE notEmpty(t.data_paths)`
  )
  t.same(tables, [{ database: 'default', name: 'kept' }])
})
