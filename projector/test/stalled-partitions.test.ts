import { setImmediate as turn } from 'node:timers/promises'
import { openEmbeddedLog } from '@gamenet/engines/log'
import { scrapeTopic, titleCountTopic } from '@gamenet/schemas'
import { Registry } from 'prom-client'
import { test } from 'tap'
import { acceptedGaps, acceptGaps, readProgress, readStalls, storeOver } from '../src/index.js'
import type { LogReader } from '../src/load/log.js'
import { LagClock } from '../src/project/lag-clock.js'
import { storeCheckpoints } from '../src/store/checkpoint.js'
import { eventOwner, storePointers } from '../src/store/generation.js'
import { MemoryLog } from './memory-log.js'
import { message, openTables, projectorOn, runToHead } from './pipeline.js'

const counted = (minute: number, online: number) =>
  message(titleCountTopic, {
    titleId: '4d530064',
    observedAt: `2026-03-01T10:${String(minute).padStart(2, '0')}:00Z`,
    online
  })
const ran = (minute: number) =>
  message(scrapeTopic, {
    source: 'network',
    observedAt: `2026-03-01T10:${String(minute).padStart(2, '0')}:00Z`,
    durationMs: 5,
    outcome: 'succeeded',
    published: 1
  })

test('events deleted by retention before loading stall only their partition, until the gap is accepted', async (t) => {
  const engine = await openTables()
  const tables = engine.control
  const store = storeOver(tables)
  const log = openEmbeddedLog({ path: t.testdir({}), retentionBytes: 1 })
  t.teardown(() => log.close())
  await log.append('title-count', [counted(0, 1), counted(1, 2)])
  await runToHead(engine, log)
  t.same(await readStalls({ store, log }), [])
  // As after a rebuild from the log.
  await tables.execute('CREATE TABLE event_title_count__3 AS event_title_count__0')
  await store.do(storeCheckpoints, [{ name: 'load:title-count__3', epoch: 1, partition: 0, next: 2 }])
  const pointer = { ...eventOwner(titleCountTopic), writes: 3, reads: 3, readsChanged: 1 }
  await store.do(storePointers, 1, [pointer])

  for (const minute of [2, 3, 4]) await log.append('title-count', [counted(minute, minute)])
  await log.trim()
  await log.append('scrape', [ran(5)])
  const registry = new Registry()
  const projector = projectorOn(engine, log, { registry })
  projector.start()
  const sentence =
    /^title-count, epoch 1, partition 0 was loaded to 2 \(last at 20\S+Z\), and the log begins at 4: offsets 2 to 3 were deleted by its retention; .* gamenet gap accept title-count/
  await t.rejects(projector.caughtUp(), { message: sentence })
  await projector.caughtUp({ targets: [{ topic: 'scrape', epoch: 1, partition: 0, next: 1 }] })
  t.equal((await tables.rows('SELECT s.source AS source FROM scrape AS s')).length, 1, 'other topics go on')
  const stall = { topic: 'title-count', epoch: 1, partition: 0, wanted: 2, first: 4, next: 5, reason: sentence }
  t.match((await projector.status()).stalled, [stall])
  t.match((await readProgress({ store, log })).stalled, [stall], 'a process that does not load says the same')
  const metrics = await registry.metrics()
  t.match(metrics, /gamenet_loader_stalled_partitions\{topic="title-count"\} 1/)
  t.match(metrics, /gamenet_loader_missing_events\{topic="title-count"\} 2/)
  t.match(metrics, /gamenet_loader_stalled_partitions\{topic="scrape"\} 0/)

  t.match(await acceptGaps(store, await readStalls({ store, log }, 'title-count')), [stall])
  await projector.caughtUp()
  t.same((await projector.status()).stalled, [])
  t.same(await tables.rows('SELECT c.online AS online FROM title_count AS c FINAL ORDER BY c.ts'), [
    { online: 1 },
    { online: 2 },
    { online: 4 }
  ])
  t.match(await acceptedGaps(store), [{ topic: 'title-count', epoch: 1, partition: 0, first: 2, next: 4 }])
  t.same(await acceptGaps(store, await readStalls({ store, log })), [], 'a second time there is nothing to accept')
  await projector.stop()
})

