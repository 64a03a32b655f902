import type { ClickHouse } from '@gamenet/engines'
import { instantOf, titleCountTopic } from '@gamenet/schemas'
import { type Test, test } from 'tap'
import { type Projector, projections, type Tables } from '../src/index.js'
import { around, textOf } from './around.js'
import { latch } from './latch.js'
import { lockedPasses } from './locks.js'
import { MemoryLog } from './memory-log.js'
import { emptyTables, laterGenerations, message, openTables, projectorOn, tablesOfRebuilds } from './pipeline.js'

/** A write that ends only when it is killed. */
const ENDLESS = `INSERT INTO FUNCTION null('hash UInt64') SELECT sum(cityHash64(number)) FROM system.numbers`
const T0 = Date.UTC(2026, 2, 14, 22)

test('an interrupted rebuild', async (t) => {
  // Waits between attempts keep no process alive. The shared server does not either: it belongs to another process.
  const alive = setInterval(() => undefined, 1000)
  t.teardown(() => clearInterval(alive))
  const engine = await openTables()
  const begin = async () => {
    await emptyTables(engine.control)
    const log = counts()
    log.count(0)
    return log
  }
  await t.test('completes its swap and its rollback after an interruption at any move', (t) =>
    interruptedSwap(t, engine)
  )
  await t.test('swaps nothing while a projection fails, and keeps events that arrive meanwhile', async (t) =>
    swapsNothing(t, engine, await begin())
  )
  await t.test('stays cancelled when its fill ends at the same time', async (t) =>
    cancelAtTheEnd(t, engine, await begin())
  )
  await t.test('is not cancelled while its swap begins in another process', async (t) =>
    cancelDuringSwap(t, engine, await begin())
  )
  await t.test('stores no sample after steps have ended', async (t) => sampleDuringErasure(t, engine, await begin()))
  await t.test('aborts its step when the process stops, and is continued by the next process', async (t) =>
    stopInAStep(t, engine, await begin())
  )
  await t.test('continues after the tables were briefly unavailable', async (t) => fillOn(t, engine, await begin()))
  await t.test(
    'fails with the reason if a statement always fails, leaves the serving tables unchanged, and continues when resumed',
    async (t) => failsInAStep(t, engine, await begin())
  )
  await t.test('contains only events before the instant of its end, of every topic', async (t) =>
    endsAtAnInstant(t, engine, await begin())
  )
  await t.test('drops the former tables of an import undo whose command fails before they are due', async (t) =>
    dropAfterUndo(t, engine, await begin())
  )
  await t.test('leaves no tables after the next start of a process', async (t) =>
    leaveNothing(t, engine, await begin())
  )
})

async function interruptedSwap(t: Test, engine: ClickHouse) {
  // Before and after each of the two moves of the pointer, of a swap and of a rollback.
  for (const [nth, isStored] of [1, 2].flatMap((nth) => [[nth, false] as const, [nth, true] as const])) {
    await emptyTables(engine.control)
    const log = counts()
    log.count(0)
    let [moves, isDying] = [0, false]
    const rebuild = around(engine.rebuild, async (work, what) => {
      if (what !== 'generation_pointer' || !isDying) return await work()
      moves += 1
      if (moves !== nth) return await work()
      isDying = false
      if (isStored) await work()
      log.count(log.minutes().length)
      throw new Error('the engine was away')
    })
    const projector: Projector = projectorOn({ ...engine, rebuild }, log)
    const minutes = async () => (await countsIn(engine, 'title_count')).join()
    projector.start()
    await projector.caughtUp()
    // A row without an event in the log, so that the generations differ.
    await engine.control.execute(
      `INSERT INTO title_count__0 (title_id, ts, online, position) VALUES ('4d530064', toDateTime64(${T0 / 1000 + 3600}, 3, 'UTC'), 77, 99)`
    )
    await projector.rebuilds.start('title-count', { isFromLog: nth === 1 })
    await untilState(engine, 'filled')
    await projector.rebuilds.verify('title-count')
    for (const [work, state] of [
      [() => projector.rebuilds.swap('title-count', { acceptDifferences: true }), 'swapped'],
      [() => projector.rebuilds.rollback('title-count'), 'rolled-back']
    ] as const) {
      ;[moves, isDying] = [0, true]
      await t.rejects(work(), /engine was away/)
      await untilState(engine, state)
      await projector.caughtUp()
      const all = log.minutes().join()
      t.equal(await minutes(), state === 'swapped' ? all : `${all},77`, `${state}, ${nth}, ${isStored}`)
    }
    await projector.stop()
    t.same(await laterGenerations(engine.control), [])
  }
}

