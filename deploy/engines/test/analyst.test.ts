import { createSocket } from 'node:dgram'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { readerStatements } from '../src/clickhouse/readers.js'
import { openAnalyst } from '../src/sql/analyst.js'
import { HOSTILE_STATEMENTS, HUGE_STATEMENTS, MORE_HOSTILE_STATEMENTS } from '../testing/hostile-statements.js'

const MIB = 1024 * 1024
const PASSWORD = 'password-of-analysts-in-tests'
const CANARY = 'canary-5b1f'

async function open(t: Test, seconds: number, abiMax?: number) {
  const directory = t.testdir()
  const analyst = await openAnalyst({
    directory: join(directory, 'engine'),
    password: PASSWORD,
    seconds,
    ports: [0, 0],
    abiMax
  })
  t.teardown(() => analyst.kill())
  const show = async (n: number) => {
    const parts = join(directory, `snapshot-${n}`)
    mkdirSync(join(parts, 'parts', 'counts'), { recursive: true })
    await analyst.show({
      directory: parts,
      takenAt: `2026-01-0${n}T00:00:00.000Z`,
      position: `title-count=1/0/${n}`,
      database: `snapshot_${n}`,
      tables: [
        { name: 'counts', definition: 'CREATE TABLE default.counts (online UInt32) ENGINE = MergeTree ORDER BY online' }
      ],
      views: [
        {
          name: 'title_count',
          select: `SELECT '4d530064' AS title_id, toUInt32(number + ${n}) AS online FROM numbers(5)`
        },
        { name: 'counted', select: `SELECT count() AS n, sleepEachRow(0.1) AS slept FROM snapshot_${n}.counts` }
      ]
    })
  }
  await show(1)
  const run = async (statement: string, parameters = {}) => {
    const bytes = await analyst.ask(statement, { format: 'TSVRaw', parameters })
    return Buffer.from(bytes).toString('latin1').trim()
  }
  return { directory, analyst, show, run }
}

test('the embedded engine gets the users, limits, quotas and rights of the documented file', async (t) => {
  const { run } = await open(t, 7)
  const [user = '', quota = '', grant = '', ...others] = readerStatements({
    password: PASSWORD,
    servicePassword: 'another',
    database: 'default',
    seconds: 7
  })
  const settings = [...user.slice(user.indexOf('SETTINGS')).matchAll(/(\w+) = (\w+|'')( CONST)?/g)]
  t.ok(settings.length > 10)
  for (const [, name = '', value, isConst] of settings) {
    const sql = 'SELECT value, readonly FROM system.settings WHERE name = {name:String}'
    const shown = value?.replace("''", name === 'http_response_headers' ? '{}' : '')
    t.equal(await run(sql, { name }), `${shown}\t${isConst === undefined ? 0 : 1}`.trim(), name)
  }
  t.equal(await run('SHOW GRANTS'), grant)
  t.match(await run('SELECT max_queries, max_execution_time FROM system.quota_usage'), '2000\t140')
  t.match(quota, /MAX queries = 2000, execution_time = 140\b/)
  t.equal(others.length, 2, 'the user of questions and its rights')
})

test('no statement names a file that the engine writes, and the password signs in the analyst alone', async (t) => {
  const { run, directory, analyst } = await open(t, 10)
  const file = join(directory, 'engine', 'written')
  for (const [name, format] of [
    ['output_format_schema', 'Protobuf'],
    ['format_schema', 'Protobuf'],
    ['format_template_row', 'Template'],
    ['format_template_resultset', 'Template'],
    ['format_avro_schema_registry_url', 'AvroConfluent']
  ])
    await t.rejects(run(`SELECT 1 AS a SETTINGS ${name} = '${file}' FORMAT ${format}`), { code: 452 }, String(name))
  t.notOk(existsSync(file))
  const refused = await fetch(`http://127.0.0.1:${analyst.ports[0]}/?query=SELECT+1`, {
    headers: { Authorization: `Basic ${btoa(`gamenet_questions:${PASSWORD}`)}` }
  })
  t.equal(refused.headers.get('x-clickhouse-exception-code'), '516')
})

test('analysts read the newest snapshot; the one before is dropped when its last statement has ended', async (t) => {
  const { run, show, analyst } = await open(t, 10)
  t.equal(await run('SELECT min(online) FROM title_count'), '1')
  t.equal(await run('SELECT taken_at, position FROM snapshot'), '2026-01-01 00:00:00.000\ttitle-count=1/0/1')
  const slow = run('SELECT n, sleepEachRow(1) FROM counted')
  await show(2)
  t.match(await slow, /^0\t0$/)
  t.equal(await run('SELECT min(online) FROM title_count'), '2')
  t.equal(await run('SELECT position FROM snapshot'), 'title-count=1/0/2')
  t.equal(await run('SELECT n FROM counted'), '0')
  await t.test('two analysts at once, each within the limits', async (t) => {
    const greedy = () => run('SELECT length(groupArray(number)) FROM numbers(1000000000)')
    const [first, second, ...counts] = await Promise.allSettled([
      ...[greedy(), greedy()],
      ...Array.from({ length: 4 }, () => run('SELECT count() FROM title_count'))
    ])
    for (const each of [first, second]) t.match(each, { status: 'rejected', reason: { code: 241 } })
    for (const each of counts) t.match(each, { status: 'fulfilled', value: '5' })
  })
  await t.test('the port serves statements only', async (t) => {
    const url = `http://127.0.0.1:${analyst.ports[0]}`
    for (const path of [
      '/play',
      '/dashboard',
      '/binary',
      '/merges',
      '/jemalloc',
      '/js/uplot.js',
      '/replicas_status',
      '//'
    ])
      t.equal((await fetch(url + path)).status, 404, path)
    t.equal(await (await fetch(`${url}/ping`)).text(), 'Ok.\n')
    const wanted = encodeURIComponent("{'Access-Control-Allow-Origin':'*'}")
    for (const [setting, status] of [
      ['', 200],
      [`&http_response_headers=${wanted}`, 500]
    ] as const) {
      const answer = await fetch(`${url}/?query=SELECT+1${setting}`, {
        headers: { Origin: 'http://other.example', Authorization: `Basic ${btoa(`gamenet_analyst:${PASSWORD}`)}` }
      })
      t.equal(answer.status, status)
      t.equal(answer.headers.get('access-control-allow-origin'), null)
    }
    for (const user of ['default', 'gamenet', 'gamenet_analyst']) {
      const refused = await fetch(`${url}/?query=SELECT+1`, { headers: { Authorization: `Basic ${btoa(`${user}:`)}` } })
      t.not(refused.status, 200, user)
    }
  })
  await t.test('a question to a process that has ended fails as one that the engine refuses', async (t) => {
    await analyst.kill()
    await t.rejects(run('SELECT 1'), { name: 'ClickHouseError', message: /^ClickHouse does not answer: / })
  })
})

