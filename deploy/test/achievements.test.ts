import { join } from 'node:path'
import { type ClickHouse, migratePostgres, openChdb, openPglite, type Postgres } from '@gamenet/engines'
import { openEmbeddedLog } from '@gamenet/engines/log'
import { createIngest, createPeople, type EvaluationNeeds, evaluateOnce, publish, sealKeys } from '@gamenet/ingest'
import {
  createProjector,
  foldBeside,
  lateReader,
  migrate,
  type Projector,
  projections,
  readBeside,
  storeLateBatch
} from '@gamenet/projector'
import {
  achievements,
  type ImportAdvanced,
  importRunTopic,
  instantOf,
  type LeaderboardEntryChanged,
  leaderboardEntryTopic,
  nameKey,
  type PresenceSeen,
  type ProfileChanged,
  type ProfileRated,
  presenceTopic,
  profileTopic,
  ratingTopic,
  type Topic,
  topics
} from '@gamenet/schemas'
import fc from 'fast-check'
import { Registry } from 'prom-client'
import { type Test, test } from 'tap'
import { reachedNow } from './service/achievement-model.js'
import { type Life, lifeUntil } from './service/scraped-world.js'

const RUNS = 4
const AT_ONCE = { firstMs: 1, mostMs: 5 }
const QUIET = { info: () => {}, warn: () => {}, error: () => {} }
const DAY_MS = 86_400_000
const START_MS = Date.UTC(2023, 11, 28)
const NOW_MS = Date.UTC(2026, 8, 1)
const TITLES = ['4d53004b', '4d530064', '4d530017', '4c41001a', '4d530021', '4d530036']
const GAMES = ['Halo 2', 'Project Gotham Racing 2', 'MechAssault', 'Ride', 'HALO ２']
const MORE_GAMES = ['Star Wars: Battlefront II', 'Counter-Strike', 'Crimson Skies: High Road to Revenge']
const USERS = ['Ann', 'bob', 'Cleo', 'dan', 'Eve', 'fay', 'Gus', 'hal', 'Ina', 'jo', 'Kim', 'lou']

/** Something that an engine is told of. Users and boards are those of a world of their own. */
type Happening =
  | {
      kind: 'sighting'
      user: number
      day: number
      hour: number
      game: number
      isOnline: boolean
      tag: boolean
      periodS: number
    }
  | { kind: 'stay'; user: number; day: number; days: number; hours: number; game: number }
  | { kind: 'entry'; board: number; tag: number; occurrence: number; timeMs: number; isGone: boolean; day: number }
  | { kind: 'fill'; board: number; entries: number; isGone: boolean; day: number }
  | { kind: 'rating'; user: number; rater: number; stars: number; comment: string | null; day: number }
  | { kind: 'profile'; user: number; tag: number; isVerified: boolean; bio: string; chat: boolean; day: number }
type Step = {
  happenings: Happening[]
  ending: 'seen' | 'dies' | 'dies done' | 'two' | 'leases end' | 'unseen'
  calls: number
}

const user = fc.oneof({ weight: 3, arbitrary: fc.nat(2) }, { weight: 1, arbitrary: fc.nat(USERS.length - 1) })
const day = fc.oneof(fc.nat(12), fc.constantFrom(30, 60, 366, 371, 372, 378, 745, 900))
const happening: fc.Arbitrary<Happening> = fc.oneof(
  fc.record({
    kind: fc.constant('sighting' as const),
    user,
    day,
    hour: fc.nat(23),
    game: fc.nat(GAMES.length),
    isOnline: fc.constantFrom(true, true, true, true, false),
    tag: fc.boolean(),
    periodS: fc.constantFrom(60, 7200, 86_400)
  }),
  fc.record({
    kind: fc.constant('stay' as const),
    user,
    day,
    days: fc.constantFrom(1, 2, 3, 8, 31),
    hours: fc.constantFrom(1, 3, 20),
    game: fc.nat(GAMES.length - 1)
  }),
  fc.record({
    kind: fc.constant('entry' as const),
    board: fc.nat(11),
    tag: fc.constantFrom(0, 0, 0, 1, 2, 7),
    occurrence: fc.constantFrom(1, 1, 2),
    timeMs: fc.integer({ min: 60_000, max: 60_004 }),
    isGone: fc.constantFrom(false, false, false, true),
    day
  }),
  fc.record({
    kind: fc.constant('fill' as const),
    board: fc.nat(11),
    entries: fc.constantFrom(9, 10, 100),
    isGone: fc.constantFrom(false, false, true),
    day
  }),
  fc.record({
    kind: fc.constant('rating' as const),
    user: fc.nat(1),
    rater: fc.nat(USERS.length - 1),
    stars: fc.constantFrom(1, 4, 5, 5, 5),
    comment: fc.constantFrom(null, 'well played'),
    day
  }),
  fc.record({
    kind: fc.constant('profile' as const),
    user,
    tag: user,
    isVerified: fc.boolean(),
    bio: fc.constantFrom('', ' ', '\n\u3000', 'hello'),
    chat: fc.boolean(),
    day
  })
)
const step: fc.Arbitrary<Step> = fc.record({
  happenings: fc.array(happening, { minLength: 1, maxLength: 60, size: 'max' }),
  ending: fc.constantFrom('seen', 'dies', 'dies done', 'two', 'leases end', 'unseen'),
  calls: fc.nat(25)
})