async function swapsNothing(t: Test, engine: ClickHouse, log: Counts) {
  let isFailing = false
  const projections = around(engine.projections, async (work, what) => {
    if (isFailing && /^INSERT INTO title_count_day__/.test(what)) throw new Error('it cannot be stored')
    return await work()
  })
  const projector = projectorOn({ ...engine, projections }, log, { catchUpMs: 500 })
  projector.start()
  await projector.caughtUp()
  await projector.rebuilds.start('title-count', { isFromLog: true })
  await untilState(engine, 'filled')
  await projector.rebuilds.verify('title-count')
  isFailing = true
  log.count(1)
  await t.rejects(
    projector.rebuilds.swap('title-count'),
    /Rebuild 1 was not swapped: projection title-[a-z-]+ has not reached offset \d of title-count.* within 0.5 s/
  )
  t.match(await projector.rebuilds.list(), [{ state: 'filled' }])
  isFailing = false
  log.count(2)
  await projector.caughtUp()
  t.same(await countsIn(engine, 'title_count'), [0, 1, 2])
  await projector.rebuilds.swap('title-count')
  t.same(await countsIn(engine, 'title_count'), [0, 1, 2])
  await projector.stop()
}

async function stopInAStep(t: Test, engine: ClickHouse, log: Counts) {
  const begun = latch()
  const rebuild: Tables = {
    ...engine.rebuild,
    execute: async (sql, parameters, options) => {
      if (!/^INSERT INTO title_count__\d/.test(sql)) return await engine.rebuild.execute(sql, parameters, options)
      const endless = engine.rebuild.execute(ENDLESS, {}, options)
      begun.open()
      await endless
    }
  }
  const projector = projectorOn({ ...engine, rebuild }, log)
  projector.start()
  await projector.caughtUp()
  await projector.rebuilds.start('title-count')
  await begun.opened
  await projector.stop()
  const next = projectorOn(engine, log)
  next.start()
  await untilState(engine, 'filled')
  t.match(await next.rebuilds.verify('title-count'), { isEqual: true })
  await next.stop()
}

async function cancelAtTheEnd(t: Test, engine: ClickHouse, log: Counts) {
  const [ending, cancelled] = [latch(), latch()]
  const rebuild: Tables = {
    ...engine.rebuild,
    insert: async (table, columns, body) => {
      const text = textOf(body)
      const isOf = (state: string) => table === 'rebuild' && text.includes(`\\"state\\":\\"${state}\\"`)
      if (isOf('filled')) {
        ending.open()
        await cancelled.opened
      }
      await engine.rebuild.insert(table, columns, body)
      if (isOf('cancelled')) cancelled.open()
    }
  }
  const projector = projectorOn({ ...engine, rebuild }, log)
  projector.start()
  await projector.caughtUp()
  await projector.rebuilds.start('title-count')
  await ending.opened
  await projector.rebuilds.cancel('title-count')
  t.match(await projector.rebuilds.list(), [{ state: 'cancelled' }])
  await projector.stop()
}

/** Lets other work call the engine meanwhile. */
async function giveTime(engine: ClickHouse): Promise<void> {
  for (let questions = 0; questions < 20; questions += 1) await engine.control.rows('SELECT 1 AS one')
}

