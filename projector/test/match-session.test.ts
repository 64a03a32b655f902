import { deepStrictEqual } from 'node:assert'
import { matchesOf, type PlainList, runs } from '@gamenet/engines/testing'
import { instantOf, type MatchesListed, matchListTopic } from '@gamenet/schemas'
import fc from 'fast-check'
import { test } from 'tap'
import { joinRuns, type Match, type Stretch } from '../src/folds/match-session.js'
import type { Tables } from '../src/index.js'
import { expectedTables, matchTables } from './match-lists.js'
import { MemoryLog } from './memory-log.js'
import { liveUntilDeath } from './mortal.js'
import { emptyTables, message, newestVersion, openTables, runToHead } from './pipeline.js'

const T0 = Date.UTC(2026, 2, 14, 22)
const MINUTE = 60_000
const RUNS = 4

const Sight = fc.record({
  host: fc.constantFrom('a', 'a', 'b', 'ä/ß'),
  players: fc.integer({ min: 0, max: 9 }),
  max: fc.constantFrom(0, 8, 16)
})

const byKey = (a: Match, b: Match) => a.firstMs - b.firstMs || (a.host < b.host ? -1 : 1) || a.nth - b.nth
const sorted = (matches: readonly Match[]) =>
  [...matches].sort((a, b) => (a.host === b.host ? a.firstMs - b.firstMs || a.nth - b.nth : byKey(a, b)))

test('runs of stretches, wherever the lists are cut, join to the matches of the lists', async (t) => {
  const Lists = fc.array(fc.array(Sight, { maxLength: 4 }), { maxLength: 12 })
  fc.assert(
    fc.property(Lists, fc.array(fc.nat(12), { maxLength: 5 }), fc.nat(12), (drawn, cuts, from) => {
      const lists = drawn.map((lobbies, n) => ({ ms: T0 + n * MINUTE, lobbies }))
      const expected = matchesOf(lists)
      const stretches = stretchesOf(lists, cuts)
      deepStrictEqual(sorted(joinRuns(stretches, [])), sorted(expected))
      // Continued: of the past, only the matches in the previous list are given.
      const before = matchesOf(lists.slice(0, from))
      const open = before.filter(({ lastMs }) => lastMs === lists[from - 1]?.ms)
      const rest = stretchesOf(lists.slice(from), cuts)
      const ended = before.filter((match) => !open.includes(match))
      deepStrictEqual(sorted([...ended, ...joinRuns(rest, open)]), sorted(expected))
    }),
    runs(250)
  )
  t.pass()
})

/** Lists split into stretches, each with the runs that the plain computation finds in it. */
function stretchesOf(lists: readonly PlainList[], cuts: readonly number[]): Stretch[] {
  const at = [...new Set([0, ...cuts.filter((cut) => cut < lists.length), lists.length])].sort((a, b) => a - b)
  return at.slice(1).map((end, n) => {
    const cut = lists.slice(at[n] ?? 0, end)
    return { instants: cut.map(({ ms }) => ms), runs: matchesOf(cut) }
  })
}

/** Few instants, some of them hours and days apart, for late and repeated lists and for long silence. */
const Minute = fc.oneof(
  { arbitrary: fc.integer({ min: 0, max: 14 }), weight: 6 },
  fc.constantFrom(-5000, -4999, 58, 59, 60, 61, 3 * 24 * 60)
)
const Listed = fc.record({
  titleId: fc.constantFrom('4d530064', '4d530064', '00000001'),
  minute: Minute,
  lobbies: fc.array(Sight, { maxLength: 4 })
})
type Listed = typeof Listed extends fc.Arbitrary<infer L> ? L : never

/** Lists as sources publish them, minute by minute, or in any order and several times; sometimes to an older epoch. */
const Appended = fc.record({
  epoch: fc.constantFrom(0, 1, 1),
  lists: fc.array(Listed, { maxLength: 8 }),
  isInOrder: fc.boolean(),
  again: fc.array(fc.nat(7), { maxLength: 2 })
})
const Death = fc.record({ afterCalls: fc.integer({ min: 1, max: 40 }), isDone: fc.boolean() })
const Scenario = fc.record({
  rounds: fc.array(
    fc.record({ appended: fc.array(Appended, { minLength: 1, maxLength: 2 }), death: fc.option(Death) }),
    {
      minLength: 2,
      maxLength: 4
    }
  ),
  isErased: fc.boolean()
})

test('lists in any order, repeated, late and interrupted by deaths, give the plain matches of the lists', async (t) => {
  const engine = await openTables()
  let deaths = 0
  const property = fc.asyncProperty(Scenario, async ({ rounds, isErased }) => {
    await emptyTables(engine.control)
    const log = new MemoryLog(() => 3)
    for (const { appended, death } of rounds) {
      for (const each of appended) append(log, each)
      const before = (await matchTables(engine.control)).match_session
      const version = await newestVersion(engine.control)
      if (death === null) {
        await runToHead(engine, log)
        deepStrictEqual(await matchTables(engine.control), expectedTables(log))
        await everyTitleIsPublished(engine.control, before, version)
      } else if (await liveUntilDeath(engine, log, { ...death, calls: 'projections' })) deaths += 1
    }
    if (isErased) await engine.control.execute('TRUNCATE TABLE checkpoint')
    await runToHead(engine, log)
    deepStrictEqual(await matchTables(engine.control), expectedTables(log))
  })
  await fc.assert(property, { ...runs(RUNS), endOnFailure: true })
  t.ok(deaths > 0, `${deaths} deaths`)
})

function append(
  log: MemoryLog,
  { epoch, lists, isInOrder, again }: typeof Appended extends fc.Arbitrary<infer A> ? A : never
) {
  const all = [...lists, ...again.flatMap((n) => lists[n] ?? [])]
  if (isInOrder) all.sort((a, b) => a.minute - b.minute)
  for (const each of all) {
    const partition = Number.parseInt(each.titleId, 16) % (2 + epoch)
    log.append(matchListTopic.name, [message(matchListTopic, eventOf(each))], { epoch, partition })
  }
}

function eventOf({ titleId, minute, lobbies }: Listed): MatchesListed {
  const matches = lobbies.map(({ host, players, max }) => ({
    hostName: host,
    currentPlayers: players,
    maxPlayers: max
  }))
  return { titleId, observedAt: instantOf(T0 + minute * MINUTE), matches }
}

/** Checks that the changes after `version` cover every title whose matches differ from `before`. */
async function everyTitleIsPublished(tables: Tables, before: readonly string[], version: number) {
  const now = (await matchTables(tables)).match_session
  const changed = [...now.filter((line) => !before.includes(line)), ...before.filter((line) => !now.includes(line))]
  const published = await tables.rows(
    "SELECT d.key AS key FROM data_change AS d WHERE d.version > {version: UInt64} AND d.projection = 'match-session'",
    { version }
  )
  for (const line of changed) {
    const titleId = line.split('|')[0]
    if (!published.some(({ key }) => key === '*' || key === titleId))
      throw new Error(`no change was published for ${line}`)
  }
}
