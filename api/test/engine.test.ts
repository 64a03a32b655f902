import { type AddressInfo, connect } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { openChdb } from '@gamenet/engines'
import { FIRST_GENERATION } from '@gamenet/schemas'
import { type Test, test } from 'tap'
import { z } from 'zod'
import { DataVersions } from '../src/answers/data-versions.js'
import type { Endpoint } from '../src/answers/endpoint.js'
import { catalogCache } from '../src/queries/catalog.js'
import { integer } from '../src/request/parameters.js'
import { endpoints } from '../src/routes/endpoints.js'
import { openStoredTables } from './stored-tables.js'
import { NOW_MS, servingAt, TestTables, testApp } from './support/test-app.js'

const HOUR = 3_600_000

/** A query to the engine, different for each number; 0 takes long. */
const heavy: Endpoint<{ number: number }, { number: number }> = {
  operationId: 'getHeavy',
  path: '/api/heavy',
  tags: ['Test'],
  summary: 'A heavy question',
  input: z.object({ number: integer({ min: 0, max: 1_000_000 }) }),
  resolve: (input) => input,
  reads: () => [{ projection: 'heavy' }],
  answer: async ({ number }, { tables, signal }) => ({
    body: await tables.rows(
      'SELECT count() AS n FROM numbers({rows: UInt64}) AS n WHERE sipHash64(n.number) % {divisor: UInt64} = 0',
      { rows: number === 0 ? 5_000_000_000 : 200_000, divisor: number + 1 },
      { signal }
    )
  }),
  response: z.array(z.object({ n: z.string() })).meta({ description: 'One number.' })
}

/** Its engine closes with the test: a process has one at a time, and the tests below share theirs. */
async function heavyApp(t: Test, queueMax: number) {
  const clickhouse = await openChdb({ path: t.testdir(), queueMax })
  t.teardown(() => clickhouse.close())
  const dataVersions = {
    revision: 1,
    isCurrent: true,
    serving: FIRST_GENERATION,
    versionOf: () => 1,
    recordWrite: () => undefined,
    onChange: () => () => undefined,
    refreshDropped: async () => undefined,
    repeatedReads: 0
  }
  const { app } = await testApp(t, { endpoints: [heavy], tables: clickhouse.readers, dataVersions })
  return { clickhouse, app }
}

