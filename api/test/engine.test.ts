import { type AddressInfo, connect } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { type ClickHouse, openChdb } from '@gamenet/engines'
import { runs } from '@gamenet/engines/testing'
import fc from 'fast-check'
import { type Test, test } from 'tap'
import { z } from 'zod'
import { DataVersions } from '../src/answers/data-versions.js'
import type { Endpoint } from '../src/answers/endpoint.js'
import { integer } from '../src/http/request/parameters.js'
import { catalogCache } from '../src/queries/catalog.js'
import { endpoints } from '../src/routes/endpoints.js'
import { openReadModel } from './read-model.js'
import { type ChangeRow, NOW_MS, TestTables, testApp } from './support/test-app.js'

const HOUR = 3_600_000

async function storeChanges(clickhouse: ClickHouse, changes: readonly ChangeRow[]) {
  const rows = changes.map(({ version, projection, key = '*', fromMs, toMs }) =>
    JSON.stringify([String(version), projection, key, String(fromMs), String(toMs)])
  )
  const body = new TextEncoder().encode(`${rows.join('\n')}\n`)
  await clickhouse.loader.insert('data_change', ['version', 'projection', 'key', 'from_ms', 'to_ms'], body)
}

const anyStretch = fc
  .tuple(
    fc.oneof(
      fc.integer({ min: NOW_MS - 70 * HOUR, max: NOW_MS }),
      fc.integer({ min: NOW_MS - 6000 * HOUR, max: NOW_MS }),
      fc.constant(-(2 ** 53) + 1)
    ),
    fc.oneof(fc.integer({ min: 1, max: 300_000 }), fc.integer({ min: 1, max: 3000 * HOUR }), fc.constant(2 ** 53))
  )
  .map(([fromMs, length]) => ({ fromMs, toMs: Math.min(fromMs + length, 2 ** 53 - 1) }))
const anyChange = fc.record({
  projection: fc.constantFrom('a', 'b'),
  key: fc.constantFrom('*', 'x', 'y'),
  stretch: anyStretch
})

/** A question to the engine, different for each number; 0 takes long. */
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
  response: z.array(z.object({ n: z.string() })).meta({ description: 'One number.' }),
  example: [{ n: '1' }]
}

/** Its engine closes with the test: a process has one at a time, and the tests below share theirs. */
async function heavyApp(t: Test, queueMax: number) {
  const clickhouse = await openChdb({ path: t.testdir(), queueMax })
  t.teardown(() => clickhouse.close())
  const dataVersions = { revision: 1, isCurrent: true, versionOf: () => 1, recordWrite: () => undefined }
  const { app } = await testApp(t, { endpoints: [heavy], tables: clickhouse.readers, dataVersions })
  return { clickhouse, app }
}

test('of 2,000 different questions at once some are answered, the rest told when to come back; ready answers go on', async (t) => {
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

test('the engine is notified when the caller of a query disconnects', async (t) => {
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

test('what ClickHouse gives in a few rows is what every single change would have given', async () => {
  const { clickhouse } = await openReadModel()
  const steps = fc.array(fc.array(anyChange, { minLength: 1, maxLength: 20 }), { minLength: 1, maxLength: 3 })
  await fc.assert(
    fc.asyncProperty(steps, fc.array(anyChange, { minLength: 20, maxLength: 40 }), async (all, queries) => {
      await clickhouse.loader.execute('TRUNCATE TABLE data_change')
      const plain = new TestTables()
      const single = new DataVersions({ tables: plain })
      const growing = new DataVersions({ tables: clickhouse.readers })
      let version = 1_772_000_000_000_000
      for (const step of all) {
        const rows = step.map(({ stretch, ...rest }, at) => ({ ...rest, ...stretch, version: version + at }))
        version += step.length
        plain.changes.push(...rows)
        await storeChanges(clickhouse, rows)
        await Promise.all([single.refresh(), growing.refresh()])
      }
      const loaded = new DataVersions({ tables: clickhouse.readers })
      await loaded.refresh()
      for (const { projection, key, stretch } of queries) {
        for (const dependency of [
          { projection, key, ...stretch },
          { projection, ...stretch },
          { projection, key },
          { projection }
        ]) {
          const versions = [single, growing, loaded].map((each) => each.versionOf(dependency))
          if (new Set(versions).size > 1) throw new Error(`${JSON.stringify(dependency)}: ${versions.join(', ')}`)
        }
      }
    }),
    runs(5)
  )
})

test('a count that is stored is in the next answer, and an untouched window keeps its tag', async (t) => {
  const { clickhouse, storeNetwork } = await openReadModel()
  const versions = new DataVersions({ tables: clickhouse.readers })
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
    await storeChanges(clickhouse, [
      { projection: 'network-count', fromMs: ts, toMs: ts + 1, version },
      { projection: 'network-count-hour', fromMs: ts - (ts % HOUR), toMs: ts - (ts % HOUR) + HOUR, version }
    ])
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