test('a damaged batch stalls its partition in the status until its events are loaded', async (t) => {
  const engine = await openTables()
  const log = new MemoryLog()
  log.append('title-count', [counted(0, 1), counted(1, 2)])
  let repair: () => void = () => {}
  const repaired = new Promise<void>((resolve) => {
    repair = resolve
  })
  const damage = 'the batch at offset 0: its CRC-32C is 1, expected 2'
  const damaged: LogReader = {
    extents: (topic) => log.extents(topic),
    commit: (topic, position) => log.commit(topic, position),
    async consume(request) {
      request.onStall?.({ topic: 'title-count', epoch: 0, partition: 0, first: 0, next: 2, wanted: 0, damage })
      await repaired
      await log.consume(request)
    }
  }
  const registry = new Registry()
  const projector = projectorOn(engine, damaged, { registry })
  projector.start()
  while ((await projector.status()).stalled.length === 0) await turn()
  const reason = new RegExp(`^title-count, epoch 0, partition 0 was loaded to 0, .*: ${damage}; repair`)
  t.match((await projector.status()).stalled, [{ topic: 'title-count', wanted: 0, reason }])
  t.match(await registry.metrics(), /gamenet_loader_stalled_partitions\{topic="title-count"\} 1/)
  repair()
  await projector.caughtUp()
  t.same((await projector.status()).stalled, [])
  await projector.stop()
})

test('a recreated topic stays stalled when it has grown past the events that were loaded', async (t) => {
  const engine = await openTables()
  const log = new MemoryLog()
  log.append('title-count', [counted(0, 1), counted(1, 2)])
  await runToHead(engine, log)
  const recreated = new MemoryLog()
  recreated.append('title-count', [counted(2, 3)])
  const asked: number[] = []
  const reader: LogReader = {
    extents: (topic) => recreated.extents(topic),
    commit: (topic, position) => recreated.commit(topic, position),
    async consume({ startAt, onStall, signal }) {
      for (const next of [1, 3]) {
        const wanted = await startAt('title-count', 0, 0)
        asked.push(wanted)
        onStall?.({ topic: 'title-count', epoch: 0, partition: 0, first: 0, next, wanted })
        if (next === 1) recreated.append('title-count', [counted(3, 4), counted(4, 5)])
      }
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
    }
  }
  const projector = projectorOn(engine, reader)
  projector.start()
  while (asked.length < 2) await turn()
  t.same(asked, [2, Number.MAX_SAFE_INTEGER])
  const reason = /^title-count, epoch 0, partition 0 was loaded to 2 .*its epoch must be raised \(LOG_EPOCH\)/
  t.match((await projector.status()).stalled, [{ topic: 'title-count', wanted: 2, reason }])
  await projector.stop()
})

test('the lag in seconds is the age of the oldest event that is not consumed, also while the log is silent', (t) => {
  const clock = new LagClock(0)
  const heads = (next: number) => new Map([['scrape', [{ epoch: 1, partition: 0, first: 0, next }]]])
  const behind = (nowMs: number, next: number) => clock.secondsBehind(nowMs, 'scrape', () => next)
  t.equal(behind(5000, 0), 5, 'nothing is known yet')
  for (const [atMs, next] of [
    [10_000, 3],
    [20_000, 5],
    [30_000, 5]
  ] as const)
    clock.observe(atMs, ['scrape'], heads(next))
  t.equal(behind(30_000, 5), 0, 'it is at the head')
  t.equal(behind(30_000, 3), 20, 'the events behind it came after 10 s')
  t.equal(behind(30_000, 2), 30)
  clock.observe(40_000, ['scrape'], new Map())
  t.equal(behind(90_000, 5), 60, 'the log does not answer since 30 s')
  for (let n = 0; n < 10_000; n += 1) clock.observe(100_000 + n * 1000, ['scrape'], heads(6 + n))
  const thinned = behind(10_099_000, 4000)
  t.ok(thinned >= 6005 && thinned < 6005 * 1.04, `old observations are thinned out: ${thinned}`)
  t.end()
})
