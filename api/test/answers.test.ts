import { createHook } from 'node:async_hooks'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { ClickHouseError } from '@gamenet/engines'
import { FIRST_GENERATION, Refusal } from '@gamenet/schemas'
import type { FastifyInstance } from 'fastify'
import { type Test, test } from 'tap'
import { z } from 'zod'
import type { Endpoint } from '../src/answers/endpoint.js'
import { sendFile } from '../src/answers/file.js'
import { resolveUrl } from '../src/answers/resolved-url.js'
import { checkedHeaders } from '../src/reply/headers.js'
import { codingFor } from '../src/request/accept-encoding.js'
import { clientAddresses } from '../src/request/client-address.js'
import { player } from '../src/routes/player.js'
import { counts, exchange, logOfLines, NOW_MS, type TestTables, testApp } from './support/test-app.js'

const MINUTE = 60_000
/** A level of pino. */
const ERROR_LEVEL = 50
const URL = '/api/counts?days=2'

async function outcomes(registry: { getSingleMetricAsString(name: string): Promise<string> }) {
  const text = await registry.getSingleMetricAsString('gamenet_answer_requests_total')
  return Object.fromEntries(
    [...text.matchAll(/outcome="(\w+)"\} (\d+)/g)].map(([, name, count]) => [name, Number(count)])
  )
}

/** Delays queries until `open` is called. */
function gate(tables: TestTables) {
  let open: () => void = () => undefined
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  const asked: (AbortSignal | undefined)[] = []
  let onQuery: () => void = () => undefined
  tables.answer = async (_parameters, signal) => {
    asked.push(signal)
    onQuery()
    await Promise.race([
      opened,
      signal === undefined
        ? new Promise<never>(() => undefined)
        : once(signal, 'abort').then(() => Promise.reject(signal.reason))
    ])
    return [{ online: 12 }]
  }
  const until = async (count: number) => {
    while (asked.length < count) await new Promise<void>((resolve) => (onQuery = resolve))
  }
  return { open, asked, until }
}

async function yieldUntil(app: FastifyInstance, isReached: () => boolean) {
  for (let at = 0; at < 100_000 && !isReached(); at += 1) await turn()
  if (!isReached()) throw new Error(`never reached; listening: ${app.server.listening}`)
}

test('a repeated request is answered from memory, in any order of its parameters', async (t) => {
  const { app, tables, registry } = await testApp(t)
  tables.answer = async () => [{ online: 12 }]
  const first = await app.inject(URL)
  t.equal(first.statusCode, 200)
  t.same(first.json(), [{ online: 12 }])
  const second = await app.inject(URL)
  const third = await app.inject('/api/counts?metric=online&days=2&unknown=1')
  t.equal(tables.asked, 1)
  t.equal(second.headers.etag, first.headers.etag)
  t.equal(third.body, first.body)
  t.equal(third.headers.etag, first.headers.etag)
  t.match(await outcomes(registry), { query: 1, memory: 2 })
})

test('HEAD has the headers of GET and no body', async (t) => {
  const { app, tables } = await testApp(t)
  tables.answer = async () => [{ online: 12 }]
  const get = await app.inject(URL)
  const head = await app.inject({ method: 'HEAD', url: URL })
  t.equal(head.statusCode, 200)
  t.equal(head.body, '')
  const { 'x-request-id': _a, date: _b, ...same } = get.headers
  const { 'x-request-id': _c, date: _d, ...other } = head.headers
  t.same(other, same)
})

test('If-None-Match gives 304 with the same headers and no query, even if the answer is not cached', async (t) => {
  const { app, tables } = await testApp(t)
  tables.answer = async () => [{ online: 12 }]
  const full = await app.inject(URL)
  const { etag } = full.headers
  const again = await testApp(t)
  for (const ifNoneMatch of [etag, `W/${etag}`, `"other", ${etag}`, `${etag} , "x"`, '*', `"a,b", W/${etag}`]) {
    for (const method of ['GET', 'HEAD'] as const) {
      const { statusCode, body, headers } = await again.app.inject({
        method,
        url: URL,
        headers: { 'if-none-match': ifNoneMatch }
      })
      t.equal(statusCode, 304, `${ifNoneMatch}`)
      t.equal(body, '')
      t.equal(headers.etag, etag)
      for (const name of [
        'cache-control',
        'vary',
        'x-data-version',
        'x-resolution-seconds',
        'access-control-allow-origin'
      ]) {
        t.equal(headers[name], full.headers[name], name)
      }
      t.equal(headers['content-type'], undefined)
      t.match(headers['x-request-id'], /./)
    }
  }
  t.equal(again.tables.asked, 0)
  const exposed = 'access-control-expose-headers'
  const asPage = await app.inject({ url: URL, headers: { origin: 'https://example.org', 'if-none-match': '*' } })
  t.equal(asPage.statusCode, 304)
  t.equal(asPage.headers[exposed], full.headers[exposed])
  for (const other of ['"x"', `${etag}`.slice(1, -1), `"${etag}"`, '', ',', `x${etag}`]) {
    t.equal((await app.inject({ url: URL, headers: { 'if-none-match': other } })).statusCode, 200, other)
  }
})