/** A user who does everything that worlds of chance hardly ever come to. */
const busy: Step = {
  happenings: [
    { kind: 'stay', user: 0, day: 0, days: 370, hours: 1, game: 0 },
    { kind: 'stay', user: 0, day: 400, days: 2, hours: 20, game: 6 },
    { kind: 'stay', user: 0, day: 403, days: 2, hours: 20, game: 6 },
    ...Array.from({ length: 24 }, (_, n) => {
      return { kind: 'stay' as const, user: 0, day: 410 + Math.floor(n / 3), days: 1, hours: 2, game: 5 + n }
    }),
    ...Array.from({ length: 55 }, (_, board) => {
      return { kind: 'entry' as const, board, tag: 0, occurrence: 1, timeMs: 60_000, isGone: false, day: 1 }
    }),
    { kind: 'sighting', user: 0, day: 2, hour: 5, game: 1, isOnline: true, tag: true, periodS: 60 },
    ...USERS.flatMap((_, user) => [
      { kind: 'rating' as const, user, rater: 0, stars: 5, comment: null, day: 3 },
      { kind: 'rating' as const, user: 0, rater: user, stars: 5, comment: null, day: 3 + user }
    ])
  ],
  ending: 'two',
  calls: 0
}

type World = {
  readonly tables: ClickHouse
  readonly writes: Postgres
  projector: Projector
  startProjector(): Projector
  /** What an evaluating process needs. */
  needs(holder: string, life?: Life, nowMs?: number): EvaluationNeeds
  tell<Event>(topic: Topic<Event>, events: readonly Event[]): Promise<void>
}

async function openWorld(t: Test): Promise<World> {
  const dir = t.testdir({})
  const tables = await openChdb({ path: join(dir, 'tables') })
  t.teardown(() => tables.close())
  await migrate(tables.control)
  const log = openEmbeddedLog({ path: join(dir, 'log'), epoch: 1 })
  t.teardown(() => log.close())
  const writes = await openPglite({ dir: join(dir, 'writes') })
  t.teardown(() => writes.close())
  await migratePostgres(writes)
  const people = createPeople({ writes: async () => writes, registry: new Registry() })
  const startProjector = () => {
    const projector = createProjector({
      tables: { loader: tables.loader, projections: tables.projections, rebuild: tables.rebuild },
      startReading: readBeside(log, topics, AT_ONCE),
      sealKeys: (people) => sealKeys(writes, people),
      folding: foldBeside(),
      registry: new Registry(),
      logger: QUIET,
      onChange: () => {},
      backoff: AT_ONCE
    })
    projector.start()
    return projector
  }
  const world: World = {
    tables,
    writes,
    projector: startProjector(),
    startProjector,
    needs: (holder, life = { call: (_, work) => work() }, nowMs = NOW_MS) => ({
      log: {
        append: (topic, messages) => life.call('append', () => log.append(topic, messages)),
        extents: (topic) => life.call('extents', () => log.extents(topic))
      },
      tables: { rows: (sql, parameters, read) => life.call('rows', () => tables.readers.rows(sql, parameters, read)) },
      writes: { query: (sql, values) => life.call('query', () => writes.query(sql, values)) },
      people,
      holder,
      now: () => nowMs
    }),
    tell: (topic, events) => publish(log, topic, events, { source: '/test' }, people)
  }
  t.teardown(() => world.projector.stop())
  return world
}

