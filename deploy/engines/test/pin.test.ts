import { once } from 'node:events'
import { createServer, request } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { type Test, test } from 'tap'
import { Identity } from '../src/clickhouse/identity.js'
import { openPinned } from '../src/index.js'
import { type ClickHouseServer, freePort, startClickHouseServer, until } from '../testing/index.js'

const LOOKS = { pauseMs: 50, silenceMs: 2000 }
const UUID = '10000000-0000-4000-8000-000000000001'
const OTHER_UUID = '20000000-0000-4000-8000-000000000002'

let first: ClickHouseServer
let second: ClickHouseServer
let urls: { readonly first: string; readonly second: string }

/** The first two are taken for replicas of one database, because their tables have the same UUID; they differ in a row. */
test('two servers start', async (t) => {
  ;[first, second] = await Promise.all([startClickHouseServer(), startClickHouseServer()])
  for (const [server, database, uuid] of [
    [first, 'first', UUID],
    [second, 'second', UUID],
    [second, 'foreign', OTHER_UUID]
  ] as const) {
    const statements = [
      `CREATE DATABASE ${database}`,
      `CREATE TABLE ${database}.which ENGINE = MergeTree ORDER BY a AS SELECT '${database}' AS a`,
      `CREATE TABLE ${database}.schema_migration UUID '${uuid}' (a UInt8) ENGINE = MergeTree ORDER BY a`
    ]
    for (const statement of statements) await server.ask(statement, { format: 'TSV' })
  }
  urls = { first: addressOf(first, 'first'), second: addressOf(second, 'second') }
  t.not(urls.first, urls.second)
})

/** An address that passes each request on to the server that is chosen, which gets a name. */
async function frontOf(t: Test, choose: () => { readonly server: ClickHouseServer; readonly name: string }) {
  const front = createServer((asked, reply) => {
    const { server, name } = choose()
    const { port } = new URL(server.url)
    const passed = request({ port, path: asked.url, method: asked.method, headers: asked.headers }, (answer) => {
      const headers = { ...answer.headers, 'x-clickhouse-server-display-name': name, connection: 'close' }
      answer.pipe(reply.writeHead(answer.statusCode ?? 500, headers))
    })
    passed.on('error', () => reply.destroy())
    asked.pipe(passed)
  })
  front.listen(0, '127.0.0.1')
  await once(front, 'listening')
  t.teardown(() => {
    front.closeAllConnections()
    front.close()
  })
  return (front.address() as AddressInfo).port
}

function pinned(t: Test, addresses: readonly string[], warnings: string[] = []) {
  const clickhouse = openPinned({ urls: addresses, looks: LOOKS, warn: (sentence) => void warnings.push(sentence) })
  t.teardown(() => clickhouse.close())
  const read = async () => String((await clickhouse.readers.rows('SELECT w.a AS a FROM which AS w'))[0]?.a)
  return { clickhouse, warnings, read, faults: () => clickhouse.replicas?.().map(({ fault }) => fault) ?? [] }
}

const becomes = (read: () => Promise<string>, row: string) => until(async () => (await read().catch(() => '')) === row)

test('the first address that answers is used, and the next one when it fails; statements on it are ended', async (t) => {
  let target = first
  const front = addressOf(first, 'first', await frontOf(t, () => ({ server: target, name: 'one' })))
  const { clickhouse, read, faults, warnings } = pinned(t, [(await deadServer()).url, front, urls.second])
  t.equal(await read(), 'first')
  t.match(faults(), [/^cannot be used: .*ECONNREFUSED/, undefined, undefined])
  const long = clickhouse.projections.execute('SELECT sleepEachRow(3) FROM numbers(100) SETTINGS max_block_size = 1')
  const ended = t.rejects(long, { code: 'engine_away' }, 'a statement that runs')
  target = await deadServer()
  await becomes(read, 'second')
  await ended
  t.match(warnings, [/^The tables are not read from 127\.0\.0\.1:\d+ any more: .* cannot be used/, /are now those of/])
  target = first
  await until(async () => faults()[1] === undefined)
  t.equal(await read(), 'second', 'nothing goes back')
})

