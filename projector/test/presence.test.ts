import { runs } from '@gamenet/engines/testing'
import { instantOf, millisecondsOf, nameKey, type PresenceSeen, presenceTopic } from '@gamenet/schemas'
import fc from 'fast-check'
import { test } from 'tap'
import type { Tables } from '../src/index.js'
import { presence, presenceDay, presenceLatest, userGamertag } from '../src/projections/presence.js'
import type { SqlProjection } from '../src/store/projection.js'
import { makeRows } from '../src/store/step.js'
import { MemoryLog } from './memory-log.js'
import { liveUntilDeath } from './mortal.js'
import { emptyTables, firstStore, message, newestVersion, openTables, runToHead } from './pipeline.js'
import { type PlacedSighting, type PresenceTables, presenceTablesOf, readPresenceTables } from './presence-model.js'

const RUNS = { steps: 5, deaths: 3 }
const DAY_S = 86_400
/** Midnights of December, and of the new year. */
const START_S = Date.UTC(2025, 11, 30) / 1000
const EPOCH = 2 ** 48

/**
 * Instants close to each other around midnights, sometimes days apart, mostly on a grid: gaps of exactly three periods,
 * and of a millisecond more, are frequent. Few instants, so that several events share one.
 */
const sighting = fc
  .record({
    user: fc.constantFrom('Ann', 'Bob'),
    ms: fc
      .tuple(fc.integer({ min: 0, max: 5 }), fc.integer({ min: -12, max: 12 }), fc.constantFrom(0, 0, 0, 1, 999))
      .map(([day, step, ms]) => (START_S + day * DAY_S + step * 30) * 1000 + ms),
    isUpper: fc.boolean(),
    gamertag: fc.constantFrom(undefined, undefined, 'Ann Two', 'BOB', 'bob'),
    isOnline: fc.constantFrom(true, true, true, false),
    game: fc.constantFrom('Ride', 'Ride', 'Ride', 'Halo', undefined),
    periodSeconds: fc.constantFrom(10, 10, 30, 60, 600, DAY_S)
  })
  .map(
    ({ user, ms, isUpper, gamertag, isOnline, game, periodSeconds }): PresenceSeen => ({
      username: isUpper ? user.toUpperCase() : user,
      ...(gamertag !== undefined && { gamertag }),
      state: isOnline ? 'online' : 'offline',
      ...(game !== undefined && { game }),
      periodSeconds,
      observedAt: instantOf(ms)
    })
  )

const placed = (event: PresenceSeen, position: number): PlacedSighting => ({
  userKey: nameKey(event.username),
  username: event.username,
  gamertag: event.gamertag ?? '',
  gamertagKey: nameKey(event.gamertag ?? ''),
  ms: millisecondsOf(event.observedAt),
  isOnline: event.state === 'online',
  game: event.game ?? '',
  periodS: event.periodSeconds,
  position
})

const partitionOf = ({ username }: PresenceSeen) => (nameKey(username) === 'ann' ? 0 : 1)

const step = fc.record({
  projection: fc.nat(3),
  /** Consumes its last range again instead of new events, as after a crash. */
  isAgain: fc.constantFrom(true, false, false),
  events: fc.integer({ min: 1, max: 8 }),
  epoch: fc.constantFrom(0, 1)
})

test('presence equals a plain computation over the sightings, in any order of arrival and of steps', async () => {
  const { control } = await openTables()
  const property = fc.asyncProperty(
    fc.array(sighting, { minLength: 1, maxLength: 25 }),
    fc.array(sighting, { maxLength: 8 }),
    fc.array(step, { minLength: 10, maxLength: 25 }),
    async (first, second, steps) => {
      await emptyTables(control)
      const epochs = [first, second]
      for (const [epoch, events] of epochs.entries()) await load(control, epoch, events)
      await run(
        control,
        epochs.map((events) => events.length),
        steps
      )
      const events = epochs.flatMap((all, epoch) => all.map((event, offset) => placed(event, epoch * EPOCH + offset)))
      same(await readPresenceTables(control), presenceTablesOf(events))
    }
  )
  await fc.assert(property, runs(RUNS.steps))
})

test('after a death at any call, presence is the same as without it, and every changed day is recorded', async (t) => {
  const tables = await openTables()
  let deaths = 0
  const appended = fc.record({
    epoch: fc.constantFrom(0, 0, 1),
    events: fc.array(sighting, { minLength: 1, maxLength: 12 }),
    isTwice: fc.boolean()
  })
  const death = fc.record({ afterCalls: fc.integer({ min: 1, max: 30 }), isDone: fc.boolean() })
  const rounds = fc.array(fc.record({ appended: fc.array(appended, { minLength: 1, maxLength: 3 }), death }), {
    minLength: 1,
    maxLength: 3
  })
  const property = fc.asyncProperty(rounds, fc.integer({ min: 1, max: 9 }), async (rounds, batchRecords) => {
    await emptyTables(tables.control)
    const log = new MemoryLog(() => batchRecords)
    const written: PlacedSighting[] = []
    let seen: { version: number; model: PresenceTables } | undefined
    for (const { appended, death } of rounds) {
      for (const each of appended) written.push(...append(log, each))
      if (await liveUntilDeath(tables, log, { ...death, calls: 'all' })) deaths += 1
      seen = { version: await newestVersion(tables.control), model: await readPresenceTables(tables.control) }
    }
    await runToHead(tables, log)
    const found = await readPresenceTables(tables.control)
    same(found, presenceTablesOf(written))
    await everyDayIsPublished(tables.control, found, seen)
  })
  await fc.assert(property, { ...runs(RUNS.deaths), endOnFailure: true })
  t.ok(deaths > 0, `${deaths} deaths`)
})

