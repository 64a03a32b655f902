import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { until } from '@gamenet/engines/testing'
import { type Test, test } from 'tap'
import { streamedException } from '../src/clickhouse/streamed-exception.js'
import { openClickHouseServer } from '../src/index.js'
import { freePort } from '../testing/free-port.js'
import {
  type ClickHouseServer,
  clickHouseUrl,
  selfSigned,
  signalEntries,
  startClickHouseServer,
  startWire
} from '../testing/index.js'
import { clickhouseContract } from './clickhouse-contract.js'

const away = { name: 'Refusal', code: 'engine_away', retryAfterSeconds: 5 }

/** One server serves the contract; it ends with the last test of the file. CLICKHOUSE_TEST_URL names another one. */
const given = process.env.CLICKHOUSE_TEST_URL
let server: Promise<Pick<ClickHouseServer, 'url' | 'kill'>> | undefined
test('the server starts', async (t) => {
  const path = join(t.testdir({}), '..', `clickhouse-server-${process.pid}`)
  server = given === undefined ? startClickHouseServer({ path }) : databaseOn(given)
  t.ok((await server).url)
})

/** Returns a new database on a server, which is dropped at the end. */
async function databaseOn(url: string): Promise<Pick<ClickHouseServer, 'url' | 'kill'>> {
  const name = `test_${randomUUID().replaceAll('-', '')}`
  const all = openClickHouseServer({ url })
  await all.control.execute(`CREATE DATABASE ${name}`)
  // Only a child of this process would keep it alive while a test waits.
  const alive = setInterval(() => undefined, 60_000)
  const kill = async () => {
    await all.control.execute(`DROP DATABASE ${name}`)
    await all.close()
    clearInterval(alive)
  }
  return { url: Object.assign(new URL(url), { pathname: name }).href, kill }
}

clickhouseContract('HTTP', async (t, options = {}) => {
  const clickhouse = openClickHouseServer({ url: (await server)?.url ?? '', ...options })
  t.teardown(() => clickhouse.close())
  return clickhouse
})

test('without compression the answers are the same', async (t) => {
  const clickhouse = openClickHouseServer({ url: (await server)?.url ?? '', compression: false })
  t.teardown(() => clickhouse.close())
  t.equal((await clickhouse.readers.rows('SELECT number AS n FROM numbers(100000)')).length, 100_000)
  const broken = clickhouse.readers.rows('SELECT throwIf(number = 400000) FROM numbers(600000)')
  await t.rejects(broken, { name: 'ClickHouseError', code: 395 })
})

test('reads on a server that does not reply are refused in seconds, and work when it is back; writes wait', async (t) => {
  const { href, port } = new URL((await server)?.url ?? '')
  const wire = await startWire(t, Number(port))
  const url = Object.assign(new URL(href), { port: String(wire.port) }).href
  const clickhouse = openClickHouseServer({ url, readers: 1, health: { pauseMs: 50, silenceMs: 500 } })
  t.teardown(() => clickhouse.close())
  await clickhouse.readers.rows('SELECT sleep(1.5)')
  t.pass('a long statement is not a silence')
  await clickhouse.projections.execute('CREATE TABLE waited (a UInt8) ENGINE = MergeTree ORDER BY a')
  wire.isSilent = true
  const write = clickhouse.projections.execute('INSERT INTO waited VALUES (7)')
  const file = { format: 'JSONEachRow' } as const
  await Promise.all([
    t.rejects(clickhouse.readers.rows('SELECT 1'), away, 'an answer'),
    t.rejects(clickhouse.readers.rows('SELECT 2'), away, 'an answer that waits for a connection'),
    t.rejects(clickhouse.readers.stream('SELECT 1', {}, file), away, 'a file'),
    t.rejects(clickhouse.version(), away)
  ])
  await t.rejects(clickhouse.readers.rows('SELECT 1'), away, 'a new answer')
  await t.rejects(clickhouse.readers.stream('SELECT 1', {}, file), away, 'a new file')
  t.equal(clickhouse.stats().lanes.readers.running, 0, 'nothing holds a connection')
  wire.isSilent = false
  await until(
    async () =>
      await clickhouse.readers.rows('SELECT 1').then(
        () => true,
        () => false
      )
  )
  await write
  t.same(await clickhouse.readers.rows('SELECT a FROM waited'), [{ a: 7 }])
})

