import { setTimeout as pause } from 'node:timers/promises'
import type { ClickHouse } from '@gamenet/engines'
import { runs, until } from '@gamenet/engines/testing'
import { importRetractionTopic, instantOf, type LogMessage, recordedAtMs, titleCountTopic } from '@gamenet/schemas'
import fc from 'fast-check'
import { type Test, test } from 'tap'
import {
  DamagedTables,
  type LogReader,
  type PassLock,
  type Projection,
  type Projector,
  projections,
  RebuildRefused,
  storeOver,
  type Tables
} from '../src/index.js'
import { AnyBoardEvent, AnyEvent, append, appendedOf, compare } from './any-event.js'
import { around } from './around.js'
import { foldOf, readRows } from './fold.js'
import { latch } from './latch.js'
import { lockedPasses } from './locks.js'
import { MemoryLog } from './memory-log.js'
import { emptyTables, imported, laterGenerations, message, openTables, projectorOn, servingName } from './pipeline.js'

const RUNS = { all: 1, boards: 1, deaths: 1, known: 2 }
const T0 = Date.UTC(2026, 2, 14, 22)

/** Projections of the topics that are appended. */
const Rebuilt = fc.constantFrom(
  ...['network-count', 'title-count', 'title-count-hour', 'title', 'title-latest', 'leaderboard-history'],
  ...['leaderboard-entry', 'player-entry', 'timed-entry', 'leaderboard']
)

test('rebuilds', async (t) => {
  const engine = await openTables()
  await t.test('equal the serving tables of any projection at any time, and serve after swap and rollback', (t) =>
    serveOn(t, engine)
  )
  await t.test('resume after any death, and are swapped and rolled back once', (t) => outliveDeaths(t, engine))
  await t.test('are completed by another projector after an interrupted swap', (t) => endOthers(t, engine))
  await t.test('of two projectors that begin at once have separate tables', (t) => beginAtOnce(t, engine))
  await t.test('of one projection are one if two projectors begin at once, and both report it', (t) =>
    beginOneAtOnce(t, engine)
  )
  await t.test('from the log lose nothing that another projector loads meanwhile', (t) => loadConcurrently(t, engine))
  await t.test('equal the serving tables after a pass stored rows and failed', (t) => verifyBehindFailure(t, engine))
  await t.test('leave no table behind if dropping is interrupted', (t) => dropTheRest(t, engine))
  await t.test('are paused on a low disk, and resume when there is space', (t) => pauseForRoom(t, engine))
  await t.test('are not rolled back while an import that the former tables contain is undone', (t) =>
    goForwardOnly(t, engine)
  )
  await t.test('introduce other statements and columns by themselves', (t) => changeVersions(t, engine))
  await t.test('by a newer program let an older one go on until the swap', (t) => upgradeWithOlder(t, engine))
  await t.test('of all projections are held at a rate, paused by 0, and equal the serving tables', (t) =>
    fillAllAtRate(t, engine)
  )
  await t.test('of what was known at an instant equal the plain fold of the log, cut by its own instants', (t) =>
    rebuildKnown(t, engine)
  )
  await t.test('refuse impossible operations with a sentence, and change nothing', (t) => refuse(t, engine))
})

async function serveOn(t: Test, engine: ClickHouse) {
  // The seeds draw title-count from its event table, and leaderboard-entry from the log, with events before and after each step.
  for (const [event, epochs, numRuns, seed] of [
    [AnyEvent, [0, 1], RUNS.all, 298],
    [AnyBoardEvent, [0], RUNS.boards, 390]
  ] as const) {
    const property = fc.asyncProperty(
      fc.array(fc.array(appendedOf(event, epochs), { maxLength: 3 }), { minLength: 4, maxLength: 4 }),
      fc.infiniteStream(fc.integer({ min: 1, max: 9 })),
      Rebuilt,
      fc.boolean(),
      async (rounds, batchRecords, name, isFromLog) => {
        await emptyTables(engine.control)
        const log = new MemoryLog(() => batchRecords.next().value ?? 1)
        const projector = projectorOn(engine, log)
        const equalsFold = async () => compare(await readRows(engine.control), foldOf(log), epochs.length > 1)
        const next = async (n: number) => {
          for (const each of rounds[n] ?? []) append(log, each)
          await projector.caughtUp()
        }
        projector.start()
        try {
          await next(0)
          await projector.rebuilds.start(name, { isFromLog })
          await next(1)
          await untilFilled(projector)
          const report = await projector.rebuilds.verify(name)
          if (!report.isEqual) throw new Error(`differs: ${JSON.stringify(report, null, 1)}`)
          await next(2)
          await projector.rebuilds.swap(name)
          await equalsFold()
          await next(3)
          await projector.rebuilds.rollback(name)
          await equalsFold()
        } finally {
          await projector.stop()
        }
      }
    )
    await fc.assert(property, { ...runs(numRuns, seed), endOnFailure: true })
  }
  t.pass('every one of them')
}

