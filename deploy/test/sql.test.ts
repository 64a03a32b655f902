import { existsSync, readdirSync } from 'node:fs'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { getPriority } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { openChdb } from '@gamenet/engines'
import { ANALYST_LIMITS } from '@gamenet/engines/sql'
import { type Test, test } from 'tap'
import { analystStatements } from '../src/operate/migrate/analyst-grants.js'
import { makeAnalyst } from '../src/operate/migrate/make-analyst.js'
import { openSnapshot } from '../src/operate/sql/analyst-snapshot.js'
import { takeSqlSnapshot } from '../src/operate/sql/operation.js'
import { openSqlPort } from '../src/operate/sql/sql-port.js'
import { type Environment, gamenet, gamenetJson, openGamenet, operationsAt, plainWrites } from './service/gamenet.js'

const CANARY = 'canary-7f3a'
const PASSWORD = 'password-of-tests'
const COUNTS = [
  ['4d530064', '2025-03-01T00:00:00Z', 5],
  ['4d530064', '2025-03-01T00:01:00Z', 6],
  ['5553001c', '2025-04-01T00:00:00Z', 9]
]

async function start(t: Test) {
  const directory = t.testdir()
  const environment: Environment = {
    DATA_DIR: join(directory, 'data'),
    UPSTREAM_URL: 'http://127.0.0.1:9',
    SCRAPE_NETWORK_SECONDS: '0',
    SCRAPE_GAMES_SECONDS: '0',
    ...(await plainWrites(t))
  }
  const service = await openGamenet(t, environment)
  const file = join(directory, 'counts.csv')
  await writeFile(file, ['titleId,observedAt,online', ...COUNTS.map((row) => row.join(','))].join('\n'))
  await gamenetJson(environment, ['import', 'title-count', file])
  const snapshots = () => {
    const folder = join(directory, 'data', 'tables', 'snapshots')
    return existsSync(folder) ? readdirSync(folder) : []
  }
  return { environment, service, snapshots }
}

test('gamenet sql on a running service and on a stopped one', async (t) => {
  const { environment, service, snapshots } = await start(t)
  const statement = 'SELECT title_id, max(online) AS most FROM title_count GROUP BY title_id ORDER BY title_id'
  const expected = { code: 0, stdout: 'title_id\tmost\n4d530064\t6\n5553001c\t9\n' }

  await t.test('an answer, and the position of its snapshot', async (t) => {
    const { code, stdout, stderr } = await gamenet(environment, ['sql', statement])
    t.same({ code, stdout }, expected)
    t.match(stderr, /^Snapshot of 20\S+Z: .*title-count=1\/0\/3/)
  })

  await t.test('JSON, a parameter and standard input', async (t) => {
    const statement = Buffer.from('SELECT toUInt64(18446744073709551615) AS a, {b:String} AS b')
    const { stdout } = await gamenet(environment, ['sql', '--json', '--param', 'b=x,y'], statement)
    t.match(stdout, /"rows":\[\{"a":"?18446744073709551615"?,"b":"x,y"\}\]\}\n$/)
  })

  await t.test('refusals are wrong usage, failures of statements are failures', async (t) => {
    for (const [args, code, message] of [
      [[`SELECT file('/etc/passwd')`], 2, /^The function file is not allowed\.\n$/],
      [['SELECT {a:String}'], 1, /Substitution `a` is not set/],
      [['SELECT 1', '--format', 'Template'], 2, /^--format takes Pretty/],
      [['--serve'], 2, /set SQL_PASSWORD/]
    ] as const) {
      const found = await gamenet(environment, ['sql', ...args])
      t.equal(found.code, code, args.join(' '))
      t.match(found.stderr, message)
    }
    let taken = 0
    const endless = async function* () {
      for (; taken < 10_000; taken += 1) yield Buffer.alloc(65_536, ' ')
    }
    t.match(await gamenet(environment, ['sql', '-'], endless()), {
      code: 2,
      stderr: 'The statement on standard input is longer than 65536 characters.\n'
    })
    t.ok(taken < 10, 'the rest is not read')
  })

  t.same(snapshots(), [], 'every command has removed its snapshot')
  await t.rejects(
    operationsAt(service.operatorUrl).run(makeAnalyst, { password: PASSWORD }),
    /embedded tables have no users/
  )
  await service.stop()

  await t.test('a stopped service', async (t) => {
    const { code, stdout } = await gamenet(environment, ['sql', statement])
    t.same({ code, stdout }, expected)
    t.same(snapshots(), [])
  })

  await t.test('the statements for a ClickHouse server are valid', async (t) => {
    const clickhouse = await openChdb({ path: join(t.testdirName, 'parser') })
    t.teardown(() => clickhouse.close())
    for (const statement of analystStatements(PASSWORD)) {
      const [row] = await clickhouse.control.rows('SELECT formatQuery({statement: String}) AS text', { statement })
      t.match(row?.text, /^(CREATE|GRANT)/)
    }
    t.notMatch(analystStatements(PASSWORD).join(), PASSWORD)
  })
})

