import { runs } from '@gamenet/engines/testing'
import { instantOf, leaderboardEntryTopic } from '@gamenet/schemas'
import fc from 'fast-check'
import { test } from 'tap'
import { projections } from '../src/index.js'
import {
  AnyBoardEvent,
  AnyEvent,
  append,
  appendedOf,
  compare,
  deathWithin,
  everyChangeIsPublished,
  type TestEvent
} from './any-event.js'
import { around } from './around.js'
import { foldOf, type RowsByTable, readRows, unreadable } from './fold.js'
import { MemoryLog } from './memory-log.js'
import { liveUntilDeath } from './mortal.js'
import { emptyTables, message, newestVersion, openTables, runToHead } from './pipeline.js'

const RUNS = { all: 2, boards: 2, epochs: 2, frozen: 3 }

const scenarioOf = (event: fc.Arbitrary<TestEvent>, epochs: readonly number[], calls: number) =>
  fc.record({
    rounds: fc.array(
      fc.record({
        appended: fc.array(appendedOf(event, epochs), { minLength: 1, maxLength: 3 }),
        death: deathWithin(calls)
      }),
      { minLength: 1, maxLength: 2 }
    ),
    batchRecords: fc.infiniteStream(fc.integer({ min: 1, max: 9 })),
    forget: fc.constantFrom('nothing', 'nothing', 'checkpoints')
  })
type Scenario = ReturnType<typeof scenarioOf> extends fc.Arbitrary<infer Value> ? Value : never

test('any batches, repeated, reordered across partitions and interrupted by deaths, equal the plain fold of the events', async (t) => {
  const engine = await openTables()
  /** Runs a scenario and compares; returns the number of deaths. */
  const live = async ({ rounds, batchRecords, forget }: Scenario): Promise<number> => {
    await emptyTables(engine.control)
    let deaths = 0
    const log = new MemoryLog(() => batchRecords.next().value ?? 1)
    let seen: { version: number; model: RowsByTable } | undefined
    for (const { appended, death } of rounds) {
      for (const each of appended) append(log, each)
      if (await liveUntilDeath(engine, log, { ...death, calls: 'all' })) deaths += 1
      const version = await newestVersion(engine.control)
      seen = { version, model: await readRows(engine.control) }
    }
    if (forget === 'checkpoints') await engine.control.execute('TRUNCATE TABLE checkpoint')
    await runToHead(engine, log)
    const found = await readRows(engine.control)
    compare(found, foldOf(log), new Set(log.partitions.map(({ epoch }) => epoch)).size > 1)
    await everyChangeIsPublished(engine.control, found, new Map(), 0)
    if (seen !== undefined) await everyChangeIsPublished(engine.control, found, seen.model, seen.version)
    const deadLetters = await engine.control.rows(
      'SELECT p.topic, p.epoch, p.partition, p.offset FROM dead_letter AS p FINAL'
    )
    const places = deadLetters.map((p) => `${p.topic}/${p.epoch}/${p.partition}/${p.offset}`).sort()
    if (places.join() !== unreadable(log).join())
      throw new Error(`dead letters: ${places}; unreadable: ${unreadable(log)}`)
    return deaths
  }
  for (const [what, scenario, numRuns] of [
    ['events of all topics', scenarioOf(AnyEvent, [0, 1], 70), RUNS.all],
    ['events of boards', scenarioOf(AnyBoardEvent, [0], 40), RUNS.boards],
    ['events of boards in two epochs', scenarioOf(AnyBoardEvent, [0, 1], 40), RUNS.epochs]
  ] as const) {
    let deaths = 0
    const property = fc.asyncProperty(scenario, async (each) => {
      deaths += await live(each)
    })
    await fc.assert(property, { ...runs(numRuns), endOnFailure: true })
    t.ok(deaths > 0, `${what}: ${deaths} deaths`)
  }
})

const FrozenScenario = fc.record({
  before: fc.array(appendedOf(AnyBoardEvent, [0, 1]), { maxLength: 1 }),
  taken: appendedOf(AnyBoardEvent, [0, 1]),
  meanwhile: appendedOf(AnyBoardEvent, [0, 1]),
  /** The call before which it is stopped. */
  atCall: fc.nat(60)
})

test('a projector that is stopped before any call, while another continues, leaves the rows of the plain fold', async () => {
  const engine = await openTables()
  const standsStill = fc.asyncProperty(FrozenScenario, async ({ before, taken, meanwhile, atCall }) => {
    await emptyTables(engine.control)
    const log = new MemoryLog()
    for (const each of before) append(log, each)
    await runToHead(engine, log)
    let calls = 0
    const projections = around(engine.projections, async (work) => {
      calls += 1
      if (calls === atCall) {
        append(log, meanwhile)
        await runToHead(engine, log)
      }
      return await work()
    })
    append(log, taken)
    await runToHead({ loader: engine.loader, projections }, log, { isShared: true })
    if (calls < atCall) append(log, meanwhile)
    await runToHead(engine, log)
    compare(await readRows(engine.control), foldOf(log), true)
  })
  await fc.assert(standsStill, { ...runs(RUNS.frozen), endOnFailure: true })
})

test('a board is recomputed if another projector stored an event of an earlier epoch during any of its writes', async (t) => {
  const engine = await openTables()
  const entry = (playerName: string, timeMs: number, minute: number) => {
    const board = { titleId: '4d530064', leaderboardId: 7, changeType: 'updated' } as const
    const changedAt = instantOf(Date.UTC(2026, 2, 14, 20, minute))
    return message(leaderboardEntryTopic, { ...board, playerName, rating: String(timeMs), timeMs, changedAt })
  }
  const boards = projections.find(({ name }) => name === 'leaderboard-entry')
  for (const table of boards?.form === 'fold' ? Object.keys(boards.into) : []) {
    await emptyTables(engine.control)
    const log = new MemoryLog()
    let isAhead = false
    const overtaken = around(engine.projections, async (work, what) => {
      if (what === `${table}__0` && !isAhead) {
        isAhead = true
        log.append('leaderboard-entry', [entry('Bob', 50_000, 0)], { epoch: 0, partition: 0 })
        await runToHead(engine, log)
      }
      return await work()
    })
    log.append('leaderboard-entry', [entry('Ann', 60_000, 1), entry('Cid', 55_000, 2)], { epoch: 1, partition: 0 })
    await runToHead({ loader: engine.loader, projections: overtaken }, log, { isShared: true })
    await runToHead(engine, log)
    const model = await readRows(engine.control)
    t.doesNotThrow(() => compare(model, foldOf(log), true), `${table}${isAhead ? '' : ' is not written'}`)
  }
})
