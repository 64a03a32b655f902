import { ok } from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { ClickHouse } from '@gamenet/engines'
import { runs, until } from '@gamenet/engines/testing'
import { leaderboardEntryTopic } from '@gamenet/schemas'
import fc from 'fast-check'
import { type Test, test } from 'tap'
import {
  DamagedTables,
  type Projector,
  projections,
  RebuildRefused,
  type RebuildStatus,
  storeOver
} from '../src/index.js'
import { detachPart } from '../src/store/damage.js'
import { readPointers } from '../src/store/generation.js'
import { AnyBoardEvent, AnyEvent, append, appendedOf, compare } from './any-event.js'
import { around } from './around.js'
import { foldOf, type RowsByTable, readRows } from './fold.js'
import { latch } from './latch.js'
import { lockedPasses } from './locks.js'
import { MemoryLog } from './memory-log.js'
import { emptyTables, laterGenerations, newestVersion, openTables, projectorOn, servingName } from './pipeline.js'
import { HISTORY, keyIn, Log, live, type Spoilt, Topic, WAYS, Way } from './spoilt-key.js'

const RUNS = { ways: 2, deaths: 2 }

test('a rebuild of one key', async (t) => {
  // Waits between attempts keep no process alive.
  const alive = setInterval(() => undefined, 1000)
  t.teardown(() => clearInterval(alive))
  const engine = await openTables()
  await t.test('makes all tables equal the plain fold, however its rows were spoiled', (t) => corrects(t, engine))
  await t.test('converges when processes die at any of its calls', (t) => outlivesDeaths(t, engine))
  await t.test('leaves the rows and the identities of other keys unchanged, also when it is rolled back', (t) =>
    leavesOthers(t, engine)
  )
  await t.test('begins again if a whole rebuild is swapped in meanwhile, which may also replace it', (t) =>
    runsBesideAWholeOne(t, engine)
  )
  await t.test('needs readable rows, and computes those of a detached part', (t) => replacesPart(t, engine))
  await t.test('is refused with a sentence, and changes nothing', (t) => refuses(t, engine))
})

/** Starts the rebuild of a key, and waits until it has ended. */
async function correct({ rebuilds }: Projector, { projection, key }: Pick<Spoilt, 'projection' | 'key'>) {
  const { id } = await rebuilds.start(projection, { key })
  return await ended(rebuilds, id)
}

async function ended(rebuilds: Projector['rebuilds'], id: number): Promise<RebuildStatus> {
  for (;;) {
    const found = (await rebuilds.list()).find((each) => each.id === id)
    if (found !== undefined && !['filling', 'swapping', 'rolling-back'].includes(found.state)) return found
    await pause(10)
  }
}

async function corrects(t: Test, engine: ClickHouse) {
  let corrected = 0
  const property = fc.asyncProperty(Log, Log, Way, Topic, async (first, later, way, topic) => {
    await emptyTables(engine.control)
    const log = new MemoryLog(() => 5)
    for (const each of first) append(log, each)
    const spoilt = keyIn(log, topic)
    fc.pre(spoilt !== undefined)
    if (spoilt === undefined) return
    const projector = projectorOn(engine, log)
    projector.start()
    try {
      await projector.caughtUp()
      await WAYS[way](engine, spoilt, log)
      const correcting = correct(projector, spoilt)
      for (const each of later) append(log, each)
      const { state, reason, verification } = await correcting
      if (state !== 'swapped') throw new Error(`${state}: ${reason}`)
      await projector.caughtUp()
      compare(await readRows(engine.control), foldOf(log), false)
      corrected += verification?.differences ?? 0
    } finally {
      await projector.stop()
    }
  })
  await fc.assert(property, { ...runs(RUNS.ways, 11), endOnFailure: true })
  t.ok(corrected > 0, `${corrected} rows were wrong`)
}