test('while no address answers, statements are refused, and work again when one does', async (t) => {
  let target = await deadServer()
  const front = addressOf(first, 'first', await frontOf(t, () => ({ server: target, name: 'one' })))
  const { read } = pinned(t, [front, (await deadServer()).url])
  await t.rejects(read(), { code: 'engine_away', cause: { message: /cannot be used: .*; .* cannot be used: / } })
  target = first
  await becomes(read, 'first')
})

test('a slow address is not waited for', async (t) => {
  const silent = createTcpServer(() => undefined).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  t.teardown(() => silent.close())
  const slow = addressOf(first, 'first', (silent.address() as AddressInfo).port)
  const { read, faults } = pinned(t, [slow, urls.second])
  t.equal(await read(), 'second')
  t.match(faults(), [/no answer within 2 s/, undefined])
})

test('an address of another database is never used', async (t) => {
  const foreign = addressOf(second, 'foreign')
  const refused = { code: 'engine_away', cause: { message: /have to name replicas of one database/ } }
  await t.rejects(pinned(t, [urls.first, foreign]).read(), refused, 'nobody knows which is the right one')
  let target = await deadServer()
  const front = await frontOf(t, () => ({ server: target, name: 'one' }))
  const { read, faults } = pinned(t, [urls.first, addressOf(second, 'foreign', front)])
  t.equal(await read(), 'first')
  target = second
  await until(async () => /^is another database: its table schema_migration has the UUID 2/.test(faults()[1] ?? ''))
})

test('a balancer in front of two servers is refused, and names them', async (t) => {
  let turn = 0
  const front = await frontOf(t, () => {
    turn += 1
    return turn % 2 === 0 ? { server: first, name: 'alpha' } : { server: second, name: 'beta' }
  })
  const { read, faults } = pinned(t, [addressOf(first, '', front)])
  const refused = /answers as the servers alpha and beta in turn, .*: list their own addresses instead/
  await until(async () => {
    const error = await read().catch((cause: Error) => cause)
    return refused.test(String(error instanceof Error && error.cause))
  })
  await until(async () => refused.test(faults()[0] ?? ''))
})

test('a server that is replaced at its address is pinned again', async (t) => {
  let target = { server: first, name: 'alpha' }
  const front = await frontOf(t, () => target)
  const { clickhouse, warnings } = pinned(t, [addressOf(first, '', front)])
  const databases = async () => {
    const rows = await clickhouse.readers.rows(
      "SELECT d.name AS name FROM system.databases AS d WHERE d.name = 'first'"
    )
    return String(rows.length)
  }
  t.equal(await databases(), '1')
  target = { server: second, name: 'beta' }
  await becomes(databases, '0')
  t.match(warnings.join(), /is another server now, beta.*are now those of/)
})

test('one server that fails is answered as before', async (t) => {
  const { read, faults } = pinned(t, [(await deadServer()).url])
  await t.rejects(read(), { code: 'engine_away', cause: { code: 'ECONNREFUSED' } })
  t.same(faults(), [undefined])
})

test('two servers that answer in turn are several, and one change is a replaced server', async (t) => {
  let now = 0
  const identity = new Identity(() => now)
  const see = (names: string) => [...names].map((name) => identity.see(name))
  t.same(see('aab'), ['same', 'same', 'replaced'])
  t.equal(identity.several, undefined)
  now = 61_000
  t.same(see('a'), ['replaced'], 'a server may come back later')
  t.same(see('b'), ['several'])
  t.equal(identity.several, 'a and b')
  now = 122_000
  t.equal(identity.several, undefined)
})

test('the servers end', async () => {
  await Promise.all([first.stop(), second.stop()])
})

/** The address of a database on a server, or on another port. */
function addressOf(server: ClickHouseServer, database: string, port?: number): string {
  const url = new URL(database, server.url)
  if (port !== undefined) url.port = String(port)
  return url.href
}

/** A port at which nothing listens. */
async function deadServer(): Promise<ClickHouseServer> {
  return { ...first, url: addressOf(first, '', await freePort()) }
}