test('an answer is computed again when its data have changed, and only then', async (t) => {
  const { app, tables, versions, registry } = await testApp(t)
  let online = 1
  tables.answer = async () => [{ online }]
  const before = await app.inject(URL)
  online = 2
  const change = { projection: 'network-count', fromMs: NOW_MS - 5 * 24 * 3_600_000, toMs: NOW_MS - 4 * 24 * 3_600_000 }
  tables.changes.push({ ...change, version: 100 })
  await versions.refresh()
  const outside = await app.inject(URL)
  t.equal(outside.headers.etag, before.headers.etag, 'a change outside the window')
  tables.changes.push({ ...change, projection: 'title', fromMs: 0, toMs: NOW_MS, version: 101 })
  await versions.refresh()
  t.equal((await app.inject(URL)).headers.etag, before.headers.etag, 'a change of something else')
  tables.changes.push({ ...change, fromMs: NOW_MS - MINUTE, toMs: NOW_MS, version: 102 })
  await versions.refresh()
  const inside = await app.inject(URL)
  t.not(inside.headers.etag, before.headers.etag)
  t.same(inside.json(), [{ online: 2 }])
  t.equal(inside.headers['x-data-version'], '102')
  t.match(await outcomes(registry), { query: 2, memory: 2 })
})

test('a change of any table that an answer reads gives it another identity', async (t) => {
  const input = { playerName: 'Ann', limit: 10, offset: 0 }
  const identity = async (changed?: string) => {
    const versionOf = ({ projection }: { readonly projection: string }) => (projection === changed ? 9 : 1)
    const versions = { revision: 1, serving: FIRST_GENERATION, versionOf }
    const catalog = { held: async () => ({ digest: () => '' }) }
    return (await resolveUrl(player, input, '', { versions, catalog, nowMs: NOW_MS } as never)).identity
  }
  const projections = player.reads(input).map(({ projection }) => projection)
  t.ok(projections.length > 2)
  for (const projection of projections) t.not(await identity(projection), await identity(), projection)
})

test('a window that ends now gives a new answer in the next minute, and the same until then', async (t) => {
  const { app, tables, clock } = await testApp(t)
  const first = await app.inject(URL)
  clock.nowMs += 29_000
  t.equal((await app.inject(URL)).headers.etag, first.headers.etag)
  t.equal(tables.asked, 1)
  clock.nowMs += 1_000
  t.not((await app.inject(URL)).headers.etag, first.headers.etag)
  t.equal(tables.asked, 2)
})

test('tags are equal in every process that knows the same changes', async (t) => {
  const changes = [
    { projection: 'network-count', version: 5, fromMs: NOW_MS - MINUTE, toMs: NOW_MS },
    { projection: 'network-count', version: 6, fromMs: NOW_MS - 30 * MINUTE, toMs: NOW_MS - 29 * MINUTE }
  ]
  const one = await testApp(t)
  const other = await testApp(t)
  one.tables.changes.push(...changes)
  await one.versions.refresh()
  for (const change of [...changes].reverse()) {
    other.tables.changes.push(change)
    await other.versions.refresh()
  }
  t.equal((await one.app.inject(URL)).headers.etag, (await other.app.inject(URL)).headers.etag)
})

test('concurrent callers of one query share it', async (t) => {
  const { app, tables, registry } = await testApp(t)
  const { open, until, asked } = gate(tables)
  const all = Promise.all(Array.from({ length: 20 }, () => app.inject(URL)))
  await until(1)
  for (let at = 0; at < 20; at += 1) await turn()
  open()
  const answers = await all
  t.equal(asked.length, 1)
  t.same([...new Set(answers.map(({ body }) => body))], ['[{"online":12}]'])
  t.match(await outcomes(registry), { query: 1, joined: 19 })
})