/** Processes that die one after another, each at a random call; the last one completes what they began. */
async function outlivesDeaths(t: Test, engine: ClickHouse) {
  const Lives = fc.array(fc.integer({ min: 1, max: 160 }), { minLength: 3, maxLength: 6 })
  const property = fc.asyncProperty(Log, Way, Lives, async (appended, way, lives) => {
    await emptyTables(engine.control)
    const log = new MemoryLog(() => 5)
    for (const each of appended) append(log, each)
    const spoilt = keyIn(log, leaderboardEntryTopic)
    fc.pre(spoilt !== undefined)
    if (spoilt === undefined) return
    const first = projectorOn(engine, log)
    first.start()
    await first.caughtUp()
    await WAYS[way](engine, spoilt, log)
    await first.stop()
    for (const calls of [...lives, Infinity]) {
      let call = 0
      await live(engine, { log, spoilt }, () => ++call === calls)
    }
    const last = projectorOn(engine, log)
    last.start()
    await last.caughtUp()
    compare(await readRows(engine.control), foldOf(log), false)
    await last.rebuilds.drop(spoilt.projection)
    await last.stop()
    const [served] = new Set(await laterGenerations(engine.control))
    ok(t.match(served, /__\d+$/))
  })
  await fc.assert(property, { ...runs(RUNS.deaths, 12), endOnFailure: true })
}

/** A log with two boards and counts; both boards are spoilt, and one of them is corrected. */
async function begin(engine: ClickHouse, options: Parameters<typeof projectorOn>[2] = {}) {
  await emptyTables(engine.control)
  const log = new MemoryLog(() => 5)
  for (const each of fc.sample(appendedOf(AnyEvent, [0]), { numRuns: 30, seed: 3 })) append(log, each)
  const projector = projectorOn(engine, log, options)
  projector.start()
  await projector.caughtUp()
  const spoilt = keyIn(log, leaderboardEntryTopic)
  if (spoilt === undefined) throw new Error('the log has no board')
  const before = await readRows(engine.control)
  await WAYS.edited(engine, { ...spoilt, condition: 'true' }, log)
  return { log, projector, spoilt, before, after: await readRows(engine.control) }
}

const isOf =
  (spoilt: Spoilt) =>
  ([, row]: readonly [string, { readonly key: string }]) =>
    row.key === spoilt.key
const rowsWhere = (all: RowsByTable, isWanted: (row: readonly [string, { readonly key: string }]) => boolean) =>
  new Map([...all].map(([table, rows]) => [table, new Map([...rows].filter(isWanted))]))

async function leavesOthers(t: Test, engine: ClickHouse) {
  const { projector, spoilt, before, after } = await begin(engine)
  const { control } = engine
  try {
    const isIts = isOf(spoilt)
    const isOther: typeof isIts = (row) => !isIts(row)
    t.strictNotSame(rowsWhere(after, isOther), rowsWhere(before, isOther), 'other boards are wrong, too')
    for (const [work, expected] of [
      [() => correct(projector, spoilt), before],
      [() => projector.rebuilds.rollback(spoilt.projection), after]
    ] as const) {
      const version = await newestVersion(control)
      const serving = await storeOver(control).do(readPointers)
      await work()
      const rows = await readRows(control)
      t.same(rowsWhere(rows, isIts), rowsWhere(expected, isIts), 'the board is right, or as before')
      t.same(rowsWhere(rows, isOther), rowsWhere(after, isOther), 'no other row is different')
      const changes = await control.rows(
        'SELECT DISTINCT d.projection AS projection, d.key AS key FROM data_change AS d WHERE d.version > {version: UInt64} ORDER BY projection',
        { version: String(version) }
      )
      t.same(
        changes,
        [...[HISTORY, 'leaderboard-entry', 'player-entry', 'timed-entry']]
          .sort()
          .map((projection) => ({ projection, key: spoilt.key })),
        'only its changes are announced'
      )
      const now = await storeOver(control).do(readPointers)
      t.equal(
        now.serving.counterOf(HISTORY),
        serving.serving.counterOf(HISTORY),
        'the identity of other answers is the same'
      )
      t.ok(now.serving.counter > serving.serving.counter, 'and readers know that the tables are others')
    }
  } finally {
    await projector.stop()
  }
}