/** Processes that die one after another, each at a random call; in each, an operator runs the next operation. */
async function outliveDeaths(t: Test, engine: ClickHouse) {
  const property = fc.asyncProperty(
    fc.array(appendedOf(AnyEvent, [0]), { minLength: 2, maxLength: 3 }),
    Rebuilt,
    fc.boolean(),
    fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 3, maxLength: 6 }),
    async (appended, name, isFromLog, lives) => {
      await emptyTables(engine.control)
      const log = new MemoryLog(() => 5)
      for (const each of appended) append(log, each)
      for (const calls of [...lives, Infinity]) {
        const { tables, died } = mortal(engine.rebuild, calls)
        const projector = projectorOn({ loader: engine.loader, projections: engine.projections, rebuild: tables }, log)
        projector.start()
        const done = projector.caughtUp().then(() => operate(projector, name, isFromLog))
        await Promise.race([died, done.catch(() => undefined)])
        await projector.stop()
        await done.catch((error: unknown) => {
          if (calls === Infinity) throw error
        })
      }
      compare(await readRows(engine.control), foldOf(log), false)
      const left = await laterGenerations(engine.control)
      if (left.length > 0) throw new Error(`left behind: ${JSON.stringify(left)}`)
    }
  )
  await fc.assert(property, { ...runs(RUNS.deaths), endOnFailure: true })
  t.pass('whenever they died')
}

/** Rows of the failed pass are beyond the checkpoints until the step is repeated; a projection that always fails stays behind. */
async function verifyBehindFailure(t: Test, engine: ClickHouse) {
  await emptyTables(engine.control)
  const log = new MemoryLog(() => 5)
  let failing: RegExp | undefined
  const live = around(engine.projections, async (work, what) => {
    if (failing?.test(what)) throw new Error('it cannot be stored')
    return await work()
  })
  const passes: PassLock = {
    shared: (pass) => pass(async () => undefined),
    exclusive: (work) => {
      if (failing?.test('checkpoint')) failing = undefined
      return work(async () => undefined)
    }
  }
  const projector = projectorOn({ ...engine, projections: live, rebuild: engine.rebuild }, log, { passLock: passes })
  const isFailing = async () =>
    (await projector.status()).projections.some(
      (each) => each.projection === 'title-count-hour' && each.state === 'failing'
    )
  projector.start()
  try {
    appendCount(log, 0)
    await projector.caughtUp()
    for (const [n, what] of [/^checkpoint$/, /^checkpoint$/, /^INSERT INTO title_count_hour__0\b/].entries()) {
      await projector.rebuilds.start('title-count-hour', { isFromLog: n === 1 })
      await untilFilled(projector)
      failing = what
      appendCount(log, n + 1)
      await until(isFailing)
      const { isEqual, tables } = await projector.rebuilds.verify('title-count-hour')
      t.same({ isEqual, tables: isEqual ? [] : tables }, { isEqual: true, tables: [] })
      await projector.rebuilds.cancel('title-count-hour')
    }
  } finally {
    await projector.stop()
  }
}

async function dropTheRest(t: Test, engine: ClickHouse) {
  await emptyTables(engine.control)
  const log = new MemoryLog(() => 5)
  let drops = Number.NEGATIVE_INFINITY
  const rebuild: Tables = {
    ...engine.rebuild,
    execute: async (sql, parameters) => {
      if (sql.startsWith('DROP TABLE')) drops += 1
      if (drops === 2) throw new Error('the process died')
      await engine.rebuild.execute(sql, parameters)
    }
  }
  const first = projectorOn({ loader: engine.loader, projections: engine.projections, rebuild }, log)
  first.start()
  await first.caughtUp()
  await first.rebuilds.start('title-count')
  await untilFilled(first)
  drops = 0
  await t.rejects(first.rebuilds.cancel('title-count'), /the process died/)
  await first.stop()
  const next = projectorOn(engine, log)
  next.start()
  await next.caughtUp()
  await next.stop()
  t.same(await laterGenerations(engine.control), [])
}