test('a connection receives each header of a ready answer once, as `inject` shows them', async (t) => {
  const { app, tables, versions, clock } = await testApp(t)
  tables.answer = async () => Array.from({ length: 200 }, (_, online) => ({ online }))
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  const { etag } = (await app.inject({ url: URL, headers: { 'accept-encoding': 'gzip' } })).headers
  const compare = async (what: string, method: 'GET' | 'HEAD', headers: Record<string, string>) => {
    const known = await app.inject({ method, url: URL, headers })
    const sent = request({ port, host: '127.0.0.1', method, path: URL, headers, agent: false })
    const [answer] = (await once(sent.end(), 'response')) as [IncomingMessage]
    const chunks: Buffer[] = await answer.toArray()
    t.equal(answer.statusCode, known.statusCode, what)
    t.same(Buffer.concat(chunks), known.rawPayload, what)
    const names = answer.rawHeaders.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase())
    t.same(names, [...new Set(names)], `${what}: each once`)
    const rest = ({ date, connection, 'x-request-id': id, ...others }: IncomingHttpHeaders) => others
    t.same(rest(answer.headers), rest(known.headers as IncomingHttpHeaders), what)
    t.match(answer.headers, { date: String, 'x-request-id': /^[\w-]{8}\.\w+$/ })
    return answer.headers
  }
  await compare('plain', 'GET', {})
  await compare('gzip', 'GET', { 'accept-encoding': 'gzip' })
  t.match(await compare('HEAD', 'HEAD', {}), { 'content-length': /^\d+$/ })
  await compare('304', 'GET', { 'if-none-match': String(etag) })
  const shown = await compare('304 to a page', 'GET', { 'if-none-match': String(etag), origin: 'http://page.example' })
  t.ok(shown['access-control-expose-headers'])
  tables.away = new Error('away')
  await t.rejects(versions.refresh())
  clock.nowMs += 10_000
  t.equal((await compare('with its age', 'GET', {})).age, '10')
})

test('cached headers cannot contain a line of their own', (t) => {
  t.throws(() => checkedHeaders({ Link: 'a\r\nSet-Cookie: b' }), { code: 'ERR_INVALID_CHAR' })
  t.end()
})

test('a query is aborted when its client disconnects, unless others wait for it', async (t) => {
  const { app, tables } = await testApp(t)
  const { open, asked, until } = gate(tables)
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  const ask = async (path: string) => {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => undefined)
    await once(socket, 'connect')
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
    return socket
  }
  const alone = await ask('/api/counts?days=3')
  await until(1)
  alone.destroy()
  await yieldUntil(app, () => asked[0]?.aborted === true)
  t.equal(asked[0]?.aborted, true, 'nobody waits any longer')

  const first = await ask('/api/counts?days=4')
  await until(2)
  const second = app.inject('/api/counts?days=4')
  await turn()
  first.destroy()
  await once(first, 'close')
  const third = app.inject('/api/counts?days=4')
  await turn()
  t.equal(asked[1]?.aborted, false)
  open()
  t.same((await second).json(), [{ online: 12 }])
  t.same((await third).json(), [{ online: 12 }])
  t.equal(asked.length, 2)
})

test('while the tables are unavailable the last answer to the same request is sent with its age', async (t) => {
  const { app, tables, versions, clock, registry } = await testApp(t)
  tables.answer = async () => [{ online: 1 }]
  const before = await app.inject(URL)
  for (const failure of [new Refusal('engine_away'), new Refusal('engine_busy')]) {
    tables.answer = async () => {
      throw failure
    }
    clock.nowMs += 5 * MINUTE
    const { statusCode, headers, body } = await app.inject(URL)
    t.equal(statusCode, 200)
    t.equal(body, before.body)
    t.equal(headers.age, String((clock.nowMs - NOW_MS) / 1000))
    t.equal(headers.etag, before.headers.etag, 'the tag names the bytes that are sent')
  }
  t.match(await outcomes(registry), { stale: 2 })
  tables.answer = async () => {
    throw new Refusal('engine_away', ['The tables'])
  }
  const other = await app.inject('/api/counts?days=9')
  t.equal(other.statusCode, 503)
  t.equal(other.headers['retry-after'], '1')
  t.same(other.json(), { error: 'The tables cannot be reached at the moment; retry shortly.' })
  tables.away = new Error('away')
  await t.rejects(versions.refresh())
  tables.away = undefined
  tables.answer = async () => [{ online: 3 }]
  t.same((await app.inject(URL)).json(), [{ online: 3 }])
  clock.nowMs += 10_000
  t.equal((await app.inject(URL)).headers.age, '10', 'while changes cannot be learnt, memory says its age')
})