test('some of 2,000 simultaneous different queries are answered, the rest get Retry-After; ready answers continue', async (t) => {
  const { clickhouse, app } = await heavyApp(t, 16)
  const ready = await app.inject('/api/heavy?number=1')
  t.equal(ready.statusCode, 200)
  const flood = Array.from({ length: 2000 }, (_, at) => app.inject(`/api/heavy?number=${2 + at}`))
  await turn()
  t.ok(clickhouse.stats().lanes.readers.waiting <= 16)
  const meanwhile = await app.inject('/api/heavy?number=1')
  t.equal(meanwhile.body, ready.body)
  const byStatus = new Map<number, number>()
  for (const { statusCode, headers, body } of await Promise.all(flood)) {
    byStatus.set(statusCode, (byStatus.get(statusCode) ?? 0) + 1)
    if (statusCode !== 503) continue
    if (!/^[1-9]\d*$/.test(String(headers['retry-after']))) t.fail('a 503 without Retry-After')
    if (!/^\{"error":"[^"]+\."\}$/.test(body)) t.fail(body)
  }
  t.same([...byStatus.keys()].sort(), [200, 503])
  t.ok((byStatus.get(200) ?? 0) >= 16, `${byStatus.get(200)} were answered`)
  const last = await app.inject('/api/heavy?number=2001')
  t.equal(last.statusCode, 200, 'later questions are answered')
})

test('the query is aborted when its client disconnects', async (t) => {
  const { clickhouse, app } = await heavyApp(t, 16)
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  const readers = () => clickhouse.stats().lanes.readers
  const socket = connect(port, '127.0.0.1')
  socket.write('GET /api/heavy?number=0 HTTP/1.1\r\nHost: x\r\n\r\n')
  while (readers().running === 0) await turn()
  socket.destroy()
  while (readers().aborted === 0) await turn()
  t.equal(readers().aborted, 1)
})

test('a stored count is in the next answer, and an untouched window keeps its tag', async (t) => {
  const { clickhouse, storeNetwork } = await openStoredTables()
  const { changes, stored } = new TestTables()
  const versions = new DataVersions({ changes: stored })
  await versions.refresh()
  const catalog = catalogCache({
    tables: clickhouse.readers,
    versionOf: (dependency) => versions.versionOf(dependency)
  })
  const { app } = await testApp(t, { endpoints, tables: clickhouse.readers, dataVersions: versions, catalog })
  const live = '/api/network-stats/online-24h'
  const closed = '/api/network-stats/online-24h?from=2026-03-13T00:00:00Z&to=2026-03-14T00:00:00Z'
  const store = async (ts: number, value: number, version: number) => {
    await storeNetwork([{ key: 'online', ms: ts, value }])
    changes.push(
      { projection: 'network-count', fromMs: ts, toMs: ts + 1, version },
      { projection: 'network-count-hour', fromMs: ts - (ts % HOUR), toMs: ts - (ts % HOUR) + HOUR, version }
    )
    await versions.refresh()
  }
  await store(NOW_MS - 30_000, 11, 1_772_000_000_000_001)
  const [liveBefore, closedBefore] = [await app.inject(live), await app.inject(closed)]
  t.match(liveBefore.json(), [{ online_count: 11 }])
  t.same(closedBefore.json(), [])
  await store(NOW_MS, 12, 1_772_000_000_000_002)
  const [liveAfter, closedAfter] = [await app.inject(live), await app.inject(closed)]
  t.match(liveAfter.json(), [{ online_count: 11 }, { online_count: 12 }])
  t.not(liveAfter.headers.etag, liveBefore.headers.etag)
  t.equal(closedAfter.headers.etag, closedBefore.headers.etag)
})

/** Stores counts by two statements, with work in between. */
async function pairApi(t: Test, between: (computed: number) => Promise<void>) {
  const { clickhouse, insert } = await openStoredTables()
  const { execute } = clickhouse.loader
  await execute('CREATE TABLE title_latest__1 AS title_latest__0')
  t.teardown(() => execute('DROP TABLE IF EXISTS title_latest__1'))
  const store = (online: number, generation: number) =>
    insert('title_latest', ['title_id', 'online'], [['0000beef', online]], generation)
  await store(10, 0)
  await store(11, 1)
  let computed = 0
  const pair: Endpoint<object, object> = {
    operationId: 'getPair',
    path: '/api/pair',
    tags: ['Test'],
    summary: 'Counts of two statements',
    input: z.object({}),
    resolve: (input) => input,
    reads: () => [{ projection: 'title-latest' }],
    answer: async (_resolved, { tables }) => {
      const count = async () =>
        (await tables.rows('SELECT sum(l.online) AS n FROM {title_latest: Identifier} AS l', {}))[0]
      const first = await count()
      computed += 1
      await between(computed)
      return { body: [Number(first?.n), Number((await count())?.n)] }
    },
    response: z.array(z.int()).meta({ description: 'Two numbers.' })
  }
  const pointer = { serving: servingAt(0, 0) }
  const versions = new DataVersions({ changes: new TestTables().stored, serving: async () => pointer.serving })
  await versions.refresh()
  const { app, registry } = await testApp(t, { endpoints: [pair], tables: clickhouse.readers, dataVersions: versions })
  const get = async (tag = '') => {
    const { statusCode, headers, body } = await app.inject({ url: '/api/pair', headers: { 'if-none-match': tag } })
    return { statusCode, tag: String(headers.etag), body: statusCode === 200 ? JSON.parse(body) : undefined }
  }
  const move = async (generation: number, counter: number) => {
    pointer.serving = servingAt(generation, counter)
    await versions.refresh()
  }
  const repeats = () => registry.getSingleMetricAsString('gamenet_answer_repeats_total')
  return { get, move, store, execute, pointer, repeats, computed: () => computed }
}

test('an answer is of one generation, and another one has another tag; a rollback revives no answer', async (t) => {
  const api = await pairApi(t, async (computed) => {
    if (computed === 1) await api.move(1, 1)
  })
  const first = await api.get()
  t.same(first.body, [10, 10], 'the pointer moved in the middle')
  const swapped = await api.get(first.tag)
  t.same([swapped.statusCode, swapped.body], [200, [11, 11]])
  t.equal((await api.get(swapped.tag)).statusCode, 304)
  await api.store(5, 0)
  await api.move(0, 2)
  const back = await api.get(first.tag)
  t.same([back.statusCode, back.body], [200, [15, 15]], 'generation 0 has been written meanwhile')
  t.equal(new Set([first.tag, swapped.tag, back.tag]).size, 3)
  t.equal(api.computed(), 3)
  t.match(await api.repeats(), /^gamenet_answer_repeats_total 0$/m, 'no move of the pointer repeats an answer')
})

test('an answer that meets a dropped table is computed again completely, once, and counted', async (t) => {
  const api = await pairApi(t, async (computed) => {
    if (computed > 1) return
    await api.execute('DROP TABLE title_latest__1')
    api.pointer.serving = servingAt(0, 2)
  })
  await api.move(1, 1)
  t.match(await api.get(), { statusCode: 200, body: [10, 10] })
  t.equal(api.computed(), 2)
  t.match(await api.repeats(), /^gamenet_answer_repeats_total 1$/m)
  await api.move(1, 3)
  t.equal((await api.get()).statusCode, 500, 'a table that stays missing is a defect')
})