async function pauseForRoom(t: Test, engine: ClickHouse) {
  await emptyTables(engine.control)
  const log = new MemoryLog(() => 5)
  log.append(
    titleCountTopic.name,
    [message(titleCountTopic, { titleId: '4d530064', observedAt: instantOf(T0), online: 5 })],
    {
      epoch: 0,
      partition: 0
    }
  )
  // Before it begins there is space, afterwards none for a while.
  const full = (diskBytes: number) => 2 * diskBytes
  const roomAtFirst = () => {
    kept = full
    return 0
  }
  let kept: (diskBytes: number) => number = roomAtFirst
  const explain = async (error: unknown) => new Error(`explained: ${error}`)
  const projector = projectorOn(engine, log, { reservedBytes: (diskBytes) => kept(diskBytes), explain })
  const { rebuilds } = projector
  projector.start()
  try {
    await projector.caughtUp()
    await rebuilds.start('title-count')
    const newest = async () => (await rebuilds.list())[0]
    while ((await newest())?.state === 'filling') await new Promise((resolve) => setTimeout(resolve, 25))
    t.match(await newest(), {
      state: 'paused',
      reason:
        /^The disk of the tables has [\d.]+ \w+ free, and [\d.]+ \w+ stay free .*DISK_FREE_MIN_BYTES.*Free some space/
    })
    await t.rejects(rebuilds.start('title', {}), /; it needs [\d.]+ \w+, and [\d.]+ \w+ stay free|DISK_FREE_MIN_BYTES/)
    const undone = projector.importUndos.requireUndoable('an-import', 'title')
    await t.rejects(undone, /DISK_FREE_MIN_BYTES/, 'an import is not reported as undone before it can be')
    kept = () => 0
    await rebuilds.resume('title-count')
    await untilFilled(projector)
    t.equal((await rebuilds.verify('title-count')).isEqual, true)
    await rebuilds.cancel('title-count')

    kept = roomAtFirst
    await rebuilds.start('title-count')
    while ((await newest())?.state === 'filling') await new Promise((resolve) => setTimeout(resolve, 25))
    await engine.control.execute('DROP TABLE title_count__2')
    t.match(
      await newest(),
      { state: 'paused', progress: { done: 0 } },
      'whose tables somebody dropped is reported as other'
    )
    kept = () => 0
    await rebuilds.resume('title-count')
    while ((await newest())?.state === 'filling') await new Promise((resolve) => setTimeout(resolve, 25))
    t.match(await newest(), { state: 'failed', reason: /^explained: .*title_count__2/s })
    t.match(await rebuilds.cancel('title-count'), { state: 'cancelled' })
  } finally {
    await projector.stop()
  }
}

async function goForwardOnly(t: Test, engine: ClickHouse) {
  await emptyTables(engine.control)
  const log = new MemoryLog()
  appendCount(log, 0)
  const bad = { titleId: '4d530064', observedAt: instantOf(T0 + 60_000), online: 77 }
  log.append(titleCountTopic.name, [imported(titleCountTopic, bad)])
  const importId = 'f'.repeat(32)
  const [filled, asked] = [latch(), latch()]
  const rebuild = around(engine.rebuild, async (work, what) => {
    if (what === 'rebuild' && (await projector.rebuilds.list())[0]?.retracts === importId) {
      filled.open()
      await asked.opened
    }
    return await work()
  })
  const projector = projectorOn({ ...engine, rebuild }, log)
  projector.start()
  try {
    await projector.caughtUp()
    await projector.rebuilds.start('title-count', { isFromLog: true })
    await untilFilled(projector)
    await projector.rebuilds.verify('title-count')
    await projector.rebuilds.swap('title-count')
    const retraction = { importId, topic: titleCountTopic.name, observedAt: instantOf(T0) }
    log.append(importRetractionTopic.name, [message(importRetractionTopic, retraction)])
    await projector.caughtUp()
    const undone = projector.importUndos.undo(importId, titleCountTopic.name, () => undefined)
    await filled.opened
    await t.rejects(
      projector.rebuilds.rollback('title-count'),
      /Rebuild 2 of title-latest undoes import f+, which the former tables contain.*gamenet import undo f+/
    )
    asked.open()
    await undone
    t.same(await engine.control.rows('SELECT e.online FROM event_title_count AS e FINAL'), [{ online: 5 }])
    await t.rejects(projector.rebuilds.rollback('title-count'), /There are no old tables of title-count/)
  } finally {
    asked.open()
    await projector.stop()
  }
}

/** Start → verify → swap → rollback, from the state that an earlier process has reached. */
async function operate({ rebuilds }: Projector, name: string, isFromLog: boolean) {
  for (;;) {
    const newest = (await rebuilds.list())[0]
    if (newest === undefined) await rebuilds.start(name, { isFromLog })
    else if (newest.state === 'failed') await rebuilds.resume(name)
    else if (newest.state === 'filled' && newest.verification === null) await rebuilds.verify(name)
    else if (newest.state === 'filled') await rebuilds.swap(name)
    else if (newest.state === 'swapped') await rebuilds.rollback(name)
    else if (newest.state === 'rolled-back') return
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}

function mortal(of: Tables, lastCall: number): { tables: Tables; died: Promise<void> } {
  let calls = 0
  let die = () => {}
  const died = new Promise<void>((resolve) => {
    die = resolve
  })
  const call = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    calls += 1
    // The last call takes effect, but is not acknowledged.
    if (calls === lastCall) await work()
    if (calls < lastCall) return await work()
    die()
    throw new Error('the process died')
  }
  return { died, tables: around(of, call) }
}