test('a defect is never hidden behind the last answer, and its cause is in the log as an error', async (t) => {
  const { logger, lines } = logOfLines()
  const { app, tables, clock, registry } = await testApp(t, { logger })
  const good = async () => [{ online: 1 }]
  tables.answer = good
  const before = await app.inject(URL)
  for (const defect of [
    new TypeError('rows is not iterable'),
    new z.ZodError([{ code: 'custom', path: ['online_count'], message: 'missing', input: undefined }]),
    new ClickHouseError('Code: 47. Unknown identifier', { code: 47, sql: 'SELECT x' }),
    new ClickHouseError('Code: 159. Timeout exceeded', { code: 159, sql: 'SELECT x' }),
    new ClickHouseError('Code: 241. Query memory limit exceeded', { code: 241, sql: 'SELECT x' }),
    new Refusal('internal', ['x'])
  ]) {
    tables.answer = async () => {
      throw defect
    }
    clock.nowMs += MINUTE
    const { statusCode, headers, json } = await app.inject(URL)
    t.equal(statusCode, 500, defect.message)
    t.equal(headers.age, undefined)
    t.match(json().error, /^The service failed; its log has the cause under request /)
    const entry = lines.map((line) => JSON.parse(line)).find(({ reqId }) => reqId === headers['x-request-id'])
    t.equal(entry?.level, ERROR_LEVEL)
    t.equal(entry?.err.message, defect.message)
  }
  t.match(await outcomes(registry), { query: 1 })
  t.notOk((await outcomes(registry)).stale)
  tables.answer = good
  t.equal((await app.inject(URL)).body, before.body, 'and it recovers')
})

test('a busy engine refuses new queries with Retry-After, and cached answers are sent', async (t) => {
  const { app, tables } = await testApp(t)
  await app.inject(URL)
  tables.answer = async () => {
    throw new Refusal('engine_busy', [], { retryAfterSeconds: 7 })
  }
  const [busy, ready] = await Promise.all([app.inject('/api/counts?days=9'), app.inject(URL)])
  t.equal(busy.statusCode, 503)
  t.equal(busy.headers['retry-after'], '7')
  t.equal(busy.headers['cache-control'], 'no-store')
  t.equal(ready.statusCode, 200)
  t.equal(ready.headers.age, undefined)
})

test('a refusal found during a query is sent and not cached', async (t) => {
  const { app, tables } = await testApp(t)
  tables.answer = async () => [{ online: 1 }]
  await app.inject(URL)
  tables.answer = async () => {
    throw new Refusal('answer_too_large', ['More than 1,000,000 points; resolution=300 fits'])
  }
  const refused = await app.inject('/api/counts?days=9')
  t.equal(refused.statusCode, 400)
  t.same(refused.json(), { error: 'More than 1,000,000 points; resolution=300 fits.' })
  tables.answer = async () => [{ online: 2 }]
  t.same((await app.inject('/api/counts?days=9')).json(), [{ online: 2 }])
})

test('the cache evicts the least recently used answers beyond its bytes, and stores no answer that is too large', async (t) => {
  const { app, tables, registry } = await testApp(t, { limits: { memoryBytes: 40_000 } })
  tables.answer = async ({ days }) => Array.from({ length: Number(days) === 30 ? 2000 : 200 }, () => ({ online: 1000 }))
  for (let days = 1; days <= 20; days += 1) await app.inject(`/api/counts?days=${days}`)
  t.equal(tables.asked, 20)
  await app.inject('/api/counts?days=20')
  t.equal(tables.asked, 20)
  await app.inject('/api/counts?days=1')
  t.equal(tables.asked, 21)
  await app.inject('/api/counts?days=30')
  await app.inject('/api/counts?days=30')
  t.equal(tables.asked, 23)
  for (const coding of ['br', 'gzip']) {
    for (let days = 1; days <= 20; days += 1) {
      await app.inject({ url: `/api/counts?days=${days}`, headers: { 'accept-encoding': coding } })
    }
  }
  const [bytes] = (await registry.getSingleMetric('gamenet_answer_memory_bytes')?.get())?.values ?? []
  t.ok((bytes?.value ?? 0) > 10_000 && (bytes?.value ?? 0) <= 40_000, `${bytes?.value} bytes`)
})

