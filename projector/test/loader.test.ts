import { setTimeout as pause } from 'node:timers/promises'
import { until } from '@gamenet/engines/testing'
import {
  encodeEvent,
  importRetractionTopic,
  type LogMessage,
  type LogRecord,
  networkCountTopic,
  scrapeTopic,
  titleCountTopic,
  titleTopic
} from '@gamenet/schemas'
import { Registry } from 'prom-client'
import { test } from 'tap'
import { storeOver, type Tables } from '../src/index.js'
import { createLoader } from '../src/load/loader.js'
import { projectorMetrics } from '../src/load/projector-metrics.js'
import { BATCH_ROWS_MAX } from '../src/load/row-builder.js'
import { Checkpoints } from '../src/store/checkpoint.js'
import { readInline } from '../testing/inline.js'
import { around } from './around.js'
import { latch } from './latch.js'
import { lockedPasses } from './locks.js'
import { MemoryLog } from './memory-log.js'
import { sealKeys } from './people.js'
import { AT_ONCE, emptyTables, firstStore, message, openTables, projectorOn, QUIET, runToHead } from './pipeline.js'

const T0 = '2026-03-14T20:00:00Z'
const counted = (online: number, observedAt = T0) =>
  message(titleCountTopic, { titleId: '4d530064', observedAt, online })

