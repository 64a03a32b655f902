import { deepStrictEqual } from 'node:assert/strict'
import { runs } from '@gamenet/engines/testing'
import { type LeaderboardEntryChanged, nameKey, type RankGoal } from '@gamenet/schemas'
import fc from 'fast-check'
import { test } from 'tap'
import { type FoldedBoard, type FormerRows, foldBoard } from '../src/folds/board-fold.js'
import { compareStates, type Entry, type State } from '../src/folds/board-history.js'
import { BoardEvent, OrderedEvent } from './board-events.js'
import { type PlacedEntry, plainBoard } from './board-model.js'

const RUNS = 75

/** Like the goals of achievements, for small boards. */
const GOALS: readonly RankGoal[] = [
  { id: 1, rank: 3, entries: 4 },
  { id: 2, rank: 1, entries: 3 },
  { id: 3, rank: 2, entries: 1 },
  { id: 4, rank: 1, entries: 2, isShared: true }
]

/** Events in their order of arrival, cut into steps. */
const Arrival = fc.oneof(
  ...[BoardEvent, OrderedEvent].map((event) =>
    fc.record({
      steps: fc.array(fc.array(event, { minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 6 }),
      again: fc.array(fc.nat(30), { maxLength: 4 })
    })
  )
)

/** The tables of a board as a projector fills them, but read with whole histories. */
class SteppedBoard {
  readonly events: PlacedEntry[] = []
  readonly changes = new Map<string, string>()
  readonly #current = new Map<string, string>()
  #former: FormerRows = { reigns: [], reached: [] }

  step(events: readonly LeaderboardEntryChanged[]): void {
    if (events.length === 0) return
    for (const event of events) {
      this.events.push({ event, position: BigInt(this.events.length), partition: 0 })
    }
    const sinceMs = Math.min(...events.map(({ changedAt }) => Date.parse(changedAt)))
    const folded = foldBoard(entriesOf(this.events, sinceMs), sinceMs, this.#former, GOALS)
    this.#former = folded
    for (const [key, line] of changeLines(folded.changes)) this.changes.set(key, line)
    for (const [key, line] of entryLines(folded)) this.#current.set(key, line)
  }

  tables() {
    return tablesOf(this.changes, this.#current, this.#former)
  }
}

function plainTables(events: readonly PlacedEntry[]) {
  const { changes, present, gone, reigns, reached } = plainBoard(events, GOALS)
  const positioned = <Each extends { position: bigint }>(each: Each) => ({
    ...each,
    epoch: 0,
    offset: Number(each.position)
  })
  const lines = changeLines(
    changes.map(({ state, previous, recorded, ...rest }) => ({
      ...rest,
      state: positioned(state),
      before: previous,
      recorded: positioned(recorded)
    }))
  )
  return tablesOf(new Map(lines), new Map(entryLines({ present, gone })), { reigns, reached })
}

function tablesOf(
  changes: ReadonlyMap<string, string>,
  current: ReadonlyMap<string, string>,
  { reigns, reached }: FormerRows
) {
  return {
    changes: [...changes.values()].sort(),
    current: [...current.values()].sort(),
    reigns: reigns.map((reign) => [
      ...[reign.playerName, reign.occurrence, reign.rating, reign.timeMs],
      ...[reign.setAt, reign.fromAt, reign.toAt]
    ]),
    reached: reached.map(({ playerKey, goal, atMs }) => [playerKey, goal, atMs])
  }
}

type Published = {
  readonly state: { readonly playerName: string; readonly ms: number; readonly offset: number }
  readonly before: { readonly rating: string; readonly isGone: boolean } | undefined
  readonly change: string | undefined
  readonly recorded: { readonly offset: number }
  readonly previousRank: number | null
  readonly newRank: number | null
}

function changeLines(changes: readonly Published[]): [string, string][] {
  return changes.map(({ state, before, change, recorded, previousRank, newRank }) => [
    String(state.offset),
    JSON.stringify([
      ...[state.offset, recorded.offset, state.ms, state.playerName, change ?? '-'],
      ...(change === undefined ? [] : [before?.isGone === false ? before.rating : '-', previousRank, newRank])
    ])
  ])
}

type Shown = Pick<State, 'playerName' | 'occurrence' | 'rating' | 'timeMs' | 'ms' | 'details' | 'isGone'>

function entryLines({
  present,
  gone
}: {
  readonly present: readonly { readonly entry: Shown; readonly rank: number }[]
  readonly gone: readonly Shown[]
}): [string, string][] {
  const line = ({ playerName, occurrence, ...shown }: Shown, rank: number, place: number): [string, string] => [
    `${playerName}/${occurrence}`,
    JSON.stringify([
      playerName,
      occurrence,
      rank,
      place,
      shown.rating,
      shown.timeMs,
      shown.ms,
      shown.details,
      shown.isGone
    ])
  ]
  return [
    ...present.map(({ entry, rank }, place) => line(entry, rank, place)),
    ...gone.map((entry) => line(entry, 0, 0))
  ]
}

/** Returns the entries with their histories, as the projection's statement does. */
function entriesOf(events: readonly PlacedEntry[], sinceMs: number): Entry[] {
  const byWho = new Map<string, State[]>()
  for (const { who, position, ...state } of plainBoard(events).states) {
    const of = byWho.get(who) ?? []
    byWho.set(who, of)
    const entry = [...byWho.keys()].indexOf(who)
    of.push({ ...state, entry, epoch: 0, offset: Number(position) })
  }
  return [...byWho.values()].map((states) => {
    const sorted = states.sort(compareStates)
    const first = sorted.findIndex(({ ms }) => ms >= sinceMs)
    const { playerName = '', occurrence = 1 } = sorted[0] ?? {}
    const playerKey = nameKey(playerName)
    const firstMs = sorted.find(({ isGone }) => !isGone)?.ms ?? 0
    return { playerName, occurrence, playerKey, states: sorted, firstMs, first: first < 0 ? sorted.length : first }
  })
}

test('a board folded step by step, with late, repeated and simultaneous events, equals the plain fold of its events', (t) => {
  fc.assert(
    fc.property(Arrival, ({ steps, again }) => {
      const all = steps.flat()
      const repeated = again.flatMap((n) => all[n] ?? [])
      const board = new SteppedBoard()
      for (const step of [...steps, repeated, repeated]) {
        board.step(step)
        deepStrictEqual(board.tables(), plainTables(board.events))
      }
    }),
    runs(RUNS)
  )
  t.end()
})

test('boards and records do not depend on the order in which events arrive', (t) => {
  const Arrivals = fc.array(fc.oneof(BoardEvent, OrderedEvent), { minLength: 2, maxLength: 24 }).chain((events) =>
    fc.record({
      one: fc.constant(events),
      other: fc.shuffledSubarray(events, { minLength: events.length, maxLength: events.length }),
      size: fc.integer({ min: 1, max: 24 })
    })
  )
  fc.assert(
    fc.property(Arrivals, ({ one, other, size }) => {
      const boards = [one, other].map((events) => {
        const board = new SteppedBoard()
        for (let n = 0; n < events.length; n += size) board.step(events.slice(n, n + size))
        const { current, reigns, reached } = board.tables()
        return { current, reigns, reached }
      })
      deepStrictEqual(boards[0], boards[1])
    }),
    runs(2 * RUNS)
  )
  t.end()
})

test('a board of scores that are better when lower is that of their negatives, scrapes and other scores among them', (t) => {
  const Drawn = fc.array(fc.tuple(BoardEvent, fc.constantFrom(undefined, '7', '8', '9')), {
    minLength: 1,
    maxLength: 24
  })
  const unplaced = ({ order, step, rank, timeMs, isAscending, ...event }: LeaderboardEntryChanged) => event
  fc.assert(
    fc.property(Drawn, fc.integer({ min: 1, max: 24 }), (drawn, size) => {
      const [lower, negative] = [true, false].map((isAscending) => {
        const board = new SteppedBoard()
        const events = drawn.map(([event, score]): LeaderboardEntryChanged => {
          if (score === undefined || event.changeType === 'removed') return event
          const rated = { ...unplaced(event), rating: isAscending ? score : `-${score}` }
          return isAscending ? { ...rated, isAscending } : rated
        })
        for (let n = 0; n < events.length; n += size) board.step(events.slice(n, n + size))
        return JSON.stringify(board.tables())
      })
      deepStrictEqual(lower, negative?.replaceAll(/-([789])\b/g, '$1'))
    }),
    runs(2 * RUNS)
  )
  t.end()
})

test('of dated records without a time of day, each better one begins a reign, in whatever order the file has them', (t) => {
  const at = (date: string) => Date.parse(date)
  const event = (playerName: string, timeMs: number, changedAt: string): LeaderboardEntryChanged => ({
    ...{ titleId: '4d530064', leaderboardId: 7, playerName, changeType: 'updated', timeMs, rating: String(timeMs) },
    changedAt
  })
  const events = [
    event('ann', 54_000, '2020-05-01T00:00:00Z'),
    event('ann', 60_000, '2020-05-01T00:00:00Z'),
    event('bob', 57_000, '2020-05-01T00:00:00Z')
  ]
  for (const file of [events, events.toReversed()]) {
    const board = new SteppedBoard()
    board.step(file)
    const { reigns } = board.tables()
    deepStrictEqual(
      reigns.map(([player, , , timeMs, , from]) => [player, timeMs, from]),
      [
        ['ann', 60_000, at('2020-05-01')],
        ['bob', 57_000, at('2020-05-01')],
        ['ann', 54_000, at('2020-05-01')]
      ]
    )
  }
  t.end()
})

test('of a record holder that leaves while a better entry comes, at one instant, nobody else holds the record', (t) => {
  const board = new SteppedBoard()
  const event = (playerName: string, changeType: 'new' | 'removed', rating: string, second: number) => ({
    ...{ titleId: '4d530064', leaderboardId: 7, playerName, changeType, rating },
    changedAt: `2026-03-14T22:00:0${second}Z`
  })
  board.step([event('ann', 'new', '9', 0), event('bob', 'new', '5', 0)])
  board.step([event('cat', 'new', '10', 1), event('ann', 'removed', '9', 1)])
  deepStrictEqual(
    board.tables().reigns.map(([player]) => player),
    ['bob', 'ann', 'cat']
  )
  t.end()
})

test('the event that recorded a change stays the same as events arrive', (t) => {
  fc.assert(
    fc.property(Arrival, ({ steps }) => {
      const board = new SteppedBoard()
      const recorded = new Map<string, bigint>()
      for (const [n, event] of steps.flat().entries()) {
        board.step([event])
        for (const { state, recorded: at } of plainBoard(board.events).changes) {
          const key = String(state.position)
          if ((recorded.get(key) ?? at.position) !== at.position) throw new Error(`${key} moved to ${at.position}`)
          if (!recorded.has(key) && at.position !== BigInt(n)) throw new Error(`${key} was recorded before its time`)
          recorded.set(key, at.position)
        }
        for (const key of recorded.keys()) {
          if (!board.changes.has(key)) throw new Error(`the record of ${key} is gone`)
        }
      }
    }),
    runs(RUNS)
  )
  t.end()
})

test('a board of 100,000 entries with 40,000 changes at different instants folds in less than quadratic time', (t) => {
  const at = (n: number) => 1_000_000_000_000 + n
  const states = Array.from({ length: 100_000 }, (_, entry): State[] => {
    const state = {
      ...{ entry, playerName: `p${entry}`, occurrence: 1, epoch: 0, partition: 0, isGone: false, details: '' },
      ...{ rating: '1', timeMs: null, statedRank: null, order: entry * 8, step: 1 }
    }
    const first = { ...state, ms: at(0), offset: entry }
    return entry >= 40_000 ? [first] : [first, { ...first, ms: at(1 + entry), offset: 100_000 + entry, rating: '2' }]
  })
  const entries = states.map((of, entry) => ({
    ...{ playerName: `p${entry}`, occurrence: 1, playerKey: `p${entry}`, states: of, firstMs: at(0), first: 1 }
  }))
  const folded: FoldedBoard = foldBoard(entries, at(1), { reigns: [], reached: [] })
  t.equal(folded.present.length, 100_000)
  t.equal(folded.changes.length, 40_000)
  t.match(folded.changes[39_999], { change: 'updated', previousRank: 40_000, newRank: 40_000 })
  t.equal(folded.present[99_999]?.rank, 100_000)
  t.end()
})

test('a time in another spelling is shown on the board, but is neither a change nor a record, and makes no new holder', (t) => {
  const at = (ms: number, playerName: string, timeMs: number, rating: string, order?: number) => ({
    ...{ titleId: '4d530064', leaderboardId: 7, playerName, changedAt: new Date(ms).toISOString() },
    ...{ changeType: 'updated' as const, timeMs, rating },
    ...(order === undefined ? {} : { order, step: 1 })
  })
  for (const place of [undefined, 8]) {
    const board = new SteppedBoard()
    board.step([at(1, 'ann', 61_000, '2147422647', place)])
    const before = board.tables()
    board.step([at(2, 'ann', 61_000, '01:01.000', place)])
    board.step([at(3, 'ann', 61_000, '1:01.000', place)])
    const after = board.tables()
    t.match(after.current.join(), /"1:01.000"/)
    t.same([after.changes, after.reigns], [before.changes, before.reigns])
    t.equal(after.changes.length, 1, 'ann came')
    board.step([at(4, 'ann', 60_999, '1:00.999', place)])
    const better = board.tables()
    t.match([better.changes.length, better.reigns.length], [2, 2], 'a better time is all of that')
    t.match(better.changes.join(), /"updated","1:01.000"/)
  }
  t.end()
})

test('a player reaches a goal when others leave, or when a board that it leads has enough entries', (t) => {
  const at = (ms: number, playerName: string, timeMs?: number): LeaderboardEntryChanged => {
    const board = { titleId: '4d530064', leaderboardId: 7, playerName, changedAt: new Date(ms).toISOString() }
    return timeMs === undefined
      ? { ...board, changeType: 'removed' }
      : { ...board, changeType: 'new', timeMs, rating: String(timeMs) }
  }
  const board = new SteppedBoard()
  const reached = (player: string) => board.tables().reached.filter(([playerKey]) => playerKey === player)
  board.step([at(1, 'ann', 10), at(1, 'bob', 20), at(2, 'cleo', 30)])
  t.same(reached('ann').at(-1), ['ann', 2, 2], 'the third entry came')
  t.same(reached('cleo'), [], 'third of three')
  board.step([at(5, 'bob')])
  t.same(reached('cleo'), [['cleo', 3, 5]], 'second when bob left')
  board.step([at(3, 'ann'), at(4, 'ann', 10)])
  t.same(reached('cleo'), [['cleo', 3, 3]], 'an older history brings it forward')
  board.step([at(6, 'Cleo', 10), at(7, 'ann', 30)])
  t.same(reached('cleo').at(-1), ['cleo', 4, 6], 'first together with ann')
  t.end()
})