test('the cache counts the keys and the compressed bodies that it holds', async (t) => {
  const { app, tables, registry } = await testApp(t, { limits: { memoryBytes: 100_000_000 } })
  const heldBytes = async () =>
    (await registry.getSingleMetric('gamenet_answer_memory_bytes')?.get())?.values[0]?.value ?? 0
  for (let n = 10; n < 30; n += 1) await app.inject(`/api/game/${n}`)
  const short = await heldBytes()
  for (let n = 10; n < 30; n += 1) await app.inject(`/api/game/${String(n).padStart(500, 'x')}`)
  // Each name is in the body and in the key.
  t.ok((await heldBytes()) - 2 * short >= 20 * 498 * (1 + 2), `${short} bytes, then ${await heldBytes()}`)
  tables.answer = async () => Array.from({ length: 500 }, (_, n) => ({ online: n }))
  await app.inject('/api/counts?days=1')
  const before = await heldBytes()
  await app.inject({ url: '/api/counts?days=1', headers: { 'accept-encoding': 'gzip' } })
  t.ok((await heldBytes()) > before + 500, `${before} bytes, then ${await heldBytes()}`)
})

/** What proxies that compress add to a tag: Apache, Caddy, lighttpd, Jetty, and two of them behind one another. */
const SUFFIXES_OF_PROXIES = ['-gzip', '-br', '-deflate', '-df', '-zstd', '--gzip', ';gzip', '-gzip-gzip', '-gzip;gzip']

