import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { datasets } from '@gamenet/api'
import { openChdb } from '@gamenet/engines'
import { openAnalyst, readerStatements } from '@gamenet/engines/sql'
import { until } from '@gamenet/engines/testing'
import { type Test, test } from 'tap'
import { makeAnalyst } from '../src/operate/migrate/make-analyst.js'
import { refuseUnconfined } from '../src/operate/sql/command.js'
import {
  type Environment,
  gamenet,
  gamenetJson,
  openGamenet,
  operationsAt,
  plainWrites,
  spawnGamenet
} from './service/gamenet.js'

const PASSWORD = 'password-of-analysts-in-tests'
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

  await t.test('a refusal of the engine is a failure with its reason', async (t) => {
    for (const [args, code, message] of [
      [[`SELECT * FROM file('/etc/passwd')`], 1, /Not enough privileges.*READ ON FILE/],
      [['SELECT {a:String}'], 1, /Substitution `a` is not set/],
      [['SELECT 1', '--format', 'Nothing'], 1, /UNKNOWN_FORMAT/],
      [['SELECT 1', '--native', '0'], 2, /^--native is an option of --serve\.$/m],
      [['SELECT 1', '--seconds', '0'], 2, /^--seconds takes a whole number/]
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
      stderr: 'The statement on standard input is longer than 262144 characters.\n'
    })
    t.ok(taken < 10, 'the rest is not read')
  })

  t.same(snapshots(), [], 'every command has removed its snapshot')

  await t.test('ports for drivers, with a password that is made', async (t) => {
    const server = spawnGamenet(environment, ['sql', '--serve', '--port', '0', '--native', '0', '--json'])
    t.teardown(() => server.kill('SIGKILL'))
    const [line] = await once(server.stdout ?? server, 'data')
    const { url, native, user, password } = JSON.parse(String(line))
    t.match(native, /^clickhouse:\/\/127\.0\.0\.1:\d+$/)
    t.ok(password.length >= 20)
    const headers = { Authorization: `Basic ${btoa(`${user}:${password}`)}` }
    const ask = (query: string) => fetch(`${url}/?query=${encodeURIComponent(query)}`, { headers })
    t.equal(await (await ask('SELECT count() FROM title_count')).text(), '3\n')
    t.match(await (await ask('SELECT * FROM snapshot')).text(), /^20.*\ttitle-count=1\/0\/3|title-count=1\/0\/3/)
    t.equal((await ask('SELECT count() FROM system.processes')).headers.get('x-clickhouse-exception-code'), '497')
    const { port } = new URL(url)
    t.match(await gamenet(environment, ['sql', '--serve', '--port', port]), {
      code: 1,
      stderr: `Another process uses port ${port}; --port 0 selects a free one.\n`
    })
    const children = async () => {
      const found = await readFile(`/proc/${server.pid}/task/${server.pid}/children`, 'utf8')
      return found.split(' ').filter((child) => child !== '')
    }
    const [child = ''] = await children()
    process.kill(Number(child), 'SIGKILL')
    // The next one ends while it is started.
    let next: string | undefined
    await until(async () => {
      next = (await children()).find((each) => each !== child)
      return next !== undefined
    })
    process.kill(Number(next), 'SIGKILL')
    await until(async () => (await ask('SELECT count() FROM title_count').catch(() => undefined))?.status === 200)
    const ended = once(server, 'exit')
    server.kill('SIGTERM')
    t.same(await ended, [0, null])
    t.same(snapshots(), [])
  })

  await t.rejects(
    operationsAt(service.operatorUrl).run(makeAnalyst, { password: PASSWORD }),
    /the embedded one has them/
  )
  await service.stop()

  await t.test('a stopped service', async (t) => {
    const { code, stdout } = await gamenet(environment, ['sql', statement])
    t.same({ code, stdout }, expected)
    t.same(snapshots(), [])
  })
})

test('a port is refused where the kernel does not hold connections, except to those who serve themselves', async (t) => {
  const open = { password: PASSWORD, seconds: 9, ports: [0] }
  const analyst = await openAnalyst({ ...open, directory: join(t.testdir(), 'engine'), abiMax: 3 })
  t.teardown(() => analyst.kill())
  t.ok(analyst.abi <= 3, `Landlock ${analyst.abi}`)
  t.throws(() => refuseUnconfined(analyst.abi, false), /Landlock 4, Linux 6\.7.*--unconfined/)
  refuseUnconfined(analyst.abi, true)
  refuseUnconfined(4, false)
})

test('the statements for a ClickHouse server are valid, and name the tables of all datasets', async (t) => {
  const clickhouse = await openChdb({ path: join(t.testdir(), 'parser') })
  t.teardown(() => clickhouse.close())
  const statements = readerStatements({ password: PASSWORD, servicePassword: 'another', database: 'own' })
  for (const statement of statements) {
    const [row] = await clickhouse.control.rows('SELECT formatQuery({statement: String}) AS text', { statement })
    t.match(row?.text, /^(CREATE|GRANT)/)
  }
  t.notMatch(statements.join(), PASSWORD)
  const hashes = statements.flatMap((statement) => /BY '(\w+)'/.exec(statement)?.[1] ?? [])
  const ofPassword = createHash('sha256').update(PASSWORD).digest('hex')
  t.match(hashes, [ofPassword, /^\w{64}$/])
  t.not(hashes[1], ofPassword, 'the password of analysts signs in no other user')
  t.not(hashes[1], createHash('sha256').update('another').digest('hex'), 'nor does that of the service')
  const tables = [...statements.join().matchAll(/SELECT ON own\.(\w+)__\*/g)].map(([, name]) => name)
  t.same(tables.sort(), datasets.flatMap((dataset) => dataset.tables).sort())
})