/** What happened, as events of the world with this number; of each topic in their order. */
async function tell({ tell }: World, number: number, happenings: readonly Happening[], nextRevision: () => number) {
  const sightings: PresenceSeen[] = []
  const entries: LeaderboardEntryChanged[] = []
  const ratings: ProfileRated[] = []
  const profiles: ProfileChanged[] = []
  const name = (user: number) => `${USERS[user]}${number}`
  const tag = (user: number) => `Tag ${user} of ${number}`
  const at = (day: number, ms = 0) => instantOf(START_MS + day * DAY_MS + ms)
  const board = (each: number) => ({ titleId: TITLES[each % TITLES.length] ?? '', leaderboardId: number * 100 + each })
  for (const each of happenings) {
    if (each.kind === 'sighting') {
      const game = GAMES[each.game]
      sightings.push({
        username: name(each.user),
        ...(each.tag ? { gamertag: tag(each.user) } : {}),
        state: each.isOnline ? 'online' : 'offline',
        ...(game === undefined ? {} : { game }),
        periodSeconds: each.periodS,
        observedAt: at(each.day, each.hour * 3_600_000)
      })
    } else if (each.kind === 'stay') {
      for (let n = 0; n < each.days * (each.hours + 1); n += 1) {
        const hour = 3 * (each.game % 7) + (n % (each.hours + 1))
        sightings.push({
          username: name(each.user),
          state: 'online',
          game: gameOf(each.game),
          periodSeconds: 1200,
          observedAt: at(each.day + Math.floor(n / (each.hours + 1)), hour * 3_600_000)
        })
      }
    } else if (each.kind === 'entry') {
      const { timeMs, occurrence } = each
      const state = each.isGone ? { changeType: 'removed' as const } : { changeType: 'updated' as const, timeMs }
      const who = { playerName: tag(each.tag), ...(occurrence === 1 ? {} : { occurrence }) }
      entries.push({ ...board(each.board), ...who, ...state, changedAt: at(each.day, timeMs) })
    } else if (each.kind === 'fill') {
      for (let n = 0; n < each.entries; n += 1) {
        const timeMs = 60_002 + n * 7
        const state = each.isGone ? { changeType: 'removed' as const } : { changeType: 'new' as const, timeMs }
        entries.push({ ...board(each.board), playerName: `Filler ${n}`, ...state, changedAt: at(each.day) })
      }
    } else if (each.kind === 'rating') {
      if (each.user === each.rater) continue
      const { stars, comment } = each
      const rated = { username: name(each.user), raterUsername: name(each.rater), stars, comment }
      ratings.push({ ...rated, revision: nextRevision(), ratedAt: at(each.day) })
    } else {
      profiles.push({
        username: name(each.user),
        avatar_url: '',
        avatar_hue: null,
        chat_profile_url: each.chat ? 'https://chat.example.org/users/12345678901234567' : '',
        display_name_override: null,
        linked_gamertag: tag(each.tag),
        console_verified: each.isVerified,
        bio: each.bio,
        social_links: [],
        revision: nextRevision(),
        changedAt: at(each.day)
      })
    }
  }
  await tell(presenceTopic, sightings)
  await tell(leaderboardEntryTopic, entries)
  await tell(ratingTopic, ratings)
  await tell(profileTopic, profiles)
}

function gameOf(number: number): string {
  return [...GAMES, ...MORE_GAMES][number] ?? `Game ${number}`
}

/** `<user_key>/<achievement id>` → instant, as the table has it. */
async function unlocked({ tables }: World): Promise<Map<string, number>> {
  const rows = await tables.readers.rows(
    `SELECT u.user_key, u.achievement_id AS id, toUnixTimestamp64Milli(u.ts) AS at FROM achievement_unlock AS u FINAL`,
    {}
  )
  return new Map(rows.map((row) => [`${row.user_key}/${row.id}`, Number(row.at)]))
}