async function cancelDuringSwap(t: Test, engine: ClickHouse, log: Counts) {
  const shared = { isShared: true, passLock: lockedPasses(), rebuildLock: lockedPasses() }
  const other = projectorOn(engine, log, shared)
  let cancelled: Promise<unknown> | undefined
  const rebuild: Tables = {
    ...engine.rebuild,
    insert: async (table, columns, body) => {
      if (table === 'rebuild' && textOf(body).includes('\\"state\\":\\"swapping\\"')) {
        cancelled = other.rebuilds.cancel('title-count').then(String, String)
        await giveTime(engine)
      }
      await engine.rebuild.insert(table, columns, body)
    }
  }
  const projector = projectorOn({ ...engine, rebuild }, log, shared)
  projector.start()
  await projector.caughtUp()
  await projector.rebuilds.start('title-count')
  await untilState(engine, 'filled')
  await projector.rebuilds.verify('title-count')
  await projector.rebuilds.swap('title-count')
  t.match(await cancelled, /Another process has continued rebuild 1 of title-count/)
  t.same(await countsIn(engine, 'title_count'), [0])
  t.match(await projector.rebuilds.list(), [{ state: 'swapped' }])
  await other.stop()
  await projector.stop()
}

/** An erasure deletes rows when steps have ended: a sample with such rows must be stored by then. */
async function sampleDuringErasure(t: Test, engine: ClickHouse, log: Counts) {
  const done: string[] = []
  let ended: Promise<unknown> | undefined
  const rebuild: Tables = {
    ...engine.rebuild,
    execute: async (sql, parameters, options) => {
      const isSample = /^\s*INSERT INTO title_count__sample/.test(sql)
      if (isSample) {
        ended ??= projector.stepsEnded().then(() => done.push('steps ended'))
        await giveTime(engine)
      }
      await engine.rebuild.execute(sql, parameters, options)
      if (isSample) done.push('sample')
    }
  }
  const projector = projectorOn({ ...engine, rebuild }, log)
  projector.start()
  await projector.caughtUp()
  await projector.rebuilds.plan('title-count')
  await ended
  t.equal(done[0], 'sample')
  await projector.stop()
}

async function fillOn(t: Test, engine: ClickHouse, log: Counts) {
  let failures = 0
  const rebuild: Tables = {
    ...engine.rebuild,
    rows: async (sql, parameters) => {
      // Read between the steps of the fill, and then before a retry.
      if (sql.includes('FROM rebuild ') && failures > 0) {
        failures -= 1
        throw new Error('the tables are away')
      }
      return await engine.rebuild.rows(sql, parameters)
    },
    insert: async (table, columns, body) => {
      await engine.rebuild.insert(table, columns, body)
      if (table === 'checkpoint' && failures === 0 && textOf(body).includes('title-count__1"')) failures = 2
    }
  }
  const projector = projectorOn({ ...engine, rebuild }, log)
  projector.start()
  await projector.caughtUp()
  await projector.rebuilds.start('title-count')
  await untilState(engine, 'filled')
  t.match(await projector.rebuilds.verify('title-count'), { isEqual: true })
  await projector.rebuilds.cancel('title-count')
  await projector.stop()
}

async function failsInAStep(t: Test, engine: ClickHouse, log: Counts) {
  let isWrong = true
  const rebuild: Tables = {
    ...engine.rebuild,
    execute: async (sql, parameters) => {
      // By then the first of three projections is filled.
      if (isWrong && /^\s*INSERT INTO title_count_hour__1\b/.test(sql))
        throw new Error('Code: 43. The types do not fit')
      await engine.rebuild.execute(sql, parameters)
    }
  }
  const projector = projectorOn({ ...engine, rebuild }, log)
  projector.start()
  await projector.caughtUp()
  await projector.rebuilds.start('title-count')
  await t.rejects(untilState(engine, 'filled'), /failed: Code: 43\. The types do not fit/)
  for (const work of ['verify', 'swap', 'pause'] as const)
    await t.rejects(
      async () => await projector.rebuilds[work]('title-count'),
      /is failed \(Code: 43\. The types do not fit\) and cannot be/
    )
  log.count(1)
  await projector.caughtUp()
  t.same(await countsIn(engine, 'title_count'), [0, 1], 'what serves goes on')
  isWrong = false
  await projector.rebuilds.resume('title-count')
  await untilState(engine, 'filled')
  t.match(await projector.rebuilds.verify('title-count'), { isEqual: true })
  await projector.rebuilds.cancel('title-count')
  await projector.stop()
}

