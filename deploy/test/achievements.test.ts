import { until } from '@gamenet/engines/testing'
import { createIngest, evaluateOnce } from '@gamenet/ingest'
import { lateReader, storeLateBatch, storeOver } from '@gamenet/projector'
import {
  achievements,
  achievementUnlockTopic,
  generationName,
  type ImportAdvanced,
  importRunTopic,
  instantOf,
  type LeaderboardEntryChanged,
  leaderboardEntryTopic,
  nameKey,
  presenceTopic
} from '@gamenet/schemas'
import fc from 'fast-check'
import { Registry } from 'prom-client'
import { test } from 'tap'
import { reachedNow } from './service/achievement-model.js'
import {
  busy,
  compareUnlocks,
  DAY_MS,
  ENDINGS,
  evaluateAll,
  type Happening,
  NOW_MS,
  openWorld,
  publishEvents,
  QUIET,
  START_MS,
  sorted,
  step,
  storedTables,
  USERS,
  unlocked
} from './service/achievement-world.js'

test('in any order of events, with deaths and repeated work, unlocks equal a plain model, each once', async (t) => {
  const world = await openWorld(t)
  const { live, expected } = compareUnlocks(t, world)
  await live([busy])
  const steps = fc.sample(step, { seed: 1, numRuns: ENDINGS.length })
  await live(steps.map((each, n) => ({ ...each, ending: ENDINGS[n] ?? 'seen' })))
  const ids = new Set([...expected.keys()].map((key) => Number(key.split('/')[1])))
  const missed = achievements.filter(({ id }) => !ids.has(id)).map(({ key }) => key)
  t.comment(`${expected.size} unlocks; without an unlock: ${missed.join(', ')}`)
  t.ok(missed.length <= 12, 'the worlds reach most of what there is')

  await t.test('tables that are dropped and loaded again from the log are equal, and unlock nothing', async (t) => {
    await evaluateAll(world, { happenings: [], ending: 'seen', calls: 0 })
    const before = await storedTables(world)
    t.ok(before.has('event_presence') && before.has('achievement_unlock') && before.has('rank_reached'))
    await world.projector.stop()
    const stored = [...before.keys()].map((table) => generationName(table, 0))
    for (const name of [...stored, 'checkpoint', 'data_change', 'dead_letter']) {
      await world.tables.control.execute(`TRUNCATE TABLE ${name}`)
    }
    const early = { ...world.needs('early'), patienceMs: 0 }
    t.same(await evaluateOnce(early), { outcome: 'waiting' }, 'incomplete tables are not queried')
    world.projector = world.startProjector()
    await world.projector.caughtUp()
    const differing = async () => {
      const after = await storedTables(world)
      return [...before.keys()].filter((table) => after.get(table) !== before.get(table))
    }
    t.same(await differing(), [])
    t.same(await evaluateOnce(world.needs('later')), { outcome: 'idle' })
    await world.writes.query('DELETE FROM achievement_evaluation')
    t.match(
      await evaluateOnce(world.needs('everybody')),
      { outcome: 'done', unlocks: 0 },
      'nor when all are asked again'
    )
    t.same(await differing(), [])
  })
})

/**
 * Runs follow one another in one world: users, boards and titles of each run have its number, and the clock does not go
 * back.
 */