test('a write is not sent when its lane may not write any more, also after a wait for its connection', async (t) => {
  let isSure = true
  const beforeWrite = (lane: string) => {
    if (!isSure && lane === 'projections') throw new Error('the lock is lost')
  }
  const clickhouse = openClickHouseServer({ url: (await server)?.url ?? '', beforeWrite })
  t.teardown(() => clickhouse.close())
  const { projections, readers } = clickhouse
  await projections.execute('CREATE TABLE sure (a UInt8) ENGINE = MergeTree ORDER BY a')
  const first = projections.execute('INSERT INTO sure SELECT sleep(1)')
  const lost = t.rejects(projections.execute('INSERT INTO sure VALUES (1)'), /the lock is lost/)
  const bytes = new TextEncoder().encode('[2]\n')
  const lostBody = t.rejects(projections.insert('sure', ['a'], bytes), /the lock is lost/)
  await until(() => clickhouse.stats().lanes.projections.waiting === 2, nextTurn)
  isSure = false
  await Promise.all([first, lost, lostBody])
  await clickhouse.loader.insert('sure', ['a'], bytes)
  t.same(await readers.rows('SELECT a FROM sure ORDER BY a'), [{ a: 0 }, { a: 2 }])
})

test('the server ends', async () => {
  await (await server)?.kill()
})