test('the loader', async (t) => {
  const engine = await openTables()
  const { control } = engine
  const events = (table: string) =>
    control.rows(`SELECT e.* FROM ${table} AS e FINAL ORDER BY e.epoch, e.partition, e.offset`)
  /** The options of a loader without projections. */
  const alone = {
    store: firstStore(control),
    topics: [titleCountTopic],
    sealKeys,
    metrics: projectorMetrics(new Registry(), {
      logState: async () => ({ lag: new Map(), stalled: [] }),
      deadLetters: async () => new Map()
    }),
    logger: QUIET,
    backoff: AT_ONCE
  }
  t.beforeEach(() => emptyTables(control))

  await t.test('stores every field of every topic, exactly', async (t) => {
    const log = new MemoryLog()
    log.append('network-count', [
      message(networkCountTopic, { observedAt: '2026-03-14T20:00:00.123Z', online: 4_294_967_295 }, '/scrape/network')
    ])
    log.append('title', [
      message(titleTopic, {
        titleId: '4D530064',
        observedAt: '1970-01-01T00:00:00Z',
        name: 'Ünï / # & \' : + "q" \\ \u0000 \ud83d\ude00',
        features: []
      })
    ])
    log.append('scrape', [
      message(scrapeTopic, {
        source: 'games',
        observedAt: T0,
        durationMs: 5,
        outcome: 'failed',
        published: 0,
        reason: 'no\nway'
      })
    ])
    await runToHead(engine, log)
    t.match(await events('event_network_count'), [
      {
        offset: '0',
        source: '/scrape/network',
        import_id: '',
        observed_at: '2026-03-14 20:00:00.123',
        registered: null,
        online: 4_294_967_295,
        lobbies: null
      }
    ])
    t.match(await events('event_title'), [
      {
        title_id: '4d530064',
        observed_at: '1970-01-01 00:00:00.000',
        name: 'Ünï / # & \' : + "q" \\ \u0000 \ud83d\ude00',
        name_key: 'ünï / # & \' : + "q" \\ \u0000 \ud83d\ude00',
        title: null,
        release_date: null,
        features: ''
      }
    ])
    t.match(await events('event_scrape'), [
      { scrape_source: 'games', outcome: 'failed', reason: 'no\nway', duration_ms: 5 }
    ])
  })

  await t.test('stores unreadable messages as dead letters with their bytes, and loads all others', async (t) => {
    const { headers } = counted(0)
    const bad: [Omit<LogRecord, 'offset'>, RegExp][] = [
      [{ key: 'a', headers, value: '{"titleId"' }, /^the message is not JSON/],
      [{ key: 'b', headers, value: '' }, /^the message has no value/],
      [
        { key: 'c', headers: { ...headers, ce_type: 'gamenet.title-count.v2' }, value: counted(1).value },
        /newer than this program/
      ],
      [
        { key: 'd', headers: { ...headers, ce_type: 'gamenet.title.v1' }, value: counted(1).value },
        /^ce_type is "gamenet\.title\.v1"/
      ],
      [{ key: 'e', headers: {}, value: counted(1).value }, /^the header ce_type is missing/],
      [{ key: 'e2', headers, value: counted(1).value, fault: 'the header x has no value' }, /^the header x has no/],
      [{ key: 'f', headers, value: counted(-1).value }, /^online: /],
      [{ key: 'g', headers, value: counted(4_294_967_296).value }, /^online: /],
      [
        {
          key: 'h',
          headers,
          value: JSON.stringify({ titleId: '4d530064', observedAt: '2026-03-14 20:00', online: 1 })
        },
        /^observedAt: /
      ],
      [{ key: 'i', headers, value: 'null' }, /^the event: /],
      [{ key: null, headers, value: null }, /^the message has no value/],
      [
        { key: '\ud800', headers: { ...headers, 'x\udc00': '\ud800' }, value: Uint8Array.of(0x7b, 0xff, 0x00) },
        /^the message is not JSON/
      ]
    ]
    const log = new MemoryLog(() => 4)
    for (const [n, [record]] of bad.entries())
      log.append('title-count', [record, counted(n, `2026-03-14T20:00:${10 + n}Z`)])
    await runToHead(engine, log)
    const deadLetters = await control.rows('SELECT p.* FROM dead_letter AS p FINAL ORDER BY p.offset')
    t.equal(deadLetters.length, bad.length)
    for (const [n, [{ value }, reason]] of bad.entries()) {
      t.match(deadLetters[n], { topic: 'title-count', partition: 0, offset: String(2 * n), reason })
      t.equal(deadLetters[n]?.value, Buffer.from(value ?? '').toString('base64'))
    }
    t.match(deadLetters[0], { message_key: 'a', headers })
    t.same(
      (await events('event_title_count')).map(({ online }) => online),
      bad.map((_, n) => n),
      'the good ones'
    )

    const registry = new Registry()
    const projector = projectorOn(engine, log, { registry })
    projector.start()
    await projector.caughtUp()
    const status = await projector.status()
    t.match(
      status.topics.find(({ topic }) => topic === 'title-count'),
      {
        lag: 0,
        deadLetters: bad.length,
        partitions: [{ epoch: 0, partition: 0, head: 2 * bad.length, loaded: 2 * bad.length }]
      }
    )
    t.match(await registry.metrics(), new RegExp(`gamenet_dead_letters\\{topic="title-count"\\} ${bad.length}`))
    await projector.stop()
  })

  await t.test('a text with half a surrogate pair does not stop later messages', async (t) => {
    const log = new MemoryLog()
    const described = (name: string) => message(titleTopic, { titleId: '4d530064', observedAt: T0, name })
    log.append('title', [described('a\ud800b'), described('\\ud800'), described('whole')])
    await runToHead(engine, log)
    t.same(
      (await events('event_title')).map(({ name }) => name),
      ['a\ufffdb', '\\ud800', 'whole']
    )
  })

  await t.test('continues at its checkpoint, and stores a record once that it reads twice', async (t) => {
    const log = new MemoryLog(() => 2)
    const at = (n: number) => counted(n, `2026-03-14T20:00:0${n}Z`)
    log.append('title-count', [at(0), at(1), at(2)])
    await runToHead(engine, log)
    t.equal(log.committed.get('title-count/0/0'), 3)
    log.append('title-count', [at(3), at(4)])
    await control.execute('TRUNCATE TABLE checkpoint')
    await runToHead(engine, log)
    t.same(
      (await events('event_title_count')).map(({ online }) => online),
      [0, 1, 2, 3, 4]
    )
    log.append('title-count', [at(5)], { epoch: 1, partition: 2 })
    await runToHead(engine, log)
    t.same(
      (await events('event_title_count')).map(({ epoch, partition, offset }) => [epoch, partition, offset]).at(-1),
      [1, 2, '0']
    )
  })

  await t.test(
    'events that wait while another process loads them and their import is undone are not stored',
    async (t) => {
      const log = new MemoryLog()
      const importId = '0123456789abcdef0123456789abcdef'
      const ofImport = encodeEvent(
        titleCountTopic,
        { titleId: '4d530064', observedAt: T0, online: 1 },
        { source: '/import/test', importId }
      )
      log.append('title-count', [counted(7, '2026-03-14T20:01:00Z'), ofImport])
      const shared = { isShared: true, passLock: lockedPasses(), rebuildLock: lockedPasses() }
      const offsets = async () => (await events('event_title_count')).map(({ offset }) => offset)
      const [waits, release] = [latch(), latch()]
      let stored = false
      const held = around(engine.loader, async (work, what) => {
        if (what === 'event_title_count__0') {
          waits.open()
          await release.opened
        }
        const result = await work()
        stored ||= what === 'event_title_count__0'
        return result
      })
      // Without the pass lock: its store begins before all work of the other one, and ends after it.
      const late = projectorOn({ ...engine, loader: held }, log, { isShared: true })
      late.start()
      await waits.opened
      const other = projectorOn(engine, log, shared)
      other.start()
      await other.caughtUp()
      const retraction = { importId, topic: 'title-count', observedAt: T0 }
      log.append('import-retraction', [message(importRetractionTopic, retraction)])
      await other.caughtUp()
      await other.importUndos.undo(importId, 'title-count', () => {})
      t.same(await offsets(), ['0'])
      release.open()
      await late.stop()
      t.ok(stored, 'what waited was stored')
      t.same(await offsets(), ['0'])
      t.equal((await control.rows('SELECT c.ts AS ts FROM title_count AS c FINAL')).length, 1)
      await other.stop()
    }
  )

  await t.test(
    'rows, dead letters and announced changes are stored before the checkpoint that covers them',
    async (t) => {
      const log = new MemoryLog()
      log.append('title-count', [counted(1), { ...counted(2), value: '{' }])
      const inserts = { loader: [] as string[], projections: [] as string[] }
      const noting = (lane: keyof typeof inserts) =>
        around(engine[lane], (work, what) => {
          if (/^\w+$/.test(what)) inserts[lane].push(what)
          return work()
        })
      await runToHead({ ...engine, loader: noting('loader'), projections: noting('projections') }, log)
      t.same(inserts.loader, ['event_title_count__0', 'dead_letter', 'checkpoint'])
      const announced = inserts.projections.filter((table) => ['data_change', 'checkpoint'].includes(table))
      t.same(announced.slice(0, 2), ['data_change', 'checkpoint'])
    }
  )

  await t.test('storing an older checkpoint changes nothing', async (t) => {
    const log = new MemoryLog()
    log.append('title-count', [counted(0), counted(1)])
    await runToHead(engine, log)
    const stale = JSON.stringify(['load:title-count', 0, 0, 1])
    await control.insert('checkpoint', ['name', 'epoch', 'partition', 'next'], Buffer.from(`${stale}\n`))
    let first = -1
    const projector = projectorOn(engine, {
      extents: (topic) => log.extents(topic),
      commit: (topic, position) => log.commit(topic, position),
      consume: (options) =>
        log.consume({
          ...options,
          startAt: async (...at) => {
            first = await options.startAt(...at)
            return first
          }
        })
    })
    projector.start()
    log.append('title-count', [counted(2)])
    await projector.caughtUp()
    await projector.stop()
    t.equal(first, 2)
  })

  await t.test(
    'inserts that the engine rejects are retried until they succeed, and status shows the reason',
    async (t) => {
      const log = new MemoryLog()
      log.append('title-count', [counted(7)])
      let isBroken = true
      const loader: Tables = {
        ...engine.loader,
        insert: async (table, columns, body) => {
          if (isBroken) throw new Error('no space left on device')
          await engine.loader.insert(table, columns, body)
        }
      }
      const projector = projectorOn({ loader, projections: engine.projections }, log)
      projector.start()
      await until(async () => (await projector.status()).loaderTrouble !== null)
      await t.rejects(projector.caughtUp({ standstillMs: 300 }), {
        message:
          /title-count, epoch 0, partition 0 is loaded to 0 of 1 \(loading title-count: no space left on device\)/
      })
      t.equal((await projector.status()).loaderTrouble, 'loading title-count: no space left on device')
      isBroken = false
      await projector.caughtUp()
      t.equal((await projector.status()).loaderTrouble, null)
      await projector.stop()
      t.same(
        (await events('event_title_count')).map(({ online }) => online),
        [7]
      )
    }
  )

  await t.test('reading restarts after a failure of the log and after the death of a reading side', async (t) => {
    const log = new MemoryLog(() => 1)
    log.append('title-count', [counted(0), counted(1), counted(2)])
    let failures = 3
    const projector = projectorOn(engine, {
      extents: (topic) => log.extents(topic),
      commit: async () => {
        throw new Error('a commit is only a courtesy')
      },
      consume: async (options) => {
        failures -= 1
        if (failures >= 2) throw new Error('the broker is away')
        if (failures === 1) return
        await log.consume(options)
      }
    })
    projector.start()
    await projector.caughtUp()
    await projector.stop()
    t.equal((await events('event_title_count')).length, 3)
  })

  await t.test('is busy while more of a backlog follows, and no longer soon after its end is stored', async (t) => {
    const log = new MemoryLog()
    log.append('title-count', Array<LogMessage>(BATCH_ROWS_MAX + 10_000).fill(counted(7)))
    const [busy, ended] = [[] as boolean[], latch()]
    const loader = createLoader({
      ...alone,
      startReading: () => readInline(log, [titleCountTopic])(),
      onStored: () => busy.push(loader.isBusy()) === 2 && ended.open()
    })
    loader.start()
    await ended.opened
    t.equal(busy[0], true)
    // On a busy machine the end of the backlog is sent before the log has been quiet for long enough to be known as the end.
    await until(() => !loader.isBusy())
    await loader.stop()
  })

  await t.test('the checkpoint passes control records, which have no rows', async (t) => {
    const delivered: (readonly [records: number, next: number])[] = [
      [1, 2],
      [0, 4]
    ]
    const log = new MemoryLog()
    log.append('title-count', [counted(1)])
    const reader = {
      commit: log.commit.bind(log),
      extents: log.extents.bind(log),
      consume: async ({ deliver, signal }: Parameters<MemoryLog['consume']>[0]) => {
        const records = log.partitions[0]?.records ?? []
        for (const [count, next] of delivered)
          await deliver({ topic: 'title-count', epoch: 0, partition: 0, records: records.slice(0, count), next })
        while (!signal.aborted) await pause(5)
      }
    }
    const loader = createLoader({
      ...alone,
      startReading: () => readInline(reader, [titleCountTopic], AT_ONCE)(),
      onStored: () => undefined
    })
    loader.start()
    const next = async () => (await Checkpoints.read(alone.store)).next('load:title-count', 0, 0)
    await until(async () => (await next()) >= 4)
    await loader.stop()
    t.equal((await events('event_title_count')).length, 1)
  })

  await t.test('one of several reading sides that dies is restarted with its share; the others continue', async (t) => {
    const shares = [0, 1, 2].map(() => new MemoryLog(() => 1))
    for (const partition of [0, 1, 2, 3, 4, 5]) {
      shares[partition % 3]?.append('title-count', [counted(partition), counted(partition)], { epoch: 0, partition })
    }
    const begun = [0, 0, 0]
    const died = latch()
    const loader = createLoader({
      ...alone,
      readers: 3,
      startReading: async ({ index, of }) => {
        t.equal(of, 3)
        begun[index] = Number(begun[index]) + 1
        const side = await readInline(shares[index] ?? new MemoryLog(), [titleCountTopic], AT_ONCE)()
        if (index !== 1 || begun[1] !== 1) return side
        const killed = died.opened.then(() => Promise.reject(new Error('it was killed')))
        return { port: side.port, ended: Promise.race([side.ended, killed]), close: async () => void side.close() }
      },
      onStored: died.open
    })
    const all = [0, 1, 2, 3, 4, 5].map((partition) => ({ topic: 'title-count', epoch: 0, partition }))
    const loadedTo = async (next: number) => {
      for (;;) {
        const checkpoints = await Checkpoints.read(storeOver(control))
        if (all.every((each) => checkpoints.next('load:title-count', each.epoch, each.partition) === next)) return
        await pause(5)
      }
    }
    loader.start()
    await loadedTo(2)
    for (const { partition } of all) {
      shares[partition % 3]?.append('title-count', [counted(partition)], { epoch: 0, partition })
    }
    await loadedTo(3)
    t.equal(loader.trouble().reading, null)
    await loader.stop()
    t.same(begun, [1, 2, 1], 'the one that died, and no other')
    t.same(
      (await events('event_title_count')).map(({ partition, offset, online }) => [partition, offset, online]),
      all.flatMap(({ partition }) => ['0', '1', '2'].map((offset) => [partition, offset, partition]))
    )
  })
})