function appendCount(log: MemoryLog, minute: number, partition = 0): void {
  const event = { titleId: '4d530064', observedAt: instantOf(T0 + minute * 60_000), online: 5 + minute }
  log.append(titleCountTopic.name, [message(titleCountTopic, event)], { epoch: 0, partition })
}

/** Two projectors begin a rebuild each: the second one while the first creates its tables. */
async function beginAtOnce(t: Test, engine: ClickHouse) {
  await emptyTables(engine.control)
  const log = new MemoryLog(() => 5)
  const fills = lockedPasses()
  const shared = { isShared: true, passLock: lockedPasses() }
  let release: () => void = () => undefined
  const otherCame = new Promise<void>((resolve) => {
    release = resolve
  })
  let begins: () => void = () => undefined
  const isMaking = new Promise<void>((resolve) => {
    begins = resolve
  })
  const made = /^CREATE TABLE IF NOT EXISTS \w+__\d/
  const first = projectorOn(
    {
      ...engine,
      rebuild: around(engine.rebuild, async (work, what) => {
        if (what.startsWith('CREATE TABLE IF NOT EXISTS title_count__')) {
          begins()
          await otherCame
        }
        return await work()
      })
    },
    log,
    { ...shared, rebuildLock: fills }
  )
  const otherFills: PassLock = {
    shared: (pass) => fills.shared(pass),
    exclusive: (work) => {
      release()
      return fills.exclusive(work)
    }
  }
  const rebuild = around(engine.rebuild, async (work, what) => {
    if (made.test(what)) release()
    return await work()
  })
  const other = projectorOn({ ...engine, rebuild }, log, { ...shared, rebuildLock: otherFills })
  first.start()
  other.start()
  try {
    appendCount(log, 0)
    await Promise.all([first.caughtUp(), other.caughtUp()])
    const started = first.rebuilds.start('title-count')
    await isMaking
    await other.rebuilds.start('network-count')
    await started
    const records = await first.rebuilds.list()
    t.equal(new Set(records.map(({ id }) => id)).size, 2)
    for (const name of ['title-count', 'network-count']) {
      while ((await first.rebuilds.list()).some((each) => each.projection === name && each.state === 'filling'))
        await pause(25)
      t.equal((await first.rebuilds.verify(name)).isEqual, true, name)
      await first.rebuilds.cancel(name)
    }
  } finally {
    await Promise.all([first.stop(), other.stop()])
  }
}