test('queries of the evaluation: their users, times and process', async (t) => {
  const world = await openWorld(t)
  await t.test('users with late events only are queried once', async (t) => {
    const { control } = world.tables
    t.match(await evaluateOnce(world.needs('one')), { outcome: 'done', users: 0 }, 'the day')
    await publishEvents(world, 1, [{ kind: 'stay', user: 0, day: 0, days: 1, hours: 1, game: 0 }], () => 1)
    await world.projector.caughtUp()
    const positions = (await control.rows('SELECT e.epoch, e.partition, e.offset FROM event_presence AS e FINAL')).map(
      ({ epoch, partition, offset }) => ({ epoch: Number(epoch), partition: Number(partition), offset: Number(offset) })
    )
    // As if all events had entered the tables after the evaluation.
    for (const { epoch, partition } of positions) {
      await world.writes.query(
        `INSERT INTO achievement_evaluation VALUES ('presence', $1, $2, $3) ON CONFLICT DO NOTHING`,
        [epoch, partition, Math.max(...positions.map(({ offset }) => offset)) + 1]
      )
    }
    const late = lateReader(storeOver(control), 'achievements')
    const needs = { ...world.needs('one'), late }
    t.same(await evaluateOnce(needs), { outcome: 'idle' })
    await storeOver(control).do(storeLateBatch, 'batch', 'presence', positions)
    world.projector.wakeForLate()
    await until(async () => (await late.pending(['presence'])).length > 0)
    t.match(await evaluateOnce(needs), { outcome: 'done', users: 1 })
    await world.projector.caughtUp()
    t.equal((await unlocked(world)).size, 3)
    t.same(await evaluateOnce(needs), { outcome: 'idle' })
  })
  await t.test(
    'nobody is asked about half of an imported history, nor about tables that lack what the log holds',
    async (t) => {
      const evaluateAt = (nowMs: number) => evaluateOnce(world.needs('one', undefined, nowMs))
      const publishRun = async (observedMs: number, finished: boolean) => {
        const run: ImportAdvanced = {
          importId: '0'.repeat(32),
          observedAt: instantOf(observedMs),
          topic: presenceTopic.name,
          file: 'history.csv',
          rowsRead: 0,
          published: 0,
          rejected: 0,
          finished
        }
        await world.publishEvents(importRunTopic, [run])
      }
      const stay = (day: number, days: number) => ({ kind: 'stay' as const, user: 0, day, days, hours: 1, game: 0 })
      await publishEvents(world, 2, [stay(900, 1)], () => 1)
      await publishRun(NOW_MS - 200_000, false)
      await publishEvents(world, 2, [stay(0, 300)], () => 1)
      await world.projector.caughtUp()
      t.same(await evaluateAt(NOW_MS - 195_000), { outcome: 'importing' })
      await publishEvents(world, 2, [stay(300, 300)], () => 1)
      await publishRun(NOW_MS - 100_000, true)
      await world.projector.caughtUp()
      t.same(await evaluateAt(NOW_MS - 95_000), { outcome: 'importing' }, 'the next file may follow')
      const needs = world.needs('one')
      const extents = async (topic: string) =>
        (await needs.log.extents(topic)).map((at) => ({ ...at, next: at.next + 1 }))
      const behind = { ...needs, log: { ...needs.log, extents }, patienceMs: 0 }
      t.same(await evaluateOnce(behind), { outcome: 'waiting' }, 'the tables lack the end of it')
      t.match(await evaluateAt(NOW_MS), { outcome: 'done', users: 1 })
      await world.projector.caughtUp()
      const idOf = (key: string) => achievements.find((each) => each.key === key)?.id
      const found = await unlocked(world)
      t.ok(found.has(`${nameKey('Ann2')}/${idOf('resident')}`))
      t.notOk(found.has(`${nameKey('Ann2')}/${idOf('comeback')}`), 'the pause was never there')
    }
  )
  await t.test('only the best entry of an instant held the record', async (t) => {
    const seen = (user: number) => {
      return { kind: 'sighting' as const, user, day: 0, hour: 1, game: 0, isOnline: true, tag: true, periodS: 60 }
    }
    await publishEvents(world, 3, [seen(0), seen(1)], () => 1)
    const entry = (user: number, timeMs: number): LeaderboardEntryChanged => {
      const at = { titleId: '4d530064', leaderboardId: 1, playerName: `Tag ${user} of 3` }
      return { ...at, changeType: 'new', timeMs, changedAt: instantOf(START_MS) }
    }
    await world.publishEvents(leaderboardEntryTopic, [entry(0, 60_002), entry(1, 60_001)])
    await world.projector.caughtUp()
    await evaluateAll(world, { happenings: [], ending: 'seen', calls: 0 })
    const found = await unlocked(world)
    const id = achievements.find(({ key }) => key === 'record-holder')?.id
    t.same([found.has(`ann3/${id}`), found.has(`bob3/${id}`)], [false, true])
  })
  await t.test('users with too many rows for one query are queried in parts', async (t) => {
    const stays = USERS.map((_, user) => ({ kind: 'stay' as const, user, day: 0, days: 1, hours: 1, game: 0 }))
    await publishEvents(world, 4, stays, () => 1)
    await world.projector.caughtUp()
    const { tables, ...needs } = world.needs('one')
    const rows: typeof tables.rows = async (sql, parameters, read) => {
      const users = parameters?.users
      if (sql.includes('AS reached') && Array.isArray(users) && users.length > 2) throw new Error('Out of memory.')
      return await tables.rows(sql, parameters, read)
    }
    t.match(await evaluateOnce({ ...needs, tables: { rows } }), { outcome: 'done', users: USERS.length })
    await world.projector.caughtUp()
    t.strictSame(sorted(await unlocked(world)), sorted(await reachedNow(world.tables, NOW_MS)))
  })
  await t.test('a record held for a month is found without further events', async (t) => {
    const happenings: Happening[] = [
      { kind: 'sighting', user: 0, day: 990, hour: 1, game: 0, isOnline: true, tag: true, periodS: 60 },
      { kind: 'entry', board: 0, tag: 0, occurrence: 1, timeMs: 60_000, isGone: false, day: 991 }
    ]
    await publishEvents(world, 5, happenings, () => 1)
    await world.projector.caughtUp()
    const kept = achievements.find(({ key }) => key === 'one-for-the-books')?.id
    for (const [day, isReached] of [
      [992, false],
      [1020, false],
      [1022, true]
    ] as const) {
      await evaluateOnce(world.needs('later', undefined, START_MS + day * DAY_MS))
      await world.projector.caughtUp()
      const at = (await unlocked(world)).get(`${nameKey('Ann5')}/${kept}`)
      t.equal(at, isReached ? START_MS + 1021 * DAY_MS + 60_000 : undefined)
    }
  })
  await t.test(
    'a running ingest evaluates when the history is complete, reports metrics, and can be stopped',
    async (t) => {
      const { holder: _holder, now: _now, log, ...needs } = world.needs('unused')
      let asked = 0
      let askedAtUnlock = 0
      const append: typeof log.append = async (topic, messages) => {
        askedAtUnlock ||= topic === achievementUnlockTopic.name ? asked : 0
        await log.append(topic, messages)
      }
      const registry = new Registry()
      const ingest = createIngest({
        ...needs,
        log: Object.create(log, { append: { value: append } }),
        writes: async () => world.writes,
        upstreamUrl: 'http://127.0.0.1:1',
        periods: { network: 0, games: 0, matches: 0, boards: 0, players: 0 },
        achievements: {
          pollMs: 10,
          isHistoryMissing: () => {
            asked += 1
            return asked < 4
          }
        },
        requestsPerSecond: 1,
        userAgent: 'gamenet-stats/test',
        registry,
        logger: QUIET
      })
      t.teardown(() => ingest.stop())
      ingest.start()
      await publishEvents(world, 6, [{ kind: 'stay', user: 0, day: 0, days: 1, hours: 1, game: 0 }], () => 1)
      const expected = ['first-light', 'warmed-up', 'halo-hour'].map((key) =>
        achievements.find((each) => each.key === key)
      )
      const unlockedByAnn = async () =>
        [...(await unlocked(world)).keys()].filter((key) => key.startsWith(`${nameKey('Ann6')}/`))
      await until(
        async () => (await unlockedByAnn()).length === expected.length,
        () => world.projector.caughtUp()
      )
      t.same(
        new Set(await unlockedByAnn()),
        new Set(expected.map((each) => `${nameKey('Ann6')}/${each?.id}`)),
        'each once'
      )
      t.ok(askedAtUnlock >= 4, 'nothing is unlocked while the history is loaded')
      await ingest.stop()
      t.match(await registry.metrics(), /gamenet_achievements_unlocked_total 3\n/)
      t.match(await registry.metrics(), /gamenet_achievement_evaluation_failing 0\n/)
      t.match(await registry.metrics(), /gamenet_achievements_evaluated_timestamp_seconds [1-9]/)
    }
  )
})
