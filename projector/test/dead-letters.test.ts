import { setTimeout as pause } from 'node:timers/promises'
import { runs, until } from '@gamenet/engines/testing'
import {
  type AchievementUnlocked,
  achievementUnlockTopic,
  importRetractionTopic,
  type LeaderboardEntryChanged,
  type LogMessage,
  leaderboardEntryTopic,
  type PresenceSeen,
  presenceTopic,
  titleCountTopic,
  topics
} from '@gamenet/schemas'
import fc from 'fast-check'
import { Registry } from 'prom-client'
import { test } from 'tap'
import { LateBatches } from '../src/dead-letters/late-batches.js'
import {
  deadLettersAt,
  dropAllDeadLetters,
  dropDeadLetters,
  type PassLock,
  projectionsWithout,
  type RetryNeeds,
  readDeadLetter,
  readDeadLetters,
  readLateRange,
  readPending,
  retryDeadLetters,
  storeConsumed,
  storeOver,
  type Tables
} from '../src/index.js'
import { projections } from '../src/projections/projections.js'
import { titleCount, titleCountHour } from '../src/projections/title-count.js'
import { storePointers } from '../src/store/generation.js'
import { storeLateBatch } from '../src/store/late-batch.js'
import {
  AnyBoardEvent,
  AnyEvent,
  type Appended,
  append,
  appendedOf,
  compare,
  deathWithin,
  everyChangeIsPublished,
  type TestEvent
} from './any-event.js'
import { around } from './around.js'
import { foldOf, readRows, unreadable } from './fold.js'
import { latch } from './latch.js'
import { lockedPasses } from './locks.js'
import { MemoryLog } from './memory-log.js'
import { liveUntilDeath } from './mortal.js'
import { sealKeys, sealOf } from './people.js'
import {
  emptyTables,
  firstStore,
  imported,
  message,
  newer,
  newerTopics,
  newestVersion,
  openTables,
  projectorOn,
  retryAll,
  runToHead
} from './pipeline.js'

const RUNS = { all: 1, boards: 1, epochs: 1 }
const T0 = '2026-03-14T20:00:00Z'
const at = (second: number) => `2026-03-14T20:00:${10 + second}Z`
const counted = (online: number, second = online) =>
  message(titleCountTopic, { titleId: '4d530064', observedAt: at(second), online })

/** The dependencies of a retry; by default this program's own schemas. */
const retryNeeds = (tables: Tables, more: Partial<RetryNeeds> = {}): RetryNeeds => ({
  store: storeOver(tables),
  topics,
  withSealKeys: async (people, use) => use(await sealKeys(people)),
  inStep: (step) => step(),
  onProgress: () => {},
  signal: new AbortController().signal,
  ...more
})

const scenarioOf = (event: fc.Arbitrary<TestEvent>, epochs: readonly number[], calls: number) => {
  const round = fc.record({
    appended: fc.array(appendedOf(event, epochs), { minLength: 1, maxLength: 2 }),
    death: deathWithin(calls)
  })
  return fc.record({
    /** Rounds of the program that cannot read messages of the next one. */
    before: fc.array(round, { minLength: 1, maxLength: 2 }),
    /** A round of the next program, during which every dead letter is retried. */
    upgraded: round,
    /** One in this many messages is of the next program; the content of a message decides. */
    newerOf: fc.integer({ min: 1, max: 3 }),
    batchRecords: fc.infiniteStream(fc.integer({ min: 1, max: 9 }))
  })
}
type Scenario = ReturnType<typeof scenarioOf> extends fc.Arbitrary<infer Value> ? Value : never