/** What the tables of events and those that are read hold, as text by table; not which of two writings of a row is the newer. */
async function storedTables({ tables }: World): Promise<Map<string, string>> {
  const columns = await tables.readers.rows(
    `SELECT c.table AS name, groupArray(c.name) AS columns
     FROM system.columns AS c JOIN system.tables AS t ON t.database = c.database AND t.name = c.table
     WHERE c.database = currentDatabase() AND t.engine LIKE '%MergeTree' AND c.default_kind NOT IN ('ALIAS', 'MATERIALIZED')
       AND c.name != extract(t.engine_full, 'ReplacingMergeTree\\\\((\\\\w+)\\\\)') AND (startsWith(c.table, 'event_') OR has({readTables: Array(String)}, c.table))
     GROUP BY c.table ORDER BY c.table`,
    { readTables: projections.flatMap(({ into }) => (typeof into === 'string' ? [into] : Object.keys(into))) }
  )
  const stored = new Map<string, string>()
  for (const row of columns) {
    const list = (row.columns as string[]).map((column) => `s.${column}`).join(', ')
    // A day from which a late sighting took all play time has an empty row.
    const where = row.name === 'presence_day' ? 'WHERE s.sightings > 0 OR notEmpty(s.seconds)' : ''
    const rows = await tables.readers.rows(`SELECT ${list} FROM ${row.name} AS s FINAL ${where} ORDER BY ALL`, {})
    stored.set(String(row.name), JSON.stringify(rows))
  }
  return stored
}

const endLeases = (writes: Postgres) => writes.query("UPDATE achievement_turn SET lease_until = '-infinity'")

/** Evaluates until nothing is left, with what the step has in store for those who do it. */
async function evaluateAll(world: World, { ending, calls }: Step): Promise<void> {
  if (ending === 'dies' || ending === 'dies done') {
    await evaluateOnce(world.needs('dying', lifeUntil(calls, ending === 'dies done'))).catch(() => undefined)
    await endLeases(world.writes)
  }
  if (ending === 'two' || ending === 'leases end') {
    const call: Life['call'] = async (_, work) => {
      if (ending === 'leases end') await endLeases(world.writes)
      return await work()
    }
    await Promise.all(['one', 'another'].map((holder) => evaluateOnce(world.needs(holder, { call }))))
    await endLeases(world.writes)
  }
  for (;;) {
    const { outcome } = await evaluateOnce(world.needs('whole'))
    await world.projector.settled()
    if (outcome === 'idle') return
  }
}