test('the process of a snapshot', async (t) => {
  const { service, snapshots } = await start(t)
  process.env.CANARY = CANARY
  const snapshot = await operationsAt(service.operatorUrl).run(takeSqlSnapshot, { pid: process.pid })
  const analyst = await openSnapshot(snapshot, { ...ANALYST_LIMITS, seconds: 3 })
  t.teardown(() => analyst.close())
  const run = async (statement: string) =>
    Buffer.from((await analyst.run({ statement, format: 'TabSeparated', parameters: {} })).bytes).toString()
  const processes = async () =>
    (await readFile(`/proc/${process.pid}/task/${process.pid}/children`, 'utf8')).trim().split(' ').map(Number)
  const analysts = async () => {
    const priorityOf = (pid: number) => {
      try {
        return getPriority(pid)
      } catch {
        return 0
      }
    }
    return (await processes()).filter((pid) => priorityOf(pid) > getPriority())
  }

  await t.test('it sees nothing of the service: not its environment, not later rows', async (t) => {
    const [pid, ...others] = await analysts()
    t.same(others, [])
    t.notMatch(await readFile(`/proc/${pid}/environ`, 'utf8'), CANARY)
    t.equal(await run('SELECT count() FROM title_count'), '3\n')
  })

  await t.test('no thread of it competes with those of the service', async (t) => {
    t.equal(await run('SELECT count() FROM title_count'), '3\n')
    const [pid = 0] = await analysts()
    const priorities = (await readdir(`/proc/${pid}/task`)).map((thread) => getPriority(Number(thread)))
    t.notOk(priorities.includes(getPriority()), priorities.join())
  })

  await t.test(
    'a process that does not answer is killed at twice the limit, and the next statement runs',
    async (t) => {
      for (const pid of await analysts()) process.kill(pid, 'SIGSTOP')
      await t.rejects(run('SELECT 1'), /was killed: it exceeded twice its time/)
      t.equal(await run('SELECT count() FROM title_count'), '3\n')
      await t.rejects(run('SELECT hostName()'), /function hostName is not allowed/)
    }
  )

  await t.test('a process that the system has ended between two statements is started again', async (t) => {
    const [pid = 0] = await analysts()
    process.kill(pid, 'SIGKILL')
    while ((await processes()).includes(pid)) await setImmediate()
    t.equal(await run('SELECT 1'), '1\n')
  })

  await t.test('the port speaks ClickHouse over HTTP', async (t) => {
    const server = await openSqlPort({ port: 0, password: PASSWORD, analyst: async () => analyst })
    t.teardown(() => server.close())
    const address = server.address()
    const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/`
    const ask = (path: string, init: RequestInit = {}) =>
      fetch(`${url}${path}`, { headers: { 'X-ClickHouse-User': 'a', 'X-ClickHouse-Key': PASSWORD }, ...init })
    t.equal(await (await fetch(`${url}ping`)).text(), 'Ok.\n')
    const answer = await ask('?param_id=5553001c', {
      method: 'POST',
      body: 'SELECT online FROM title_count WHERE title_id = {id:String} FORMAT JSONEachRow;'
    })
    t.equal(answer.headers.get('x-gamenet-position'), snapshot.position)
    t.equal(answer.headers.get('x-clickhouse-format'), 'JSONEachRow')
    t.equal(await answer.text(), '{"online":9}\n')
    const columns = `SELECT name FROM system.columns WHERE table = 'title_count' AND database = 'default' ORDER BY position`
    t.equal(
      await (await ask(`?query=${encodeURIComponent(columns)}`)).text(),
      'title_id\nobserved_at\nonline\nsessions\nlobby_players\n'
    )
    const hello = await ask('?client_protocol_version=54460&default_format=Native', {
      method: 'POST',
      body: 'SELECT displayName(), version(), revision(), timezone()'
    })
    t.same([...new Uint8Array(await hello.arrayBuffer()).subarray(0, 10)], [1, 0, 2, 255, 255, 255, 255, 0, 4, 1])
    t.same(JSON.parse(hello.headers.get('x-clickhouse-summary') ?? ''), {
      result_rows: '1',
      result_bytes: hello.headers.get('content-length')
    })
    const described = await ask(`?query=${encodeURIComponent('DESC TABLE "default"."title_count"')}`)
    t.match(await described.text(), /^title_id\tLowCardinality\(String\)\t/)
    for (const [query, init, status, code] of [
      ['SELECT 1', { headers: {} }, 403, '516'],
      ['SELECT 1', { headers: { Authorization: `Basic ${btoa('a:wrong')}` } }, 403, '516'],
      ['SELECT 1 FORMAT Template', {}, 404, '73'],
      ['DROP TABLE title_count', {}, 403, '164'],
      ['SELECT nothing FROM title_count', {}, 404, '47']
    ] as const) {
      const refused = await ask(`?query=${encodeURIComponent(query)}`, init)
      t.equal(refused.status, status, query)
      t.equal(refused.headers.get('x-clickhouse-exception-code'), code)
      t.match(await refused.text(), /^Code: \d+\. DB::Exception: /)
    }
    t.match(
      await (await ask('?compress=1&query=SELECT+1')).text(),
      /^Code: 89\..* set the option compress of the driver to false/
    )
    const long = new Blob(['SELECT 1', ' '.repeat(2 ** 21)]).stream()
    t.match(await (await ask('', { method: 'POST', body: long, duplex: 'half' })).text(), /body is longer than 1048576/)
  })

  await analyst.close()
  t.same(snapshots(), [])
})