test('long answers are compressed as requested, with a tag for each coding that any If-None-Match may name', async (t) => {
  const { app, tables } = await testApp(t)
  tables.answer = async () => Array.from({ length: 500 }, (_, online) => ({ online }))
  const plain = await app.inject(URL)
  t.equal(plain.headers['content-encoding'], undefined)
  t.equal(plain.headers.vary, 'Accept-Encoding')
  const tags = [plain.headers.etag]
  for (const [accept, coding, open] of [
    ['gzip', 'gzip', gunzipSync],
    ['gzip, deflate, br', 'br', brotliDecompressSync]
  ] as const) {
    for (let times = 0; times < 2; times += 1) {
      const { headers, rawPayload } = await app.inject({ url: URL, headers: { 'accept-encoding': accept } })
      t.equal(headers['content-encoding'], coding)
      t.equal(headers['content-length'], String(rawPayload.byteLength))
      t.equal(open(rawPayload).toString(), plain.body)
      tags.push(headers.etag)
    }
  }
  t.equal(new Set(tags).size, 3)
  for (const tag of tags) {
    const { statusCode, headers } = await app.inject({ url: URL, headers: { 'if-none-match': String(tag) } })
    t.equal(statusCode, 304)
    t.equal(headers.etag, tag)
  }
  for (const [tag, suffix] of tags.flatMap((tag) =>
    SUFFIXES_OF_PROXIES.map((suffix) => [String(tag), suffix] as const)
  )) {
    const changed = tag.replace(/"$/, `${suffix}"`)
    for (const header of [changed, `W/${changed}`, `"other", W/${changed}`]) {
      const { statusCode, headers } = await app.inject({ url: URL, headers: { 'if-none-match': header } })
      t.same([statusCode, headers.etag], [304, tag], header)
    }
  }
  for (const suffix of ['-x', 'gzip', '-gzipx', '-b-g', '-']) {
    const changed = String(plain.headers.etag).replace(/"$/, `${suffix}"`)
    t.equal((await app.inject({ url: URL, headers: { 'if-none-match': changed } })).statusCode, 200, suffix)
  }
  t.equal(tables.asked, 1)
  const short = await app.inject({ url: '/api/game/x', headers: { 'accept-encoding': 'br' } })
  t.equal(short.headers['content-encoding'], undefined)
})

test('Accept-Encoding is weighed', async (t) => {
  for (const [accept, coding] of [
    [undefined, 'identity'],
    ['', 'identity'],
    ['identity', 'identity'],
    ['gzip', 'gzip'],
    ['GZIP', 'gzip'],
    ['x-gzip', 'gzip'],
    ['br', 'br'],
    ['gzip, br', 'br'],
    ['gzip;q=1.0, br;q=0.5', 'gzip'],
    ['br;q=0, gzip;q=0.1', 'gzip'],
    ['br;q=0', 'identity'],
    ['gzip;q=0.5, identity;q=0.8', 'identity'],
    ['gzip;q=0.5, identity', 'identity'],
    ['*', 'br'],
    ['*;q=0.5, gzip', 'gzip'],
    ['br;q=0, *', 'gzip'],
    ['deflate, zstd', 'identity'],
    ['identity;q=0, *;q=0', 'identity'],
    ['br;q=nonsense, gzip', 'gzip'],
    [',,;;q=', 'identity']
  ] as const) {
    t.equal(codingFor(accept), coding, `${accept}`)
    t.equal(codingFor(accept), coding, `${accept}, remembered`)
  }
})

test('a deprecated path has its date and its successor, on 304 too', async (t) => {
  const { app } = await testApp(t)
  const url = '/api/old/4d5307e6'
  const full = await app.inject(url)
  t.same(full.json(), { titleId: '4d5307e6' })
  t.equal(full.headers.deprecation, '@1767225600')
  t.equal(full.headers.link, '</api/title/4d5307e6>; rel="successor-version"')
  t.equal(full.headers['x-made'], 'yes')
  const { statusCode, headers } = await app.inject({ url, headers: { 'if-none-match': String(full.headers.etag) } })
  t.equal(statusCode, 304)
  t.equal(headers.deprecation, '@1767225600')
  t.equal(headers.link, full.headers.link)
})

/** The endpoint of counts as a list. */
const listed: Endpoint = {
  ...(counts as Endpoint),
  table: {
    row: z.object({ online: z.int() }),
    rows: (body) => body as object[],
    select: () => ({ sql: 'SELECT counts', parameters: {} })
  }
}

/** Sends a file to a client that reads it as `take` does; settles as `sendFile` does. */
async function sentTo(
  t: Test,
  file: Readable,
  take: (answer: IncomingMessage) => void,
  { connectionMs = 0, totalMs = 600_000 } = {}
) {
  const server = createServer().setTimeout(connectionMs)
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  request({ port: (server.address() as AddressInfo).port, host: '127.0.0.1' }, take)
    .on('error', () => undefined)
    .end()
  const [, response] = await once(server, 'request')
  await sendFile(file, response, totalMs)
}

const chunks = (count: number) =>
  Readable.from(
    (function* () {
      for (let n = 0; n < count; n += 1) yield Buffer.alloc(2 ** 16)
    })()
  )

test('the transfer of a file ends when its client disconnects or reads nothing', async (t) => {
  await t.rejects(sentTo(t, chunks(Infinity), (answer) => answer.once('readable', () => answer.destroy())))
  const stalled = sentTo(t, chunks(Infinity), () => undefined, { connectionMs: 50 })
  await t.rejects(stalled, { code: 'ERR_STREAM_PREMATURE_CLOSE' })
  const slow = sentTo(t, chunks(Infinity), (answer) => answer.resume(), { totalMs: 0 })
  await t.rejects(slow, { cause: { name: 'TimeoutError' } })
})

test('a transferred file leaves no timers', async (t) => {
  const timers = new Set<number>()
  const hook = createHook({
    init: (id, type) => type === 'Timeout' && timers.add(id),
    destroy: (id) => timers.delete(id)
  }).enable()
  t.teardown(() => hook.disable())
  await sentTo(t, chunks(500), (answer) => answer.resume())
  await turn()
  t.ok(timers.size < 10, `${timers.size} timers`)
})

/** A whole stream of bytes. */
const streamOf = (text: string) => Readable.from([Buffer.from(text)], { objectMode: false })

test('a file has a length, ranges and a tag of its bytes', async (t) => {
  const { app, tables } = await testApp(t, { endpoints: [listed] })
  const url = '/api/counts?format=csv'
  for (const text of ['"online"\n12\n', `"online"\n${'1234567\n'.repeat(50_000)}`]) {
    tables.streamed = () => streamOf(text)
    const length = String(text.length)
    const filter = `&filter=${length}`
    const whole = await app.inject(url + filter)
    t.match(whole, { statusCode: 200, body: text, headers: { 'content-length': length, 'accept-ranges': 'bytes' } })
    const head = await app.inject({ method: 'HEAD', url: url + filter })
    t.match(head, { statusCode: 200, body: '', headers: { 'content-length': length, 'content-type': /csv/ } })
    const etag = String(head.headers.etag)
    t.equal(etag, whole.headers.etag)
    for (const [range, first, last] of [
      ['bytes=2-5', 2, 5],
      ['bytes=4-', 4, text.length - 1],
      ['bytes=-3', text.length - 3, text.length - 1]
    ] as const) {
      for (const condition of [{}, { 'if-range': etag }]) {
        const part = await app.inject({ url: url + filter, headers: { range, ...condition } })
        const headers = { 'content-range': `bytes ${first}-${last}/${length}`, etag }
        t.match(part, { statusCode: 206, body: text.slice(first, last + 1), headers }, range)
      }
    }
    const changed = await app.inject({ url: url + filter, headers: { range: 'bytes=2-5', 'if-range': '"other"' } })
    t.match(changed, { statusCode: 200, body: text })
    const beyond = await app.inject({ url: url + filter, headers: { range: `bytes=${length}-` } })
    t.match(beyond, { statusCode: 416, headers: { 'content-range': `bytes */${length}`, 'content-type': /json/ } })
    const known = await app.inject({ url: url + filter, headers: { 'if-none-match': `"x", W/${etag}` } })
    t.match(known, { statusCode: 304, headers: { etag } })
    for (const [ifMatch, status] of [
      [etag, 200],
      ['"other"', 412]
    ] as const)
      t.equal((await app.inject({ url: url + filter, headers: { 'if-match': ifMatch } })).statusCode, status)
  }
})

test('a file that fails in the middle is refused, and never looks complete', async (t) => {
  const { app, tables } = await testApp(t, { endpoints: [listed] })
  tables.streamed = () =>
    Readable.from(
      (async function* () {
        yield Buffer.alloc(200_000)
        throw new Refusal('engine_away')
      })(),
      { objectMode: false }
    )
  const failed = await app.inject('/api/counts?format=csv')
  t.match(failed, { statusCode: 503, headers: { 'x-error-code': 'engine_away', 'content-type': /json/ } })
  tables.streamed = () => streamOf('"online"\n12\n')
  t.equal((await app.inject('/api/counts?format=csv')).body, '"online"\n12\n', 'a failure is not kept')
})

test('a statement ends when all clients of its file have left', async (t) => {
  const { app, tables } = await testApp(t, { endpoints: [listed] })
  const body = new Readable({ read: () => undefined })
  body.push('"online"\n')
  const signals: (AbortSignal | undefined)[] = []
  tables.answer = async (_parameters, signal) => {
    signals.push(signal)
    signal?.addEventListener('abort', () => body.destroy())
    return []
  }
  tables.streamed = () => body
  await app.listen({ host: '127.0.0.1', port: 0 })
  const open = async () => {
    const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1')
    const asked = once(app.server, 'request')
    socket.write('GET /api/counts?format=csv HTTP/1.1\r\nHost: x\r\n\r\n')
    await asked
    return socket
  }
  const [first, second] = [await open(), await open()]
  while (signals.length === 0) await turn()
  first.destroy()
  for (let n = 0; n < 20; n += 1) await turn()
  t.notOk(body.destroyed, 'the other client waits for it')
  t.equal(signals.length, 1, 'they share the statement')
  const closed = once(body, 'close')
  second.destroy()
  await closed
  tables.answer = async () => {
    throw new Refusal('engine_busy', [], { retryAfterSeconds: 5 })
  }
  const busy = await app.inject('/api/counts?format=parquet')
  t.match(busy, { statusCode: 503, headers: { 'retry-after': '5', 'content-type': /json/ } })
})

/** A stream of some MiB. */
const mebibytes = (count: number) =>
  Readable.from(
    (function* () {
      for (let n = 0; n < count * 16; n += 1) yield Buffer.alloc(2 ** 16, n)
    })(),
    { objectMode: false }
  )

/** Asks for a file, and reads its head alone. Resolves with the status. */
async function unread(t: Test, app: FastifyInstance, url: string, headers = ''): Promise<number> {
  if (!app.server.listening) await app.listen({ host: '127.0.0.1', port: 0 })
  const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  socket.on('error', () => undefined)
  socket.write(`GET ${url} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`)
  await once(socket, 'readable')
  return Number(String(socket.read(12)).slice(9))
}

test('files that nobody reads hold no statement, and others are made and read', async (t) => {
  const directory = join(t.testdir(), 'exports')
  const spaces: number[] = []
  const requireSpace = async (bytes: number) => void spaces.push(bytes)
  const exports = { directory, bytesMax: 200 * 2 ** 20, perAddress: 8, requireSpace }
  const { app, tables, registry } = await testApp(t, { endpoints: [listed], exports })
  let open = 0
  tables.streamed = () => {
    open += 1
    return mebibytes(8).once('close', () => {
      open -= 1
    })
  }
  for (let n = 0; n < 20; n += 1) t.equal(await unread(t, app, `/api/counts?format=csv&filter=${n}`), 200)
  t.equal(open, 0, 'all statements have ended')
  t.same(readdirSync(directory), [], 'the files have no names')
  t.equal(statSync(directory).mode & 0o777, 0o700)
  t.same(spaces, Array(20).fill(64 * 2 ** 20))
  const other = await app.inject('/api/counts?format=csv&filter=other')
  t.match(other, { statusCode: 200, headers: { 'content-length': String(8 * 2 ** 20) } })
  t.equal(createHash('sha256').update(other.rawPayload).digest('hex'), await digestOf(mebibytes(8)))
  t.match(await registry.metrics(), `gamenet_export_bytes ${21 * 8 * 2 ** 20}`)
  // The kept one makes room; the twenty do not.
  tables.streamed = () => mebibytes(40)
  t.equal((await app.inject('/api/counts?format=csv&filter=large')).statusCode, 200)
  tables.streamed = () => mebibytes(41)
  const full = await app.inject('/api/counts?format=csv&filter=larger')
  t.match(full, { statusCode: 503, headers: { 'x-error-code': 'exports_full', 'retry-after': '10' } })
  t.match(await registry.metrics(), 'gamenet_exports_refused_total 1')
  tables.streamed = () => streamOf('"online"\n')
  t.equal((await app.inject('/api/counts?format=csv&filter=small')).statusCode, 200, 'small ones have room')
})

test('files wait for space on the disk, unless they fit into memory', async (t) => {
  const requireSpace = async () => Promise.reject(new Error('the disk is low'))
  const exports = { directory: t.testdir(), bytesMax: 2 ** 30, perAddress: 8, requireSpace }
  const { app, tables } = await testApp(t, { endpoints: [listed], exports })
  tables.streamed = () => mebibytes(1)
  t.match(await app.inject('/api/counts?format=csv'), { statusCode: 503, headers: { 'x-error-code': 'disk_full' } })
  tables.streamed = () => streamOf('"online"\n')
  t.equal((await app.inject('/api/counts?format=csv')).statusCode, 200)
})

test('an address has a number of files at once', async (t) => {
  const exports = { directory: t.testdir({ old: 'left by a killed process' }), bytesMax: 2 ** 30, perAddress: 2 }
  const needs = { endpoints: [listed], exports: { ...exports, requireSpace: async () => undefined } }
  const { app, tables } = await testApp(t, { ...needs, clients: clientAddresses(['127.0.0.1']) })
  t.notOk(existsSync(join(exports.directory, 'old')))
  tables.streamed = () => mebibytes(8)
  const from = (address: string) => `X-Forwarded-For: ${address}\r\n`
  for (const n of [0, 1]) t.equal(await unread(t, app, `/api/counts?format=csv&filter=${n}`, from('192.0.2.1')), 200)
  const headers = { 'x-forwarded-for': '192.0.2.1' }
  const more = await app.inject({ url: '/api/counts?format=csv', headers, remoteAddress: '127.0.0.1' })
  t.match(more, { statusCode: 429, headers: { 'x-error-code': 'exports_per_address', 'retry-after': '5' } })
  t.equal((await app.inject({ url: '/api/counts', headers, remoteAddress: '127.0.0.1' })).statusCode, 200, 'no file')
  t.equal(await unread(t, app, '/api/counts?format=csv', from('192.0.2.2')), 200)
  for (let n = 0; n < 5; n += 1) {
    const read = `GET /api/counts?format=csv HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${from('192.0.2.3')}\r\n`
    t.match(await exchange(app, read), /^HTTP\/1.1 200/, 'a file that was read gives its slot back')
  }
})

async function digestOf(body: Readable): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of body) hash.update(chunk as Buffer)
  return hash.digest('hex')
}