async function endsAtAnInstant(t: Test, engine: ClickHouse, log: Counts) {
  for (const minute of [1, 2]) log.count(minute)
  const projector = projectorOn(engine, log)
  projector.start()
  await projector.caughtUp()
  for (const name of new Set(projections.map(({ from }) => from.name))) {
    const { id } = await projector.rebuilds.start(name, { until: instantOf(T0 + 120_000) })
    await untilState(engine, 'filled', id)
    if (name === 'title-count') t.same(await countsIn(engine, `title_count__${id}`), [0, 1])
    await projector.rebuilds.cancel(name)
  }
  t.same(await countsIn(engine, 'title_count'), [0, 1, 2])
  await projector.stop()
}

async function dropAfterUndo(t: Test, engine: ClickHouse, log: Counts) {
  let [isDropped, readings] = [false, 0]
  const rebuild: Tables = {
    ...engine.rebuild,
    rows: async (sql, parameters) => {
      if (isDropped && sql.includes('FROM rebuild ')) readings += 1
      // The first one is for what may be dropped at once, the second one for the end of the undo.
      if (readings > 1) throw new Error('the tables are away')
      return await engine.rebuild.rows(sql, parameters)
    },
    insert: async (table, columns, body) => {
      await engine.rebuild.insert(table, columns, body)
      if (table === 'rebuild' && textOf(body).includes('\\"state\\":\\"dropped\\"')) isDropped = true
    }
  }
  const projector = projectorOn({ ...engine, rebuild }, log, { longestAnswerMs: 200 })
  projector.start()
  await projector.caughtUp()
  await t.rejects(
    projector.importUndos.undo('f'.repeat(32), titleCountTopic.name, () => undefined),
    /tables are away/
  )
  ;[isDropped, readings] = [false, 0]
  while ((await tablesOfRebuilds(engine.control)).includes('title_count__0')) await giveTime(engine)
  await projector.stop()
}

async function leaveNothing(t: Test, engine: ClickHouse, log: Counts) {
  let isAway = false
  const rebuild: Tables = {
    ...engine.rebuild,
    execute: async (sql, parameters) => {
      if (isAway && sql.startsWith('DROP')) throw new Error('the process dies')
      await engine.rebuild.execute(sql, parameters)
    }
  }
  const projector = projectorOn({ ...engine, rebuild }, log)
  projector.start()
  await projector.caughtUp()
  await projector.rebuilds.start('title-count')
  await untilState(engine, 'filled')
  isAway = true
  await t.rejects(projector.rebuilds.verify('title-count'))
  await t.rejects(projector.rebuilds.cancel('title-count'), /dies/)
  await projector.stop()
  t.ok((await laterGenerations(engine.control)).length > 0)
  const next = projectorOn(engine, log)
  next.start()
  await next.caughtUp()
  await t.rejects(next.rebuilds.cancel('title-count'), /no rebuild of title-count under way/)
  t.same(await laterGenerations(engine.control), [])
  await next.stop()
}

type Counts = MemoryLog & { count(minute: number): void; minutes(): number[] }

/** A log of counts; the value of each is its minute. */
function counts(): Counts {
  const log = new MemoryLog(() => 5)
  const minutes = new Set<number>()
  const count = (minute: number) => {
    minutes.add(minute)
    const event = { titleId: '4d530064', observedAt: instantOf(T0 + minute * 60_000), online: minute }
    log.append(titleCountTopic.name, [message(titleCountTopic, event)], { epoch: 0, partition: 0 })
  }
  return Object.assign(log, { count, minutes: () => [...minutes].sort((a, b) => a - b) })
}

async function countsIn(engine: ClickHouse, table: string): Promise<number[]> {
  const rows = await engine.control.rows(`SELECT c.online AS online FROM ${table} AS c FINAL ORDER BY online`)
  return rows.map(({ online }) => Number(online))
}

async function untilState({ control }: ClickHouse, state: string, id = 1) {
  for (;;) {
    const rows = await control.rows(
      'SELECT argMax(r.record, r.version) AS record FROM rebuild AS r WHERE r.id = {id: UInt32}',
      { id }
    )
    const record = JSON.parse(String(rows[0]?.record ?? '{}'))
    if (record.state === state) return
    if (record.state === 'failed') throw new Error(`failed: ${record.reason}`)
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}
