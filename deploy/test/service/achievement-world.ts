import type { ClickHouse, Postgres } from '@gamenet/engines'
import { until } from '@gamenet/engines/testing'
import { createPeople, type EvaluationNeeds, evaluateOnce, publish, sealKeys } from '@gamenet/ingest'
import { createProjector, type Projector, readSide, storeOver } from '@gamenet/projector'
import { foldInline, readInline } from '@gamenet/projector/testing'
import {
  instantOf,
  type LeaderboardEntryChanged,
  leaderboardEntryTopic,
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
import type { Test } from 'tap'
import { reachedNow } from './achievement-model.js'
import { openTestEngines } from './open-engines.js'
import { type Life, lifeUntil } from './scraped-world.js'

const AT_ONCE = { firstMs: 1, maxMs: 5 }
export const QUIET = { info: () => {}, warn: () => {}, error: () => {} }
export const DAY_MS = 86_400_000
export const START_MS = Date.UTC(2023, 11, 28)
export const NOW_MS = Date.UTC(2026, 8, 1)
const TITLES = ['4d53004b', '4d530064', '4d530017', '4c41001a', '4d530021', '4d530036']
const GAMES = ['Halo 2', 'Project Gotham Racing 2', 'MechAssault', 'Ride', 'HALO ２']
const MORE_GAMES = ['Star Wars: Battlefront II', 'Counter-Strike', 'Crimson Skies: High Road to Revenge']
export const USERS = ['Ann', 'bob', 'Cleo', 'dan', 'Eve', 'fay', 'Gus', 'hal', 'Ina', 'jo', 'Kim', 'lou']

/** A fact for an engine. Users and boards are those of a separate world. */
export type Happening =
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
/** The fate of the evaluation after a step. */
export const ENDINGS = ['dies', 'unseen', 'dies done', 'two', 'leases end', 'seen'] as const
type Ending = (typeof ENDINGS)[number]
export type Step = {
  happenings: Happening[]
  ending: Ending
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
export const step: fc.Arbitrary<Step> = fc.record({
  happenings: fc.array(happening, { minLength: 1, maxLength: 60, size: 'max' }),
  ending: fc.constantFrom(...ENDINGS),
  calls: fc.nat(25)
})

/** A user with all events that are rare in random worlds. */
export const busy: Step = {
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

export type World = {
  readonly tables: ClickHouse
  readonly writes: Postgres
  projector: Projector
  startProjector(): Projector
  /** The dependencies of an evaluating process. */
  needs(holder: string, life?: Life, nowMs?: number): EvaluationNeeds
  publishEvents<Event>(topic: Topic<Event>, events: readonly Event[]): Promise<void>
}

export async function openWorld(t: Test): Promise<World> {
  const { tables, log, writes } = await openTestEngines(t)
  const people = createPeople({ writes: async () => writes, registry: new Registry() })
  const startProjector = () => {
    const projector = createProjector({
      tables: { loader: tables.loader, projections: tables.projections, rebuild: tables.rebuild },
      startReading: readInline(log, topics, AT_ONCE),
      sealKeys: (people) => sealKeys(writes, people),
      folding: foldInline(),
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
      ...readSide(storeOver(tables.control)),
      writes: { query: (sql, values) => life.call('query', () => writes.query(sql, values)) },
      people,
      holder,
      now: () => nowMs
    }),
    publishEvents: (topic, events) => publish(log, topic, events, { source: '/test' }, people)
  }
  t.teardown(() => world.projector.stop())
  return world
}

/** Returns the facts as events of the world with this number, in order per topic. */
export async function publishEvents(
  { publishEvents }: World,
  number: number,
  happenings: readonly Happening[],
  nextRevision: () => number
) {
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
  await publishEvents(presenceTopic, sightings)
  await publishEvents(leaderboardEntryTopic, entries)
  await publishEvents(ratingTopic, ratings)
  await publishEvents(profileTopic, profiles)
}

function gameOf(number: number): string {
  return [...GAMES, ...MORE_GAMES][number] ?? `Game ${number}`
}

/** Returns the instants of the unlocks in the table, by `<user_key>/<achievement id>`. */
export async function unlocked({ tables }: World): Promise<Map<string, number>> {
  const rows = await tables.readers.rows(
    `SELECT u.user_key, u.achievement_id AS id, toUnixTimestamp64Milli(u.ts) AS at FROM achievement_unlock AS u FINAL`,
    {}
  )
  return new Map(rows.map((row) => [`${row.user_key}/${row.id}`, Number(row.at)]))
}

/** Returns the contents of event tables and read tables, as text by table, without version columns. */
export async function storedTables({ tables }: World): Promise<Map<string, string>> {
  const columns = await tables.readers.rows(
    `SELECT splitByString('__', c.table)[1] AS name, any(c.table) AS engineName, groupArray(c.name) AS columns
     FROM system.columns AS c JOIN system.tables AS t ON t.database = c.database AND t.name = c.table
     WHERE c.database = currentDatabase() AND t.engine LIKE '%MergeTree' AND c.default_kind NOT IN ('ALIAS', 'MATERIALIZED')
       AND c.name != extract(t.engine_full, 'ReplacingMergeTree\\\\((\\\\w+)\\\\)') AND endsWith(c.table, '__0')
     GROUP BY c.table ORDER BY c.table`
  )
  const stored = new Map<string, string>()
  for (const row of columns) {
    const list = (row.columns as string[]).map((column) => `s.${column}`).join(', ')
    // A day whose play time was removed by a late sighting has an empty row.
    const where = row.name === 'presence_day' ? 'WHERE s.sightings > 0 OR notEmpty(s.seconds)' : ''
    const rows = await tables.readers.rows(`SELECT ${list} FROM ${row.engineName} AS s FINAL ${where} ORDER BY ALL`, {})
    stored.set(String(row.name), JSON.stringify(rows))
  }
  return stored
}

const endLeases = (writes: Postgres) => writes.query('DELETE FROM work_lease')

/**
 * Runs steps in separate worlds, and compares the unlocks with a plain model: an achievement whose rule holds
 * at an evaluation is unlocked once, permanently.
 */
export function compareUnlocks(t: Test, world: World) {
  let number = 0
  let revision = 0
  const expected = new Map<string, number>()
  const nextRevision = () => {
    revision += 1
    return revision
  }
  const live = async (steps: readonly Step[]) => {
    number += 1
    for (const each of steps) {
      await publishEvents(world, number, each.happenings, nextRevision)
      await world.projector.caughtUp()
      if (each.ending === 'unseen') continue
      await evaluateAll(world, each)
      for (const [key, at] of await reachedNow(world.tables, NOW_MS)) if (!expected.has(key)) expected.set(key, at)
      t.strictSame(sorted(await unlocked(world)), sorted(expected))
    }
  }
  return { expected, live }
}

/** Evaluates until nothing is left, with the faults of the step. */
export async function evaluateAll(world: World, { ending, calls }: Step): Promise<void> {
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
  await until(async () => {
    const { outcome } = await evaluateOnce(world.needs('whole'))
    await world.projector.caughtUp()
    return outcome === 'idle'
  }, 0)
}

export function sorted(map: ReadonlyMap<string, number>): [string, number][] {
  return [...map].sort(([a], [b]) => (a < b ? -1 : 1))
}