/** Both measure samples of the same tables. */
async function beginOneAtOnce(t: Test, engine: ClickHouse) {
  await emptyTables(engine.control)
  const log = new MemoryLog(() => 5)
  const shared = { isShared: true, passLock: lockedPasses() }
  const fills = lockedPasses()
  const otherCame = latch()
  const first = around(engine.rebuild, async (work, what) => {
    if (/^INSERT INTO \w+__sample/.test(what)) await otherCame.opened
    return await work()
  })
  const otherFills: PassLock = {
    shared: (pass) => fills.shared(pass),
    exclusive: (work) => {
      otherCame.open()
      return fills.exclusive(work)
    }
  }
  const projectors = [
    projectorOn({ ...engine, rebuild: first }, log, { ...shared, rebuildLock: fills }),
    projectorOn(engine, log, { ...shared, rebuildLock: otherFills })
  ]
  for (const each of projectors) each.start()
  try {
    for (let n = 0; n < 20; n += 1) appendCount(log, n)
    await Promise.all(projectors.map((each) => each.caughtUp()))
    const begun = await Promise.allSettled(
      projectors.map(({ rebuilds }) => rebuilds.start('title-count', { isFromLog: true }))
    )
    t.same(begun.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
    const refused = begun.find((each) => each.status === 'rejected')
    t.match(String(refused?.reason), /RebuildRefused: Rebuild \d+ of title-count is fill/)
    for (const { rebuilds } of projectors) t.equal((await rebuilds.list()).length, 1)
    const plans = await Promise.all(projectors.map(({ rebuilds }) => rebuilds.plan('title-count', { isFromLog: true })))
    for (const plan of plans) {
      t.match(plan.obstacles, [/Rebuild \d+ of title-count is fill/])
      t.match(plan.fromLog, { topic: 'title-count', writes: { table: 'event_title_count' }, events: 20 })
      const ofUnit = plan.unit.reduce((sum, { events }) => sum + events, 0)
      t.equal(plan.events, ofUnit + 20)
    }
  } finally {
    for (const each of projectors) await each.stop()
  }
}

/** One of two projectors dies while it swaps. */
async function endOthers(t: Test, engine: ClickHouse) {
  await emptyTables(engine.control)
  const log = new MemoryLog(() => 5)
  const shared = { isShared: true, passLock: lockedPasses() }
  let isDead = false
  const rebuild = around(engine.rebuild, async (work, what) => {
    isDead ||= what === 'generation_pointer'
    if (isDead) throw new Error('the process died')
    return await work()
  })
  const owner = projectorOn({ ...engine, rebuild }, log, shared)
  const other = projectorOn(engine, log, shared)
  owner.start()
  other.start()
  try {
    appendCount(log, 0)
    await Promise.all([owner.caughtUp(), other.caughtUp()])
    await owner.rebuilds.start('title-count', { isFromLog: true })
    await untilFilled(owner)
    await owner.rebuilds.verify('title-count')
    await t.rejects(owner.rebuilds.swap('title-count'), /died/)
    await owner.stop()
    // Its last heartbeat is as old as that of a dead process.
    await engine.control.execute('TRUNCATE TABLE rebuild_owner')
    await engine.control.execute(
      `INSERT INTO rebuild_owner (id, process, seen_at) VALUES (1, 'dead', now64(3) - INTERVAL 31 SECOND)`
    )
    appendCount(log, 1)
    await other.caughtUp()
    await until(async () => (await other.rebuilds.list())[0]?.state !== 'swapping')
    t.equal((await other.rebuilds.list())[0]?.state, 'swapped')
    compare(await readRows(engine.control), foldOf(log), false)
  } finally {
    await Promise.all([owner.stop(), other.stop()])
  }
}

/** One of two projectors swaps event tables while the other has an event of its own partition to store. */
async function loadConcurrently(t: Test, engine: ClickHouse) {
  await emptyTables(engine.control)
  const log = new MemoryLog(() => 5)
  const passes = lockedPasses()
  let wake: () => void = () => undefined
  const stored = new Promise<void>((resolve) => {
    wake = resolve
  })
  let isDelivered = false
  /** Divides the partitions as a consumer group does; a reader of one topic belongs to a rebuild, and reads all of them. */
  const readerOf = (own: number): LogReader => ({
    extents: (topic) => log.extents(topic),
    commit: (topic, position) => log.commit(topic, position),
    consume: (options) =>
      log.consume({
        ...options,
        deliver: async (batch) => {
          if (options.topics.length > 1 && batch.partition !== own) return
          isDelivered ||= batch.partition === 1
          await options.deliver(batch)
          if (batch.partition === 1) wake()
        }
      })
  })
  let hasAppended = false
  const rebuild = around(engine.rebuild, async (work, what) => {
    if (what === 'generation_pointer' && !hasAppended) {
      hasAppended = true
      appendCount(log, 1, 1)
      await stored
    }
    return await work()
  })
  const owner = projectorOn({ ...engine, rebuild }, readerOf(0), { isShared: true, passLock: passes })
  const other = projectorOn(engine, readerOf(1), {
    isShared: true,
    passLock: {
      exclusive: passes.exclusive,
      shared: (pass) => {
        // The pointer moves before this process stores anything.
        if (isDelivered) wake()
        return passes.shared(pass)
      }
    }
  })
  owner.start()
  other.start()
  try {
    appendCount(log, 0)
    await Promise.all([owner.caughtUp(), other.caughtUp()])
    await owner.rebuilds.start('title-count', { isFromLog: true })
    await untilFilled(owner)
    await owner.rebuilds.verify('title-count')
    await owner.rebuilds.swap('title-count')
    await Promise.all([owner.caughtUp(), other.caughtUp()])
    compare(await readRows(engine.control), foldOf(log), false)
    t.pass('it stands in the tables that serve')
  } finally {
    await Promise.all([owner.stop(), other.stop()])
  }
}

async function changeVersions(t: Test, engine: ClickHouse) {
  await emptyTables(engine.control)
  await engine.control.execute('ALTER TABLE title_count_hour__0 ADD COLUMN IF NOT EXISTS doubled UInt64')
  t.teardown(() => engine.control.execute('ALTER TABLE title_count_hour__0 DROP COLUMN IF EXISTS doubled'))
  const log = new MemoryLog(() => 5)
  const count = (minute: number, online: number) =>
    log.append(
      titleCountTopic.name,
      [message(titleCountTopic, { titleId: '4d530064', observedAt: instantOf(T0 + minute * 60_000), online })],
      { epoch: 0, partition: 0 }
    )
  const rows = async () =>
    (
      await engine.control.rows(
        `SELECT h.max AS max, h.doubled AS doubled FROM ${await servingName(engine.control, 'title_count_hour')} AS h FINAL
         ORDER BY h.hour`
      )
    ).map((row) => [Number(row.max), Number(row.doubled)])
  const newer = projections.map((each): Projection => {
    if (each.name !== 'title-count-hour' || each.form === 'fold') return each
    return {
      ...each,
      version: 3,
      columns: [...each.columns, 'doubled'],
      select: each.select
        .replace('h.position', 'h.position, 2 * arrayMax(h.counts)')
        .replace('max(c.position)', 'max(c.position), 2 * max(c.online)')
    }
  })
  const older = projectorOn(engine, log)
  older.start()
  count(0, 5)
  await older.caughtUp()
  // A rebuild of the older program that a newer one cancels.
  await older.rebuilds.start('title-count-hour')
  await untilFilled(older)
  t.same(await rows(), [[5, 0]])
  await older.stop()

  const projector = projectorOn(engine, log, { projections: newer, longestAnswerMs: 60_000 })
  projector.start()
  try {
    count(60, 7)
    await projector.caughtUp()
    t.same(
      await rows(),
      [
        [5, 10],
        [7, 14]
      ],
      'tables that the newer statements have filled serve without an operator'
    )
    await until(async () => (await projector.rebuilds.list())[0]?.state === 'dropped')
    const rebuilds = (await projector.rebuilds.list()).map(({ id, state, isAutomatic }) => ({ id, state, isAutomatic }))
    t.same(rebuilds, [
      { id: 2, state: 'dropped', isAutomatic: true },
      { id: 1, state: 'cancelled', isAutomatic: false }
    ])
    await t.rejects(projector.rebuilds.rollback('title-count-hour'), /Its last rebuild, 2, was swapped in/)
    t.same(
      (await projector.status()).projections.filter(({ state }) => state !== 'running'),
      []
    )
  } finally {
    await projector.stop()
  }
}

/** A newer process replaces the tables while an older one continues with them until the swap. */
async function upgradeWithOlder(t: Test, engine: ClickHouse) {
  await emptyTables(engine.control)
  const log = new MemoryLog(() => 5)
  const count = (minute: number, online: number) =>
    log.append(
      titleCountTopic.name,
      [message(titleCountTopic, { titleId: '4d530064', observedAt: instantOf(T0 + minute * 60_000), online })],
      { epoch: 0, partition: 0 }
    )
  const newer = projections.map((each): Projection => {
    if (each.name !== 'title-count' || each.form === 'fold') return each
    return { ...each, version: 2, select: each.select.replace('e.online,', 'e.online + 1000,') }
  })
  const passLock = lockedPasses()
  const [older, projector] = [
    projectorOn(engine, log, { isShared: true, passLock }),
    projectorOn(engine, log, { isShared: true, passLock, projections: newer, longestAnswerMs: 60_000 })
  ]
  older.start()
  try {
    count(0, 5)
    await older.caughtUp()
    projector.start()
    count(60, 7)
    await until(async () => (await projector.rebuilds.list())[0]?.state === 'dropped')
    count(120, 9)
    await projector.caughtUp()
    const served = await engine.control.rows(
      `SELECT c.online AS online FROM ${await servingName(engine.control, 'title_count')} AS c FINAL ORDER BY c.ts`
    )
    t.same(
      served.map(({ online }) => Number(online)),
      [1005, 1007, 1009]
    )
    t.match(
      (await older.status()).projections.find((each) => each.projection === 'title-count-hour'),
      { state: 'failing', reason: /^version 2 of the statements of title-count .* Start the newer program/ },
      'the older process writes nothing into them'
    )
  } finally {
    await Promise.all([older.stop(), projector.stop()])
  }
}

/** At one event per second the fill waits after its first steps, whatever the computer can. */
async function fillAllAtRate(t: Test, engine: ClickHouse) {
  await emptyTables(engine.control)
  const log = new MemoryLog(() => 5)
  for (const each of fc.sample(appendedOf(AnyEvent, [0]), { numRuns: 8, seed: 5 })) append(log, each)
  const projector = projectorOn(engine, log)
  const { rebuilds } = projector
  projector.start()
  try {
    await projector.caughtUp()
    const begun = await rebuilds.start('all', { rate: 1 })
    t.same([begun.projection, begun.unit, begun.rate], ['all', projections.map(({ name }) => name), 1])
    const { total } = begun.progress
    t.ok((begun.progress.etaSeconds ?? 0) > total / 2, 'the time left is that of the rate')
    t.equal((await rebuilds.rate('all', 0)).state, 'paused')
    const [held] = await rebuilds.list()
    t.ok((held?.progress.done ?? total) < total, 'most events wait')
    t.equal((await rebuilds.rate('all', 1e9)).rate, 1e9)
    await untilFilled(projector)
    t.ok((await rebuilds.verify('all')).isEqual)
    await rebuilds.swap('all')
    compare(await readRows(engine.control), foldOf(log), false)
    await rebuilds.drop('all')
    for (const each of fc.sample(appendedOf(AnyEvent, [0]), { numRuns: 2, seed: 6 })) append(log, each)
    await projector.caughtUp()
    compare(await readRows(engine.control), foldOf(log), false)
  } finally {
    await projector.stop()
  }
}

/** Events are recorded in any order; some are late, and an import is undone before the cut or after it. */
async function rebuildKnown(t: Test, engine: ClickHouse) {
  const importId = 'f'.repeat(32)
  const Hours = fc.integer({ min: 0, max: 9 })
  const recorded = (hour: number): LogMessage['headers'] => ({ ce_recordedtime: instantOf(T0 + hour * 3_600_000) })
  const property = fc.asyncProperty(
    fc.array(appendedOf(fc.oneof(AnyEvent, AnyBoardEvent), [0]), { minLength: 3, maxLength: 6 }),
    fc.infiniteStream(Hours),
    fc.record({ undo: Hours, cut: Hours, late: Hours }),
    async (appended, hours, { undo, cut, late }) => {
      await emptyTables(engine.control)
      const log = new MemoryLog()
      const sent = (message: LogMessage) => {
        return { ...message, headers: { ...message.headers, ...recorded(hours.next().value ?? 0) } }
      }
      for (const each of appended) append(log, each, sent)
      const events = { titleId: '4d530064', online: 7, observedAt: instantOf(T0) }
      log.append(titleCountTopic.name, [sent(imported(titleCountTopic, events))])
      const isLate = ({ offset }: { offset: number }) => offset % 5 === 3
      const places = log.partitions.flatMap(({ topic, epoch, partition, records }) =>
        records.filter(isLate).map(({ offset }) => ({ topic, place: [epoch, partition, offset] }))
      )
      const stored = instantOf(T0 + late * 3_600_000).slice(0, 19)
      const batches = places.map(({ topic, place }, n) => JSON.stringify([`${n}`, topic, [place], stored]))
      if (batches.length > 0) {
        const lines = new TextEncoder().encode(`${batches.join('\n')}\n`)
        await engine.control.insert('late_batch', ['id', 'topic', 'positions', 'stored_at'], lines)
      }
      const retraction = { importId, topic: titleCountTopic.name, observedAt: instantOf(T0) }
      const asked = message(importRetractionTopic, retraction)
      const expected = new MemoryLog()
      for (const { topic, epoch, partition, records } of log.partitions) {
        const known = records.filter((record) => {
          const isOfUndone = topic === titleCountTopic.name && record.headers.ce_importid === importId && undo <= cut
          const knownMs = Math.max(recordedAtMs(record) ?? 0, isLate(record) ? T0 + late * 3_600_000 : 0)
          return !isOfUndone && knownMs <= T0 + cut * 3_600_000
        })
        expected.append(topic, known, { epoch, partition })
      }
      const projector = projectorOn(engine, log)
      projector.start()
      try {
        await projector.caughtUp()
        log.append(importRetractionTopic.name, [{ ...asked, headers: { ...asked.headers, ...recorded(undo) } }])
        await projector.caughtUp()
        await projector.importUndos.undo(importId, titleCountTopic.name, () => undefined)
        const recordedUntil = instantOf(T0 + cut * 3_600_000)
        const { tables } = await projector.rebuilds.start('all', { recordedUntil })
        await untilFilled(projector)
        const fresh: Pick<Tables, 'rows'> = {
          rows: (sql) => engine.control.rows(sql.replace(/FROM (\w+) FINAL/, (_, of) => `FROM ${tables[of]} FINAL`))
        }
        compare(await readRows(fresh as Tables), foldOf(expected), true)
        t.match((await projector.rebuilds.list())[0], { until: recordedUntil, isByRecording: true })
        await t.rejects(projector.rebuilds.swap('all'), /inspection only. Start one without --recorded-until/)
      } finally {
        await projector.stop()
      }
    }
  )
  await fc.assert(property, { ...runs(RUNS.known), endOnFailure: true })
}

async function refuse(t: Test, engine: ClickHouse) {
  await emptyTables(engine.control)
  const log = new MemoryLog(() => 5)
  const observedAt = instantOf(T0)
  log.append(titleCountTopic.name, [message(titleCountTopic, { titleId: '4d530064', observedAt, online: 5 })], {
    epoch: 0,
    partition: 0
  })
  const damaged = new DamagedTables(storeOver(engine.control), projections)
  let broken = ''
  damaged.has = (name) => name === broken
  const projector = projectorOn(engine, log, { damaged })
  const { rebuilds } = projector
  projector.start()
  try {
    await projector.caughtUp()
    const refused = async (work: Promise<unknown>, sentence: RegExp, isUsage = false) => {
      const error = await work.then(
        () => undefined,
        (error: unknown) => error
      )
      t.ok(error instanceof RebuildRefused && error.isUsage === isUsage && sentence.test(error.message), `${error}`)
    }
    await refused(rebuilds.plan('title-cuont'), /There is no projection "title-cuont"; there are .*title-count/, true)
    await refused(rebuilds.start('title-count', { until: '2999-01-01T00:00:00Z' }), /is in the future/, true)
    await refused(rebuilds.start('title-count', { until: '2999-01-01' }), /is in the future/, true)
    await refused(rebuilds.start('title-count', { until: '2' }), /offsets up to 1/, true)
    await refused(rebuilds.start('title-count', { until: 'yesterday' }), /takes an instant.*got "yesterday"/, true)
    await refused(rebuilds.start('title-count', { until: '1', isFromLog: true }), /cannot be combined/, true)
    for (const [recordedUntil, sentence] of [
      ['2999-01-01', /--recorded-until 2999-01-01 is in the future/],
      ['5', /--recorded-until takes an instant.*that day; got "5"/],
      ['yesterday', /--recorded-until takes an instant.*got "yesterday"/]
    ] as const)
      await refused(rebuilds.start('title-count', { recordedUntil }), sentence, true)
    const both = { until: '1', recordedUntil: '2026-03-14' }
    await refused(rebuilds.start('title-count', both), /cannot be combined/, true)
    await refused(rebuilds.start('title-count', { recordedUntil: '2026-03-14', isFromLog: true }), /combined/, true)
    await refused(rebuilds.start('all', { isFromLog: true }), /events of one topic: give a projection/, true)
    for (const work of ['pause', 'resume', 'cancel', 'verify', 'swap'] as const)
      await refused(rebuilds[work]('title-count'), /There is no rebuild of title-count under way.*rebuild start/)
    await refused(rebuilds.rollback('title-count'), /no old tables of title-count.*never rebuilt/)
    await rebuilds.start('title-count')
    await untilFilled(projector)
    await refused(rebuilds.start('title-count-day'), /Rebuild 1 of title-count is filled and has title-count-day/)
    await refused(rebuilds.swap('title-count-day'), /part of the one of title-count/)
    await refused(rebuilds.rollback('title-count-day'), /part of rebuild 1 of title-count, which is filled/)
    await refused(rebuilds.swap('title-count'), /was not verified.*rebuild verify title-count/)
    await refused(rebuilds.resume('title-count'), /is filled and cannot be resumed/)
    await rebuilds.verify('title-count')
    broken = 'title_count__1'
    await refused(rebuilds.swap('title-count'), /title_count__1 is damaged.*rebuild cancel title-count/)
    broken = ''
    await rebuilds.swap('title-count')
    broken = 'title_count__0'
    await refused(rebuilds.rollback('title-count'), /title_count__0 is damaged.*rebuild drop title-count/)
    broken = ''
    await refused(rebuilds.swap('title-count'), /Its last rebuild, 1, serves already: .*rollback title-count undoes it/)
    await refused(rebuilds.rollback('title-count-day'), /belong to rebuild 1 of title-count/)
    await refused(rebuilds.drop('title-count-hour'), /belong to rebuild 1 of title-count/)
    await rebuilds.start('title-count-day')
    await untilFilled(projector)
    await rebuilds.verify('title-count-day')
    await rebuilds.rollback('title-count')
    const rolledBack = /1, was rolled back: the former tables serve again.*rebuild start title-count makes new ones/
    for (const work of ['swap', 'rollback', 'drop'] as const) await refused(rebuilds[work]('title-count'), rolledBack)
    await refused(rebuilds.swap('title-count-day'), /not verified against the tables that serve now/)
    await rebuilds.cancel('title-count-day')
    await rebuilds.start('title-count', { until: '1' })
    await untilFilled(projector)
    t.match(await rebuilds.verify('title-count'), { isEqual: true, until: '1' })
    await refused(rebuilds.swap('title-count'), /ends at 1 and is for inspection only/)
    await rebuilds.cancel('title-count')
    await rebuilds.start('title-count', { until: '2026-03-14' })
    await untilFilled(projector)
    t.match(await rebuilds.verify('title-count'), { isEqual: false, until: '2026-03-14', tables: [{ freshRows: 0 }] })
    await rebuilds.cancel('title-count')
    await refused(rebuilds.resume('title-count'), /Its last rebuild, 4, was cancelled, and its tables are dropped/)
  } finally {
    await projector.stop()
  }
}

async function untilFilled({ rebuilds }: Projector) {
  for (;;) {
    const [newest] = await rebuilds.list()
    if (newest?.state === 'filled') return
    if (newest?.state !== 'filling') throw new Error(`${newest?.state}: ${newest?.reason}`)
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}