test('dead letters that are retried', async (t) => {
  const engine = await openTables()
  const { control } = engine

  /** Runs a scenario, and compares with a log that every program could read; returns the number of deaths. */
  const live = async ({ before, upgraded, newerOf, batchRecords }: Scenario): Promise<number> => {
    await emptyTables(control)
    let deaths = 0
    const log = new MemoryLog(() => batchRecords.next().value ?? 1)
    const plain = new MemoryLog()
    const appendBoth = (appended: readonly Appended[]) => {
      for (const each of appended) {
        append(plain, each)
        append(log, each, (sent) => (sum(sent) % newerOf === 0 ? newer(sent) : sent))
      }
    }
    for (const { appended, death } of before) {
      appendBoth(appended)
      if (await liveUntilDeath(engine, log, { ...death, calls: 'all' })) deaths += 1
    }
    const version = await newestVersion(control)
    const model = await readRows(control)
    appendBoth(upgraded.appended)
    const life = { ...upgraded.death, calls: 'all', topics: newerTopics, meanwhile: retry } as const
    if (await liveUntilDeath(engine, log, life)) deaths += 1
    await runToHead(engine, log, { topics: newerTopics, meanwhile: retry })

    const found = await readRows(control)
    compare(found, foldOf(plain), true)
    await everyChangeIsPublished(control, found, model, version)
    const { messages } = await storeOver(control).do(readDeadLetters, { state: 'stored', limit: 1000 })
    const places = messages.map((p) => `${p.topic}/${p.epoch}/${p.partition}/${p.offset}`).sort()
    if (places.join() !== unreadable(plain).join()) throw new Error(`still dead letters: ${places}`)
    return deaths
  }
  const retry = async (...life: Parameters<typeof retryAll>) => {
    await retryAll(...life)
  }

  await t.test('leave the same rows as if they had never been dead letters, after deaths at any call', async (t) => {
    let deaths = 0
    for (const [scenario, numRuns] of [
      [scenarioOf(AnyEvent, [0, 1], 90), RUNS.all],
      [scenarioOf(AnyBoardEvent, [0], 60), RUNS.boards],
      [scenarioOf(AnyBoardEvent, [0, 1], 60), RUNS.epochs]
    ] as const) {
      const property = fc.asyncProperty(scenario, async (each) => {
        deaths += await live(each)
      })
      await fc.assert(property, { ...runs(numRuns), endOnFailure: true })
    }
    t.ok(deaths > 0, `${deaths} deaths`)
  })

  await t.test('reach a projection after the one whose table it reads', async (t) => {
    await emptyTables(control)
    const store = firstStore(control)
    await store.do(storeLateBatch, 'late', 'title-count', [{ epoch: 0, partition: 0, offset: 1 }])
    const late = new LateBatches()
    await late.refresh(store, projections)
    // Both are recent, so each process consumes them once, whatever others have done.
    t.equal(late.next(titleCount, new Map()), 'late')
    t.equal(late.next(titleCountHour, new Map()), undefined, 'its source has failed')
    t.equal(late.next(titleCountHour, new Map([[titleCount.name, 'late']])), 'late', 'in the same turn')
    await late.store(store, [{ projection: titleCount.name, id: 'late' }])
    t.equal(late.next(titleCountHour, new Map()), 'late')
  })

  await t.test('are listed, shown, dropped for good and retried after all', async (t) => {
    await emptyTables(control)
    const log = new MemoryLog()
    const bytes = Uint8Array.of(0x7b, 0xff, 0x00)
    log.append('title-count', [
      counted(1),
      { key: 'k', headers: { a: 'b' }, value: bytes },
      newer(counted(2)),
      counted(3)
    ])
    log.append('network-count', [{ key: null, headers: {}, value: '{}' }])
    const registry = new Registry()
    const projector = projectorOn(engine, log, { registry })
    projector.start()
    await projector.caughtUp()
    const place = { topic: 'title-count', epoch: 0, partition: 0, offset: 1 }
    const all = await storeOver(control).do(readDeadLetters, { state: 'stored', limit: 2 })
    t.equal(all.total, 3)
    t.match(all.messages, [
      { topic: 'network-count', offset: 0, bytes: 2, state: 'stored', reason: /ce_type is missing/ },
      { ...place, bytes: 3, reason: /ce_type is missing/ }
    ])
    t.ok(Math.abs(Date.now() - (all.messages[0]?.storedAtMs ?? 0)) < 3_600_000)
    t.match(await storeOver(control).do(readDeadLetters, { state: 'stored', topic: 'title-count', limit: 100 }), {
      total: 2,
      messages: [
        place,
        { offset: 2, reason: /^schema version 2 of title-count is newer than this program, which reads up to 1/ }
      ]
    })
    t.match(await readDeadLetter(storeOver(control), place), { ...place, key: 'k', headers: { a: 'b' }, bytes: 3 })
    t.same((await readDeadLetter(storeOver(control), place))?.value, bytes)
    t.equal(await readDeadLetter(storeOver(control), { ...place, offset: 3 }), undefined)

    await dropDeadLetters(storeOver(control), [place])
    t.equal((await storeOver(control).do(readDeadLetters, { state: 'stored', limit: 9 })).total, 2)
    t.match(await storeOver(control).do(readDeadLetters, { state: 'dropped', limit: 9 }), {
      total: 1,
      messages: [place]
    })
    t.equal(await dropAllDeadLetters(storeOver(control), 'network-count'), 1)
    const deadLettersIn = async (name: string) =>
      (await projector.status()).topics.find(({ topic }) => topic === name)?.deadLetters
    t.same([await deadLettersIn('title-count'), await deadLettersIn('network-count')], [1, 0])
    t.match(await registry.metrics(), /gamenet_dead_letters\{topic="network-count"\} 0/)

    await projector.stop()
    await control.execute('TRUNCATE TABLE checkpoint')
    await runToHead(engine, log)
    t.equal(
      (await storeOver(control).do(readDeadLetters, { state: 'stored', limit: 9 })).total,
      1,
      'read again, what was dropped is dropped'
    )

    const refused = await retryDeadLetters(retryNeeds(control), 'title-count', 'all')
    t.match(refused, {
      retried: 0,
      refused: 1,
      batches: [],
      refusals: [{ offset: 2, reason: /newer than this program/ }]
    })
    t.match(
      await retryDeadLetters(retryNeeds(control), 'title-count', [place]),
      { refused: 1 },
      'a dropped one that is named'
    )
    t.equal((await storeOver(control).do(readDeadLetters, { state: 'dropped', limit: 9 })).total, 2)
    const upgraded = retryNeeds(control, { topics: newerTopics })
    t.match(await retryDeadLetters(upgraded, 'title-count', 'all'), { retried: 1, refused: 0 })
    t.same(await deadLettersAt(storeOver(control), [{ ...place, offset: 2 }]), [])
    t.equal((await retryDeadLetters(upgraded, 'title-count', 'all')).retried, 0)
    await t.rejects(retryDeadLetters(upgraded, 'titles', 'all'), { message: /There is no topic "titles"/ })
    await control.execute('TRUNCATE TABLE checkpoint')
    await runToHead(engine, log)
    t.equal(
      (await storeOver(control).do(readDeadLetters, { state: 'stored', limit: 9 })).total,
      1,
      'it is a dead letter of an older program again'
    )
  })

  await t.test('are decrypted with the keys of their people, or passed over if these were erased', async (t) => {
    await emptyTables(control)
    const seen = (username: string): PresenceSeen => ({
      ...{ username, gamertag: username, state: 'online', game: 'Halo 2', periodSeconds: 60, observedAt: T0 }
    })
    const log = new MemoryLog()
    log.append('presence', [message(presenceTopic, seen('Ann')), message(presenceTopic, seen('Bob'))])
    const wrongKeys = async (people: readonly number[]) => new Map(people.map((person) => [person, new Uint8Array(32)]))
    const projector = projectorOn(engine, log, { sealKeys: wrongKeys })
    projector.start()
    await projector.caughtUp()
    t.match((await storeOver(control).do(readDeadLetters, { state: 'stored', limit: 9 })).messages, [
      { reason: /cannot be decrypted with the keys/ },
      { reason: /cannot be decrypted with the keys/ }
    ])
    let isInStep = false
    const without = retryNeeds(control, {
      inStep: async (step) => {
        isInStep = true
        return await step()
      },
      withSealKeys: async (people, use) => {
        t.ok(isInStep, 'nobody waits for a step with the transaction open that holds the keys')
        await use(await sealKeys(people.filter((each) => each !== sealOf('Bob').id)))
      }
    })
    t.match(await retryDeadLetters(without, 'presence', 'all'), { retried: 1, passedOver: 1, refused: 0 })
    t.equal((await storeOver(control).do(readDeadLetters, { state: 'stored', limit: 9 })).total, 0)
    t.same(await control.rows('SELECT e.username FROM event_presence AS e FINAL'), [{ username: 'Ann' }])
    await projector.stop()
  })

  await t.test('replace the rows of later events about the same fact', async (t) => {
    await emptyTables(control)
    const log = new MemoryLog()
    const plain = new MemoryLog()
    const both = (topic: string, ...messages: readonly [LogMessage, 'newer' | 'readable'][]) => {
      log.append(
        topic,
        messages.map(([each, kind]) => (kind === 'newer' ? newer(each) : each))
      )
      plain.append(
        topic,
        messages.map(([each]) => each)
      )
    }
    const entry = (timeMs: number): LogMessage => {
      const board = { titleId: '4d530064', leaderboardId: 7, playerName: 'Ann', changeType: 'updated' } as const
      const event: LeaderboardEntryChanged = { ...board, rating: String(timeMs), timeMs, changedAt: T0 }
      return message(leaderboardEntryTopic, event)
    }
    // The same state twice, and another of the same instant between the two.
    both('leaderboard-entry', [entry(60_000), 'newer'], [entry(59_000), 'readable'], [entry(60_000), 'readable'])
    const unlocked = (username: string, points: number): LogMessage => {
      const event: AchievementUnlocked = { username, achievementId: 1, points, unlockedAt: T0 }
      return message(achievementUnlockTopic, event)
    }
    both('achievement-unlock', [unlocked('Ann', 5), 'newer'], [unlocked('ANN', 10), 'readable'])
    await runToHead(engine, log)
    const scores = () => control.rows('SELECT s.username, s.score FROM achievement_score AS s FINAL')
    t.same(await scores(), [{ username: 'ANN', score: 10 }])
    await runToHead(engine, log, {
      meanwhile: async (...life) => {
        await retryAll(...life)
      }
    })
    t.same(await scores(), [{ username: 'Ann', score: 5 }])
    t.same(
      await control.rows('SELECT t.time_ms FROM timed_entry AS t FINAL WHERE t.is_live'),
      [{ time_ms: 59_000 }],
      'one time of an entry is live'
    )
    compare(await readRows(control), foldOf(plain), true)
  })

  await t.test(
    'stay when another generation of their event table is read, which was loaded without them',
    async (t) => {
      for (const when of ['before the swap', 'during the swap', 'before the rollback', 'during the rollback']) {
        await emptyTables(control)
        const log = new MemoryLog()
        log.append('title-count', [newer(counted(9)), counted(1)])
        const begin = { during: async (): Promise<unknown> => undefined }
        const rebuild = around(engine.rebuild, async (work, what) => {
          // If the retry does not wait for the swap, it has stored everything by then.
          if (what === 'generation_pointer') {
            await Promise.race([begin.during(), pause(500)])
            begin.during = async () => undefined
          }
          return await work()
        })
        const projector = projectorOn({ ...engine, rebuild }, log)
        let retrying: Promise<unknown> = Promise.resolve()
        const retry = () => {
          const inStep: RetryNeeds['inStep'] = (step) => projector.inStep(step)
          retrying = retryDeadLetters(retryNeeds(control, { topics: newerTopics, inStep }), 'title-count', 'all')
          return retrying
        }
        const swapped = async (how: 'swap' | 'rollback') => {
          if (when === `before the ${how}`) await retry()
          if (how === 'swap')
            t.ok((await projector.rebuilds.verify('title-count')).isEqual, 'what is retried is in both')
          if (when === `during the ${how}`) begin.during = retry
          await projector.rebuilds[how]('title-count')
          await retrying
        }
        projector.start()
        try {
          await projector.caughtUp()
          await projector.rebuilds.start('title-count', { isFromLog: true })
          await until(async () => (await projector.rebuilds.list())[0]?.state === 'filled')
          await swapped('swap')
          if (when.endsWith('rollback')) await swapped('rollback')
          const batches = (await storeOver(control).do(readPending, 'nobody', ['title-count'])).map(({ id }) => id)
          t.equal(batches.length, 1, when)
          await until(async () => (await projectionsWithout(storeOver(control), 'title-count', batches)).length === 0)
          t.same(await control.rows('SELECT e.online FROM event_title_count AS e FINAL ORDER BY e.online'), [
            { online: 1 },
            { online: 9 }
          ])
          t.same(await control.rows('SELECT c.online FROM title_count AS c FINAL ORDER BY c.online'), [
            { online: 1 },
            { online: 9 }
          ])
        } finally {
          await projector.stop()
        }
      }
    }
  )

  await t.test('are consumed again by another process, which may have stored older rows meanwhile', async (t) => {
    await emptyTables(control)
    const log = new MemoryLog()
    log.append('title-count', [newer(counted(9)), counted(1)])
    await runToHead(engine, log, {
      meanwhile: async (tables, projector) => {
        await projector.caughtUp()
        await retryAll(tables, projector)
      }
    })
    const most = () => control.rows('SELECT h.max AS most FROM title_count_hour AS h FINAL')
    t.same(await most(), [{ most: 9 }])
    const columns = 'h.title_id, h.hour, h.min, 1, h.max_at, 1, 1, h.position'
    await control.execute(`INSERT INTO title_count_hour__0 SELECT ${columns} FROM title_count_hour AS h FINAL`)
    t.same(await most(), [{ most: 1 }])
    const [batch] = await storeOver(control).do(readPending, 'somebody', ['title-count'])
    t.match(await readLateRange(storeOver(control), batch?.id ?? ''), [
      { epoch: 0, partition: 0, first: 0, next: 1, offsets: [0] }
    ])
    const other = projectorOn(engine, log)
    other.start()
    await until(async () => (await most())[0]?.most === 9)
    await other.stop()
    await storeOver(control).do(storeConsumed, [{ id: batch?.id ?? '', consumer: 'somebody' }])
    t.same(await storeOver(control).do(readPending, 'somebody', ['title-count']), [])
  })

  await t.test('of an import that is undone meanwhile leave no row', async (t) => {
    await emptyTables(control)
    const log = new MemoryLog()
    log.append('title-count', [newer(imported(titleCountTopic, { titleId: '4d530064', observedAt: T0, online: 5 }))])
    const importId = 'f'.repeat(32)
    const fills = lockedPasses()
    const stored = latch()
    let isRetrying = false
    const rebuild = around(engine.rebuild, async (work, what) => {
      const result = await work()
      if (what.startsWith('DELETE FROM event_title_count__0')) stored.open()
      return result
    })
    const asked: PassLock = {
      shared: (pass) => fills.shared(pass),
      exclusive: (work) => {
        if (isRetrying) stored.open()
        return fills.exclusive(work)
      }
    }
    const undoing = projectorOn({ ...engine, rebuild }, log, {
      isShared: true,
      passLock: lockedPasses(),
      rebuildLock: asked
    })
    const reading = latch()
    const held = around(control, async (work, what) => {
      if (what === 'event_title_count__0') {
        reading.open()
        await stored.opened
      }
      return await work()
    })
    const inStep: RetryNeeds['inStep'] = (step) =>
      fills.shared(() => {
        isRetrying = true
        return step()
      })
    undoing.start()
    await undoing.caughtUp()
    const retried = retryDeadLetters(retryNeeds(held, { topics: newerTopics, inStep }), 'title-count', 'all')
    await reading.opened
    const retraction = { importId, topic: 'title-count', observedAt: T0 }
    log.append('import-retraction', [message(importRetractionTopic, retraction)])
    await undoing.caughtUp()
    await undoing.importUndos.undo(importId, 'title-count', () => {})
    await retried
    undoing.wakeForLate()
    await undoing.caughtUp()
    t.same(await control.rows('SELECT count() AS rows FROM event_title_count'), [{ rows: '0' }])
    t.same(await control.rows('SELECT count() AS rows FROM title_count'), [{ rows: '0' }])
    await undoing.stop()
  })

  await t.test(
    'of an undone import are passed over while a swap writes a generation that lacks the undo',
    async (t) => {
      await emptyTables(control)
      const log = new MemoryLog()
      log.append('title-count', [newer(imported(titleCountTopic, { titleId: '4d530064', observedAt: T0, online: 5 }))])
      const retraction = { importId: 'f'.repeat(32), topic: 'title-count', observedAt: T0 }
      log.append('import-retraction', [message(importRetractionTopic, retraction)])
      await runToHead(engine, log)
      await control.execute('CREATE TABLE import_retraction__9 AS import_retraction__0')
      const moving = { owner: 'project:import-retraction', tables: ['import_retraction'], readsChanged: 0 }
      await storeOver(control).do(storePointers, 1, [{ ...moving, writes: 9, reads: 0 }])
      const { passedOver } = await retryDeadLetters(retryNeeds(control, { topics: newerTopics }), 'title-count', 'all')
      t.equal(passedOver, 1)
      t.same(await control.rows('SELECT count() AS rows FROM event_title_count'), [{ rows: '0' }])
    }
  )

  for (const isFromLog of [false, true]) {
    const how = isFromLog ? 'from the log, where they are still unreadable' : 'meanwhile'
    await t.test(`are in tables that are rebuilt ${how}, and in those that a swap replaced`, async (t) => {
      await emptyTables(control)
      const log = new MemoryLog()
      const plain = new MemoryLog()
      for (const [n, each] of [counted(5), counted(1), counted(7), counted(2), counted(9)].entries()) {
        log.append('title-count', [n % 2 === 0 ? newer(each) : each])
        plain.append('title-count', [each])
      }
      const projector = projectorOn(engine, log)
      const retryAt = async (offset: number) => {
        const needs = retryNeeds(control, { topics: newerTopics })
        const { batches } = await retryDeadLetters(needs, 'title-count', [
          { topic: 'title-count', epoch: 0, partition: 0, offset }
        ])
        t.equal(batches.length, 1)
        projector.wakeForLate()
      }
      projector.start()
      await projector.caughtUp()
      await retryAt(0)
      const most = () => control.rows('SELECT h.max AS most FROM title_count_hour AS h FINAL')
      const untilMost = async (wanted: number) => {
        await until(async () => (await most())[0]?.most === wanted)
      }
      await untilMost(5)
      await projector.rebuilds.start('title-count', { isFromLog })
      await until(async () => (await projector.rebuilds.list())[0]?.state === 'filled')
      await retryAt(2)
      await untilMost(7)
      t.equal((await projector.rebuilds.verify('title-count')).isEqual, true)
      await projector.rebuilds.swap('title-count')
      t.same(await most(), [{ most: 7 }])
      await retryAt(4)
      await untilMost(9)
      await projector.caughtUp()
      await projector.rebuilds.rollback('title-count')
      await projector.stop()
      compare(await readRows(control), foldOf(plain), true)
    })
  }
})

/** Returns a number that depends only on the event of a message. */
function sum({ value }: LogMessage): number {
  return [...value].reduce((all, character) => all + character.charCodeAt(0), 0)
}