async function load(tables: Tables, epoch: number, events: readonly PresenceSeen[]): Promise<void> {
  if (events.length === 0) return
  const rows = events.map((event, offset) => {
    const { userKey, username, gamertag, gamertagKey, ms, isOnline, game, periodS } = placed(event, offset)
    const at = `fromUnixTimestamp64Milli(toInt64(${ms}), 'UTC')`
    return `(${epoch}, 0, ${offset}, 's', '', ${at}, '${userKey}', '${username}', '${gamertag}', '${gamertagKey}', ${isOnline}, '${game}', ${periodS})`
  })
  await tables.execute(
    `INSERT INTO event_presence__0 (epoch, partition, offset, source, import_id, observed_at, user_key, username, gamertag,
       gamertag_key, is_online, game, period_s) VALUES ${rows.join(', ')}`
  )
}

/** Runs the given steps of the projections, then the rest. One partition per epoch is enough. */
async function run(
  tables: Tables,
  lengths: readonly number[],
  steps: readonly (typeof step extends fc.Arbitrary<infer Step> ? Step : never)[]
): Promise<void> {
  const projections = [presence, presenceLatest, userGamertag, presenceDay] as readonly SqlProjection[]
  const reached = new Map(projections.map(({ name }) => [name, lengths.map(() => 0)]))
  const last = new Map<string, number>()
  const take = async (projection: SqlProjection, epoch: number, events: number, isAgain: boolean) => {
    const own = reached.get(projection.name) ?? []
    const limits = projection.after === undefined ? lengths : (reached.get(projection.after) ?? [])
    const key = `${projection.name}/${epoch}`
    const first = isAgain ? (last.get(key) ?? 0) : (own[epoch] ?? 0)
    const next = isAgain ? (own[epoch] ?? 0) : Math.min(limits[epoch] ?? 0, first + events)
    if (first >= next) return
    const range = [{ epoch, partition: 0, first, next }]
    await firstStore(tables).do(makeRows, projection, { range, isLate: false })
    last.set(key, first)
    own[epoch] = next
  }
  for (const { projection: n, isAgain, events, epoch } of steps) {
    const projection = projections[n]
    if (projection !== undefined) await take(projection, epoch, events, isAgain)
  }
  for (const projection of projections) {
    for (const epoch of lengths.keys()) await take(projection, epoch, 1000, false)
  }
}

/** Appends events, some of them twice; returns them with their positions, as the loader numbers them. */
function append(
  log: MemoryLog,
  { epoch, events, isTwice }: { epoch: number; events: readonly PresenceSeen[]; isTwice: boolean }
): PlacedSighting[] {
  return [...events, ...(isTwice ? events.slice(0, 3) : [])].flatMap((event) => {
    const partition = partitionOf(event)
    // A new epoch has other events: of one that was published in both, either position could count.
    const own = epoch === 0 ? event : { ...event, observedAt: instantOf(millisecondsOf(event.observedAt) + 7) }
    log.append(presenceTopic.name, [message(presenceTopic, own)], { epoch, partition })
    const at = log.partitions.find((each) => each.epoch === epoch && each.partition === partition)
    return placed(own, epoch * EPOCH + (at?.records.at(-1)?.offset ?? Number.NaN))
  })
}

function same(found: PresenceTables, expected: PresenceTables): void {
  for (const table of ['presence', 'latest', 'gamertag', 'day'] as const) {
    const [is, should] = [found[table].join('\n  '), expected[table].join('\n  ')]
    if (is !== should) throw new Error(`${table}\nfound\n  ${is}\nexpected\n  ${should}`)
  }
}

/** Checks that the changes after `version` cover every day that has changed since. */
async function everyDayIsPublished(
  tables: Tables,
  found: PresenceTables,
  seen: { version: number; model: PresenceTables } | undefined
): Promise<void> {
  const published = await tables.rows(
    `SELECT d.key AS key, d.from_ms AS from_ms, d.to_ms AS to_ms FROM data_change AS d
     WHERE d.projection = 'presence-day' AND d.version > {version: UInt64}`,
    { version: seen?.version ?? 0 }
  )
  const before = new Set(seen?.model.day)
  for (const day of found.day.filter((each) => !before.has(each))) {
    const [user, number] = day.split('|')
    const ms = Number(number) * DAY_S * 1000
    const isPublished = published.some(
      ({ key, from_ms, to_ms }) => (key === '*' || key === user) && Number(from_ms) <= ms && ms < Number(to_ms)
    )
    if (!isPublished) throw new Error(`no change was published for ${day}`)
  }
}