test('a certificate is trusted if its authority is', async (t) => {
  const { keyFile, certificateFile } = selfSigned(t.testdir())
  const ca = readFileSync(certificateFile, 'utf8')
  let asked = 0
  const server = createTlsServer({ key: readFileSync(keyFile), cert: ca }, (_request, response) => {
    asked += 1
    response
      .writeHead(500, { 'x-clickhouse-exception-code': '497' })
      .end('Code: 497. DB::Exception: Not enough privileges. (ACCESS_DENIED)')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  const [stranger, knowing] = [openClickHouseServer({ url }), openClickHouseServer({ url, ca })]
  for (const clickhouse of [stranger, knowing]) t.teardown(() => clickhouse.close())
  await t.rejects(stranger.readers.rows('SELECT 1'), away)
  t.equal(asked, 0)
  await t.rejects(knowing.readers.rows('SELECT 1'), { name: 'ClickHouseError', code: 497 })
})

test('an unavailable server is reported, and is used again when it is back', async (t) => {
  const path = join(t.testdir(), 'clickhouse')
  const first = await startClickHouseServer({ path, port: await freePort() })
  const clickhouse = openClickHouseServer({ url: first.url })
  t.teardown(() => clickhouse.close())
  await clickhouse.projections.execute('CREATE TABLE kept (a UInt8) ENGINE = MergeTree ORDER BY a')
  const unfinished = clickhouse.readers.rows('SELECT sum(cityHash64(number)) FROM system.numbers')
  const lost = t.rejects(unfinished, away, 'what was under way')
  await until(() => clickhouse.stats().lanes.readers.running === 1, nextTurn)
  await Promise.all([lost, first.kill()])
  await t.rejects(clickhouse.readers.rows('SELECT 1'), away)
  await t.rejects(clickhouse.loader.insert('kept', ['a'], new TextEncoder().encode('[7]\n')), away)
  const second = await startClickHouseServer({ path, port: Number(new URL(first.url).port) })
  t.teardown(() => second.kill())
  await clickhouse.loader.insert('kept', ['a'], new TextEncoder().encode('[7]\n'))
  t.same(await clickhouse.readers.rows('SELECT a FROM kept'), [{ a: 7 }])
})

test('a server may start later than the service', async (t) => {
  const path = join(t.testdir(), 'clickhouse')
  const port = await freePort()
  const clickhouse = openClickHouseServer({ url: clickHouseUrl(port) })
  t.teardown(() => clickhouse.close())
  await t.rejects(clickhouse.version(), away)
  const late = await startClickHouseServer({ path, port })
  t.teardown(() => late.kill())
  t.match(await clickhouse.version(), /^\d+\.\d+/)
})

const served = async (t: Test, answer: (respond: import('node:http').ServerResponse) => void): Promise<string> => {
  const server = createServer((request, response) => {
    request.resume().on('end', () => answer(response))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.closeAllConnections())
  t.teardown(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('a silent server, one that hangs up, and one that is not ClickHouse are unavailable', async (t) => {
  const silent = await served(t, () => undefined)
  const hanging = await served(t, (response) => response.destroy())
  const other = await served(t, (response) => response.writeHead(502).end('<html>Bad Gateway</html>'))
  for (const url of [silent, hanging, other]) {
    const clickhouse = openClickHouseServer({ url, requestTimeoutMs: 300 })
    t.teardown(() => clickhouse.close())
    await t.rejects(clickhouse.readers.rows('SELECT 1'), away, url)
  }
})

test('statements leave nothing at a signal that outlives them', async (t) => {
  const url = await served(t, (response) => response.end('[\n\n]\n'))
  const clickhouse = openClickHouseServer({ url })
  t.teardown(() => clickhouse.close())
  const { signal } = new AbortController()
  await Promise.all(Array.from({ length: 20 }, () => clickhouse.readers.json('SELECT 1', {}, { signal })))
  t.equal(signalEntries(signal), 0)
})

test('a server that refuses the user or the database is unavailable, with the reason', async (t) => {
  for (const [code, reason] of [
    ['516', 'gamenet: Authentication failed: password is incorrect'],
    ['81', 'Database nodb does not exist']
  ] as const) {
    const url = await served(t, (response) =>
      response
        .writeHead(code === '81' ? 404 : 403, { 'x-clickhouse-exception-code': code })
        .end(`Code: ${code}. DB::Exception: ${reason}. (NAME)`)
    )
    const clickhouse = openClickHouseServer({ url })
    t.teardown(() => clickhouse.close())
    await t.rejects(clickhouse.readers.rows('SELECT 1'), { ...away, cause: { message: new RegExp(reason) } })
  }
})

test('the user of questions signs in with what the password of the address gives, however that is written', async (t) => {
  const own = await startClickHouseServer()
  t.teardown(() => own.stop())
  for (const url of [own.url, own.url.replace(':testing@', ':%74esting@')]) {
    const clickhouse = openClickHouseServer({ url })
    t.teardown(() => clickhouse.close())
    const answer = await clickhouse.readers.json('SELECT currentUser() AS name', {}, { isQuestion: true })
    t.match(String(Buffer.from(answer)), /gamenet_questions/)
  }
})

test('an answer that ends early is an error, never a shorter answer', async (t) => {
  const known = 'max_threads\n'
  let calls = 0
  const url = await served(t, (response) => {
    calls += 1
    response.end(calls === 1 ? known : '[\n{"n":1},\n{"n":2}')
  })
  const clickhouse = openClickHouseServer({ url })
  t.teardown(() => clickhouse.close())
  await t.rejects(clickhouse.readers.json('SELECT 1'), { name: 'ClickHouseError', message: /is truncated/ })
})

test('an exception in a body is found in the forms of old and new servers, and only there', async (t) => {
  const rows = '[\n{"a":"x"}'
  const message = "Code: 395. DB::Exception: It's broken. (FUNCTION_THROW_IF_VALUE_IS_NON_ZERO) (version 26.7)"
  const tag = 'rwzhvnamhqcfyfbh'
  const framed = `${rows}\r\n__exception__\r\n${tag}\r\n${message}\n${message.length + 1} ${tag}\r\n__exception__\r\n`
  const find = (text: string, of?: string): string | undefined => streamedException(Buffer.from(text), of)
  t.equal(find(framed, tag), message)
  t.equal(find(framed.slice(0, -30), tag), message, 'cut off behind the message')
  t.equal(find(`${rows}\n__exception__\n${message}\n`), message)
  t.equal(find(`${rows}\n${message}\n`), message)
  const quoted = `[\n${JSON.stringify({ a: framed })}\n]\n`
  t.equal(find(quoted, tag), undefined)
  t.equal(find(quoted), undefined)
  t.equal(find('[\n\n]\n', tag), undefined)
  t.equal(find('', undefined), undefined)
})