const LANDLOCK = { skip: process.platform !== 'linux' && 'Landlock is of Linux' }

test(
  'hostile statements open no file of others and no connection, and take the memory of their limit',
  LANDLOCK,
  async (t) => {
    const { directory, analyst, run } = await open(t, 1)
    if (analyst.abi < 4) return t.comment(`not shown: Landlock has the version ${analyst.abi}`)
    const canary = join(directory, 'canary')
    writeFileSync(canary, CANARY)
    // The first read after it sets the time of the last read.
    utimesSync(canary, 1, 1)
    let met = 0
    const port = await listening(t, () => (met += 1))
    const memory = (name: string) =>
      1024 *
      Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(readFileSync(`/proc/${analyst.pid}/status`, 'utf8'))?.[1])
    await run('SELECT count() FROM title_count')
    let most = { bytes: 0, statement: '' }
    const statements = [...HOSTILE_STATEMENTS, ...MORE_HOSTILE_STATEMENTS, ...HUGE_STATEMENTS]
    t.ok(statements.length >= 412, `${statements.length}`)
    t.equal(readFileSync(`/proc/${analyst.pid}/environ`, 'utf8'), '', 'no environment')
    const secrets = [CANARY, ...readFileSync('/etc/passwd', 'utf8').split('\n', 1)]
    const filesBefore = filesOf(directory)
    for (const hostile of statements) {
      const statement = hostile
        .replaceAll(/\/etc\/passwd|CANARY/g, canary)
        .replaceAll('/tmp/a', join(directory, 'written'))
        .replaceAll('127.0.0.1:9', `127.0.0.1:${port}`)
      // Resets the highest memory to that of now.
      writeFileSync(`/proc/${analyst.pid}/clear_refs`, '5')
      const before = memory('RssAnon')
      const answer = await run(statement, {}).catch((error: Error) => error.message)
      // Without the pages of files: the code that a statement is the first to need is not its memory.
      const bytes = memory('VmHWM') - memory('RssFile') - before
      if (bytes > most.bytes) most = { bytes, statement: statement.slice(0, 80) }
      const found = secrets.filter((secret) => answer.includes(secret) && !statement.includes(secret))
      if (found.length > 0) t.fail(statement.slice(0, 200), { found, answer })
    }
    t.equal(met, 0, 'no connection and no packet')
    t.ok(statSync(canary).atimeMs < 2000, 'the file is unread')
    t.same(filesOf(directory), filesBefore, 'nothing is written')
    t.equal(await run('SELECT count() FROM title_count'), '5', 'the same process answers')
    t.ok(most.bytes <= 256 * MIB, JSON.stringify(most))
    // One value, which the engine refuses when it is made, or the kernel before.
    for (const width of [450_000_000, 1_500_000_000]) {
      writeFileSync(`/proc/${analyst.pid}/clear_refs`, '5')
      const before = memory('RssAnon')
      await t.rejects(run(`SELECT length(printf('%${width}d', 1))`), { name: 'ClickHouseError' })
      t.ok(memory('VmHWM') - memory('RssFile') - before <= 1024 * MIB, `${width}`)
      t.equal(await run('SELECT count() FROM title_count'), '5', 'the same process answers')
    }
    t.comment(`${statements.length} statements, at most ${Math.round(most.bytes / MIB)} MiB: ${most.statement}`)
  }
)

test('below version 4 of Landlock the process is confined as far as possible', LANDLOCK, async (t) => {
  for (const abiMax of [1, 3]) {
    const { analyst, run } = await open(t, 5, abiMax)
    t.ok(analyst.abi <= abiMax)
    t.equal(await run('SELECT count() FROM title_count'), '5')
    await analyst.kill()
  }
})

/** Listens on one port of TCP and UDP, and reports each connection and packet. */
async function listening(t: Test, report: () => void): Promise<number> {
  const server = createServer(report)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const socket = createSocket('udp4').on('message', report)
  await new Promise<void>((resolve) => socket.bind(port, '127.0.0.1', resolve))
  t.teardown(() => {
    server.close()
    socket.close()
  })
  return port
}

/** Returns the paths of all files below a directory, but those of the engine. */
function filesOf(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter((name) => !name.startsWith('engine'))
    .sort()
}