async function runsBesideAWholeOne(t: Test, engine: ClickHouse) {
  await begin(engine).then(({ projector }) => projector.stop())
  const { log, projector: first, spoilt } = await begin(engine)
  await first.stop()
  const [cloned, swapped] = [latch(), latch()]
  let isHeld = true
  const rebuild = around(engine.rebuild, async (work, what) => {
    if (isHeld && /^DELETE FROM leaderboard_history__2 /.test(what)) {
      isHeld = false
      cloned.open()
      await swapped.opened
    }
    return await work()
  })
  const shared = { isShared: true, passLock: lockedPasses() }
  const projector = projectorOn({ ...engine, rebuild }, log, shared)
  const { rebuilds } = projector
  projector.start()
  try {
    await projector.caughtUp()
    await rebuilds.start(HISTORY)
    await until(async () => (await rebuilds.list())[0]?.state === 'filled')
    await rebuilds.verify(HISTORY)
    const correcting = correct(projector, spoilt)
    await cloned.opened
    const whole = rebuilds.swap(HISTORY, { acceptDifferences: true })
    swapped.open()
    await whole
    t.match(await correcting, { id: 2, state: 'swapped', verification: { isEqual: true } })
    compare(await readRows(engine.control), foldOf(log), false)
    t.match(await rebuilds.list(), [
      { id: 2, state: 'swapped' },
      { id: 1, state: 'dropped' }
    ])

    await rebuilds.start(HISTORY)
    await until(async () => (await rebuilds.list())[0]?.state === 'filled')
    await rebuilds.verify(HISTORY)
    t.match(await correct(projector, spoilt), { id: 4, state: 'swapped' })
    await t.rejects(rebuilds.swap(HISTORY), /Rebuild 3 was not verified against the tables that serve now/)
    t.ok((await rebuilds.verify(HISTORY)).isEqual)
    await rebuilds.swap(HISTORY)
    t.match(await rebuilds.list(), [
      { id: 4, state: 'dropped' },
      { id: 3, state: 'swapped' },
      { id: 2, state: 'dropped' }
    ])
    await rebuilds.rollback(HISTORY)
    compare(await readRows(engine.control), foldOf(log), false)
    t.same([...new Set((await laterGenerations(engine.control)).map((name) => name.replace(/^.*__/, '')))], ['4'])
  } finally {
    swapped.open()
    await projector.stop()
  }
}