test('whatever happens in whatever order, and whoever dies or works twice, unlocks are those of a plain model, once for good', async (t) => {
  const world = await openWorld(t)
  let number = 0
  let revision = 0
  const expected = new Map<string, number>()
  const property = fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 5, size: 'max' }), async (steps) => {
    number += 1
    for (const each of steps) {
      await tell(world, number, each.happenings, () => {
        revision += 1
        return revision
      })
      await world.projector.settled()
      if (each.ending === 'unseen') continue
      await evaluateAll(world, each)
      for (const [key, at] of await reachedNow(world.tables, NOW_MS)) if (!expected.has(key)) expected.set(key, at)
      t.strictSame(sorted(await unlocked(world)), sorted(expected))
    }
  })
  await fc.assert(property, { numRuns: RUNS, endOnFailure: true, examples: [[[busy]]] })
  const ids = new Set([...expected.keys()].map((key) => Number(key.split('/')[1])))
  const missed = achievements.filter(({ id }) => !ids.has(id)).map(({ key }) => key)
  t.comment(`${expected.size} unlocks; nobody reached ${missed.join(', ')}`)
  t.ok(missed.length <= 12, 'the worlds reach most of what there is')

  await t.test('all tables thrown away and loaded anew from the log are the same, and unlock nothing', async (t) => {
    await evaluateAll(world, { happenings: [], ending: 'seen', calls: 0 })
    const before = await storedTables(world)
    t.ok(before.has('event_presence') && before.has('achievement_unlock') && before.has('rank_reached'))
    await world.projector.stop()
    for (const name of [...before.keys(), 'checkpoint', 'data_change', 'parked_message']) {
      await world.tables.control.execute(`TRUNCATE TABLE ${name}`)
    }
    const early = { ...world.needs('early'), patienceMs: 0 }
    t.same(await evaluateOnce(early), { outcome: 'waiting' }, 'nobody is asked about half made tables')
    world.projector = world.startProjector()
    await world.projector.settled()
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

test('nobody is asked about half of an imported history, nor about tables that lack what the log holds', async (t) => {
  const world = await openWorld(t)
  const evaluateAt = (nowMs: number) => evaluateOnce(world.needs('one', undefined, nowMs))
  const told = async (observedMs: number, finished: boolean) => {
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
    await world.tell(importRunTopic, [run])
  }
  const stay = (day: number, days: number) => ({ kind: 'stay' as const, user: 0, day, days, hours: 1, game: 0 })
  await tell(world, 1, [stay(900, 1)], () => 1)
  await told(NOW_MS, false)
  await tell(world, 1, [stay(0, 300)], () => 1)
  await world.projector.settled()
  t.same(await evaluateAt(NOW_MS + 5000), { outcome: 'importing' })
  await tell(world, 1, [stay(300, 300)], () => 1)
  await told(NOW_MS + 100_000, true)
  await world.projector.settled()
  t.same(await evaluateAt(NOW_MS + 105_000), { outcome: 'importing' }, 'the next file may follow')
  const needs = world.needs('one', undefined, NOW_MS + 200_000)
  const extents = async (topic: string) => (await needs.log.extents(topic)).map((at) => ({ ...at, next: at.next + 1 }))
  const behind = { ...needs, log: { ...needs.log, extents }, patienceMs: 0 }
  t.same(await evaluateOnce(behind), { outcome: 'waiting' }, 'the tables lack the end of it')
  t.match(await evaluateAt(NOW_MS + 200_000), { outcome: 'done', users: 1 })
  await world.projector.settled()
  const idOf = (key: string) => achievements.find((each) => each.key === key)?.id
  const found = await unlocked(world)
  t.ok(found.has(`${nameKey('Ann1')}/${idOf('resident')}`))
  t.notOk(found.has(`${nameKey('Ann1')}/${idOf('comeback')}`), 'the pause was never there')
})

test('of entries of one instant only the best has held the record', async (t) => {
  const world = await openWorld(t)
  const seen = (user: number) => {
    return { kind: 'sighting' as const, user, day: 0, hour: 1, game: 0, isOnline: true, tag: true, periodS: 60 }
  }
  await tell(world, 1, [seen(0), seen(1)], () => 1)
  const entry = (user: number, timeMs: number): LeaderboardEntryChanged => {
    const at = { titleId: '4d530064', leaderboardId: 1, playerName: `Tag ${user} of 1` }
    return { ...at, changeType: 'new', timeMs, changedAt: instantOf(START_MS) }
  }
  await world.tell(leaderboardEntryTopic, [entry(0, 60_002), entry(1, 60_001)])
  await world.projector.settled()
  await evaluateAll(world, { happenings: [], ending: 'seen', calls: 0 })
  const found = await unlocked(world)
  const id = achievements.find(({ key }) => key === 'record-holder')?.id
  t.same([found.has(`ann1/${id}`), found.has(`bob1/${id}`)], [false, true])
})

test('users of whom too much is known to be asked about at once are asked about in parts', async (t) => {
  const world = await openWorld(t)
  const stays = USERS.map((_, user) => ({ kind: 'stay' as const, user, day: 0, days: 1, hours: 1, game: 0 }))
  await tell(world, 1, stays, () => 1)
  await world.projector.settled()
  const { tables, ...needs } = world.needs('one')
  const rows: typeof tables.rows = async (sql, parameters, read) => {
    const users = parameters?.users
    if (sql.includes('AS reached') && Array.isArray(users) && users.length > 2) throw new Error('Out of memory.')
    return await tables.rows(sql, parameters, read)
  }
  t.match(await evaluateOnce({ ...needs, tables: { rows } }), { outcome: 'done', users: USERS.length })
  await world.projector.settled()
  t.strictSame(sorted(await unlocked(world)), sorted(await reachedNow(world.tables, NOW_MS)))
})

test('a record that is held for a month is seen though nothing happens', async (t) => {
  const world = await openWorld(t)
  const happenings: Happening[] = [
    { kind: 'sighting', user: 0, day: 0, hour: 1, game: 0, isOnline: true, tag: true, periodS: 60 },
    { kind: 'entry', board: 0, tag: 0, occurrence: 1, timeMs: 60_000, isGone: false, day: 1 }
  ]
  await tell(world, 1, happenings, () => 1)
  await world.projector.settled()
  const kept = achievements.find(({ key }) => key === 'one-for-the-books')?.id
  for (const [day, isReached] of [
    [2, false],
    [30, false],
    [32, true]
  ] as const) {
    await evaluateOnce(world.needs('later', undefined, START_MS + day * DAY_MS))
    await world.projector.settled()
    const at = (await unlocked(world)).get(`${nameKey('Ann1')}/${kept}`)
    t.equal(at, isReached ? START_MS + 31 * DAY_MS + 60_000 : undefined)
  }
})

test('users whom only events behind the evaluated ones touch are asked about, once', async (t) => {
  const world = await openWorld(t)
  const { control } = world.tables
  t.match(await evaluateOnce(world.needs('one')), { outcome: 'done', users: 0 }, 'the day')
  await tell(world, 1, [{ kind: 'stay', user: 0, day: 0, days: 1, hours: 1, game: 0 }], () => 1)
  await world.projector.settled()
  const positions = (await control.rows('SELECT e.epoch, e.partition, e.offset FROM event_presence AS e FINAL')).map(
    ({ epoch, partition, offset }) => ({ epoch: Number(epoch), partition: Number(partition), offset: Number(offset) })
  )
  // As if all of it had come into the tables behind the evaluation.
  for (const { epoch, partition } of positions) {
    await world.writes.query(
      `INSERT INTO achievement_evaluation VALUES ('presence', $1, $2, $3) ON CONFLICT DO NOTHING`,
      [epoch, partition, Math.max(...positions.map(({ offset }) => offset)) + 1]
    )
  }
  const late = lateReader(control, 'achievements')
  const needs = { ...world.needs('one'), late }
  t.same(await evaluateOnce(needs), { outcome: 'idle' })
  await storeLateBatch(control, 'batch', 'presence', positions)
  world.projector.wakeForLate()
  while ((await late.untaken(['presence'])).length === 0);
  t.match(await evaluateOnce(needs), { outcome: 'done', users: 1 })
  await world.projector.settled()
  t.equal((await unlocked(world)).size, 3)
  t.same(await evaluateOnce(needs), { outcome: 'idle' })
})

test('a running ingest evaluates by itself, tells how much, and ends when it is stopped', async (t) => {
  const world = await openWorld(t)
  const { log, tables, people } = world.needs('unused')
  const registry = new Registry()
  const ingest = createIngest({
    log,
    tables,
    people,
    writes: async () => world.writes,
    upstreamUrl: 'http://127.0.0.1:1',
    periods: { network: 0, games: 0, matches: 0, boards: 0, players: 0 },
    achievements: { pollMs: 10 },
    requestsPerSecond: 1,
    userAgent: 'gamenet-stats/test',
    registry,
    logger: QUIET
  })
  t.teardown(() => ingest.stop())
  ingest.start()
  await tell(world, 1, [{ kind: 'stay', user: 0, day: 0, days: 1, hours: 1, game: 0 }], () => 1)
  const expected = ['first-light', 'warmed-up', 'halo-hour'].map((key) => achievements.find((each) => each.key === key))
  for (;;) {
    await world.projector.settled()
    if ((await unlocked(world)).size === expected.length) break
  }
  t.same(
    new Set((await unlocked(world)).keys()),
    new Set(expected.map((each) => `${nameKey('Ann1')}/${each?.id}`)),
    'each once'
  )
  await ingest.stop()
  t.match(await registry.metrics(), /gamenet_achievements_unlocked_total 3\n/)
  t.match(await registry.metrics(), /gamenet_achievement_evaluation_failing 0\n/)
  t.match(await registry.metrics(), /gamenet_achievements_evaluated_timestamp_seconds [1-9]/)
})

function sorted(map: ReadonlyMap<string, number>): [string, number][] {
  return [...map].sort(([a], [b]) => (a < b ? -1 : 1))
}