/** A part with the rows of a board gets a wrong bit; then somebody detaches it, and the rebuild begins again. */
async function replacesPart(t: Test, engine: ClickHouse) {
  const { control } = engine
  const failed = latch()
  let reason = ''
  const explain = async (error: unknown) => {
    reason = String(error)
    failed.open()
    return undefined
  }
  const { log, projector, spoilt } = await begin(engine, { explain })
  try {
    await correct(projector, { projection: HISTORY, key: spoilt.key })
    const table = await servingName(control, 'leaderboard_entry')
    for (const statement of [
      `CREATE TABLE own_part AS ${table}`,
      `INSERT INTO own_part SELECT * FROM ${table} WHERE ${spoilt.condition}`,
      `DELETE FROM ${table} WHERE ${spoilt.condition}`,
      `INSERT INTO ${table} SELECT * FROM own_part`,
      'DROP TABLE own_part'
    ])
      await control.execute(statement)
    const [part] = await control.rows(
      `SELECT p.name AS name, p.path AS path FROM system.parts AS p
       WHERE p.database = currentDatabase() AND p.active AND p.table = {table: String} ORDER BY p.min_block_number DESC`,
      { table }
    )
    const path = String(part?.path)
    const file = join(path, readdirSync(path).find((name) => name.endsWith('.bin')) ?? '')
    const bytes = readFileSync(file)
    bytes.writeUInt8(bytes.readUInt8(bytes.length >> 1) ^ 1, bytes.length >> 1)
    writeFileSync(file, bytes)
    const correcting = correct(projector, spoilt)
    await failed.opened
    t.match(reason, /Checksum doesn't match/)
    await storeOver(control).do(detachPart, { table, part: String(part?.name) })
    t.match(await correcting, { state: 'swapped' })
    const isIts = isOf(spoilt)
    t.same(rowsWhere(await readRows(control), isIts), rowsWhere(foldOf(log), isIts))
  } finally {
    await projector.stop()
  }
}

async function refuses(t: Test, engine: ClickHouse) {
  const { log, projector: first, spoilt } = await begin(engine)
  await first.stop()
  const damaged = new DamagedTables(storeOver(engine.control), projections)
  let broken = ''
  damaged.has = (name) => name === broken
  const held = latch()
  let isHeld = false
  const rebuild = around(engine.rebuild, async (work, what) => {
    if (isHeld && /^DELETE FROM/.test(what)) await held.opened
    return await work()
  })
  let isFailing = false
  const stored = around(engine.projections, async (work, what) => {
    if (isFailing && /^INSERT INTO player_entry__/.test(what)) throw new Error('it cannot be stored')
    return await work()
  })
  const projector = projectorOn({ ...engine, projections: stored, rebuild }, log, { damaged, catchUpMs: 300 })
  const { rebuilds } = projector
  projector.start()
  try {
    await projector.caughtUp()
    for (const [projection, key, sentence] of [
      ['all', '4d530064', /give a projection instead of all/],
      ['title-cuont', '4d530064', /There is no projection "title-cuont"; there are/],
      ['network-count', '4d530064', /cannot be corrected by a title or a board.*gamenet rebuild start network-count\./],
      ['player', '4d530064/7', /Rows of player cannot be .*gamenet rebuild start player\./],
      ['profile', 'ann', /Rows of profile cannot be .*gamenet rebuild start profile\./],
      ['achievement-unlock', 'ann', /Rows of achievement-unlock.* cannot be corrected by a title or a board/],
      ['presence', 'somebody', /Rows of presence, presence-day cannot be .*gamenet rebuild start presence\./],
      [HISTORY, '4d530064', /A key of leaderboard-history is <title>\/<board>, such as 4d530064\/1; got "4d530064"/],
      [HISTORY, '4d530064/', /got "4d530064\/"/],
      [HISTORY, '4d530064/-1', /got/],
      [HISTORY, '4d530064/7/8', /got/],
      ['title-count', `4d530064' OR '1'='1`, /A key of title-count is <title>, such as 4d530064; got/],
      ['title-count', '4d53ffff', /There is no event and no row of 4d53ffff in event_title_count, .*title_count_day\./]
    ] as const) {
      const error = await rebuilds.start(projection, { key }).then(
        () => undefined,
        (error: unknown) => error
      )
      t.ok(error instanceof RebuildRefused && error.isUsage && sentence.test(error.message), `${error}`)
    }
    for (const options of [{ until: '5' }, { isFromLog: true }, { rate: 5 }])
      await t.rejects(rebuilds.start(HISTORY, { key: spoilt.key, ...options }), /--key cannot be combined with/)
    broken = 'leaderboard_entry__0'
    await t.rejects(
      rebuilds.start('leaderboard-entry', { key: spoilt.key }),
      /is damaged .*rebuilt as a whole\. Repeat it/
    )
    broken = ''
    t.same(await rebuilds.list(), [])

    isHeld = true
    const { id, progress } = await rebuilds.start(HISTORY, { key: spoilt.key.toUpperCase() })
    t.match(progress, { share: 0, etaSeconds: null }, 'it is not done before it serves')
    await t.rejects(
      rebuilds.start('player-entry', { key: spoilt.key }),
      /Rebuild 1 of leaderboard-history is filling and has player-entry: it corrects \w+\/\d, and completes by itself/
    )
    isHeld = false
    isFailing = true
    for (const each of fc.sample(appendedOf(AnyBoardEvent, [0]), { numRuns: 3, seed: 3 })) append(log, each)
    held.open()
    t.match(await ended(rebuilds, id), { state: 'cancelled', reason: /was not swapped: projection player-entry/ })
    isFailing = false
    await projector.caughtUp()
    t.match(await correct(projector, spoilt), { id: 2, state: 'swapped' })
  } finally {
    held.open()
    await projector.stop()
  }
}
