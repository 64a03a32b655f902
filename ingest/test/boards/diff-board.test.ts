import assert from 'node:assert/strict'
import { runs } from '@gamenet/engines/testing'
import { LeaderboardEntryChanged, ranked, type Standing } from '@gamenet/schemas'
import fc from 'fast-check'
import { test } from 'tap'
import { diffBoard, type KnownEntry } from '../../src/boards/diff-board.js'
import type { BoardEntry } from '../../src/pages/board-table.js'

const BOARD = { titleId: '4d530064', leaderboardId: 7, changedAt: '2026-03-14T20:00:00.123Z' }
const SPACING = 2 ** 32

/** The entries of a page, before those of one name are numbered. */
type Shown = Omit<BoardEntry, 'occurrence'>
/** A board as the fold of its events. */
type Folded = Standing & { readonly details?: Readonly<Record<string, string>> }

test('the first page of a board is new entries, in order', async (t) => {
  const events = diffBoard({ ...BOARD, last: [], page: pageOf([shown('ann', 1, '90'), shown('bob', 2, '80')]) })
  t.same(events, [
    { ...BOARD, playerName: 'ann', changeType: 'new', rank: 1, rating: '90', order: SPACING, step: 1 },
    { ...BOARD, playerName: 'bob', changeType: 'new', rank: 2, rating: '80', order: 2 * SPACING, step: 1 }
  ])
})

test('an unchanged page causes no event', async (t) => {
  const page = pageOf([shown('ann', 1, '90'), { ...shown('bob', 1, '90'), details: { car: 'Elise' } }])
  const board = folded(diffBoard({ ...BOARD, last: [], page }))
  t.same(diffBoard({ ...BOARD, last: board, page }), [])
  t.same(diffBoard({ ...BOARD, last: board.toReversed(), page }), [], 'whatever order the rows come in')
})

test('a time in another spelling is not an update, but the board shows its new text', async (t) => {
  const time = (rating: string, timeMs: number | null) => pageOf([{ ...shown('ann', 1, rating), timeMs }])
  const shownAs = (before: BoardEntry[], after: BoardEntry[]) => {
    const last = folded(diffBoard({ ...BOARD, last: [], page: before }))
    const events = diffBoard({ ...BOARD, last, page: after })
    t.same(shownBy(folded(events, last)), after)
    return events.map(({ changeType, rating, timeMs }) => [changeType, rating, timeMs])
  }
  const raw = String(2_147_483_647 - 61_000)
  t.same(shownAs(time(raw, 61_000), time('01:01.000', 61_000)), [['moved', '01:01.000', 61_000]])
  t.same(shownAs(time('01:01.000', 61_000), time('1:01.000', 61_000)), [['moved', '1:01.000', 61_000]])
  t.same(shownAs(time('01:01.000', 61_000), time('01:00.999', 60_999)), [['updated', '01:00.999', 60_999]])
  t.same(shownAs(time(raw, null), time('01:01.000', 61_000)), [['updated', '01:01.000', 61_000]], 'it was a score')
  t.same(shownAs(time('90', null), time('090', null)), [['updated', '090', undefined]], 'a score is its text')
})

test('a new entry at the top of a board of 1,000 costs one event, and all ranks below follow', async (t) => {
  const players = Array.from({ length: 1000 }, (_, i) => `player ${i}`)
  const before = folded(diffBoard({ ...BOARD, last: [], page: numbered(players) }))
  const page = numbered(['ann', ...players])
  const events = diffBoard({ ...BOARD, last: before, page })
  t.match(events, [{ playerName: 'ann', changeType: 'new', rank: 1, order: 0 }])
  t.equal(events.length, 1)
  t.same(shownBy(folded(events, before)), page)
})

test('one edit of a board without ties is one event: an entry that came, left, rose or has another rating', async () => {
  const players = fc.uniqueArray(fc.nat({ max: 10_000 }), { minLength: 2, maxLength: 60 })
  fc.assert(
    fc.property(
      players,
      fc.nat(),
      fc.nat(),
      fc.constantFrom('come', 'leave', 'move', 'improve'),
      (names, a, b, edit) => {
        const before = folded(diffBoard({ ...BOARD, last: [], page: numbered(names.map(String)) }))
        const rows = names.map((name, i) => shown(String(name), i + 1, ratingOf(String(name))))
        const from = a % rows.length
        const to = b % rows.length
        if (edit === 'come') rows.splice(to, 0, shown('ann', 0, '1'))
        else {
          const [row] = rows.splice(from, 1)
          assert.ok(row)
          if (edit === 'move') rows.splice(to, 0, row)
          if (edit === 'improve') rows.splice(to, 0, { ...row, rating: `${row.rating}0` })
        }
        const page = pageOf(rows.map((row, i) => ({ ...row, rank: i + 1 })))
        const events = diffBoard({ ...BOARD, last: before, page })
        assert.equal(events.length, edit === 'move' && from === to ? 0 : 1)
        assert.deepEqual(shownBy(folded(events, before)), page)
      }
    ),
    runs(50)
  )
})

test('after any edits of a board, its events fold to the page: places, ranks, ratings and details', async () => {
  fc.assert(
    fc.property(fc.array(anyPage, { minLength: 1, maxLength: 12 }), (pages) => {
      let board: Folded[] = []
      for (const page of pages) {
        const events = diffBoard({ ...BOARD, last: board, page })
        const before = board
        board = folded(events, board)
        assert.deepEqual(shownBy(board), page)
        assert.deepEqual(diffBoard({ ...BOARD, last: board, page }), [])
        assertSound(events, before)
      }
    }),
    runs(75)
  )
})

test('boards that were imported, scraped, or both, with any order keys and none, fold to the page', async () => {
  fc.assert(
    fc.property(fc.uniqueArray(anyKnown, { selector: identity, maxLength: 25 }), anyPage, (last, page) => {
      const events = diffBoard({ ...BOARD, last, page })
      const board = folded(events, last)
      assert.deepEqual(shownBy(board), withKnownTimes(page, last))
      assert.deepEqual(diffBoard({ ...BOARD, last: board, page }), [])
      assertSound(events, last)
    }),
    runs(150)
  )
})

test('an entry can always be inserted between any two, with about one event per edit', async () => {
  // Always between the first two: after 32 insertions the gap is full, and neighbours get new keys.
  const names = ['first', 'last']
  let board = folded(diffBoard({ ...BOARD, last: [], page: numbered(names) }))
  let events = 0
  for (let i = 0; i < 400; i += 1) {
    names.splice(1, 0, `player ${i}`)
    const page = numbered(names)
    const changes = diffBoard({ ...BOARD, last: board, page })
    events += changes.length
    board = folded(changes, board)
    if (i % 100 === 99) assert.deepEqual(shownBy(board), page)
  }
  assert.ok(events < 400 * 1.5, `${events} events for 400 edits at one place`)
})

test('for a full gap as few neighbours as possible get new keys', async (t) => {
  const last = ['a', 'b', 'c', 'd', 'e'].map((name, i) => known(name, [0, 10, 11, 12, 13][i] ?? 0))
  const page = numbered(['a', 'b', 'x', 'c', 'd', 'e'])
  const events = diffBoard({ ...BOARD, last, page })
  // There is space above `b` and below `e`: one neighbour is enough.
  t.same(
    events.map(({ playerName, order }) => [playerName, order]),
    [
      ['b', 3],
      ['x', 6]
    ]
  )
  t.same(shownBy(folded(events, last)), page)
})

test('keys never exceed 2^52: a board at the limit gets new keys, once', async (t) => {
  const top = -(2 ** 52) + 5
  const last = [known('a', top), known('b', 0)]
  const page = numbered(['x', 'a', 'b'])
  const events = diffBoard({ ...BOARD, last, page })
  t.same(
    events.map(({ playerName, changeType, order }) => [playerName, changeType, order]),
    [
      ['x', 'new', SPACING],
      ['a', 'moved', 2 * SPACING],
      ['b', 'moved', 3 * SPACING]
    ]
  )
  const board = folded(events, last)
  t.same(shownBy(board), page)
  t.equal(diffBoard({ ...BOARD, last: board, page: numbered(['y', 'x', 'a', 'b']) }).length, 1)
})

test('of two entries that swapped places, the one that has an event anyway gets a new key', async (t) => {
  const last = [known('ann', 1), known('bob', 2 ** 40), known('cid', 2 ** 41)]
  for (const improved of ['ann', 'bob', 'cid']) {
    const order = improved === 'ann' ? ['bob', 'ann', 'cid'] : ['bob', 'cid', 'ann']
    if (improved === 'bob') order.splice(0, 3, 'bob', 'ann', 'cid')
    if (improved === 'cid') order.splice(0, 3, 'cid', 'ann', 'bob')
    const page = numbered(order).map((row) => (row.playerName === improved ? { ...row, rating: '1000000' } : row))
    t.match(diffBoard({ ...BOARD, last, page }), [{ playerName: improved, changeType: 'updated' }], improved)
    t.equal(diffBoard({ ...BOARD, last, page }).length, 1)
  }
})

test('an unchanged rating keeps its time, even if the page now reads as scores', async (t) => {
  const raw = '2147400000'
  const time = 2_147_483_647 - Number(raw)
  const last = [{ ...known('ann', SPACING), rating: raw, timeMs: time }]
  const asScores = pageOf([shown('bob', 1, '5'), { ...shown('ann', 1, raw), timeMs: null }])
  t.match(diffBoard({ ...BOARD, last, page: asScores }), [
    { playerName: 'bob', changeType: 'new' },
    { playerName: 'ann', changeType: 'moved', timeMs: time, step: 0 }
  ])
  const known0 = [{ ...known('ann', SPACING), rating: raw, timeMs: null }]
  const asTimes = pageOf([{ ...shown('ann', 2, raw), timeMs: time }])
  t.notMatch(diffBoard({ ...BOARD, last: known0, page: asTimes })[0], { timeMs: time })
  t.match(diffBoard({ ...BOARD, last: known0, page: pageOf([{ ...shown('ann', 1, '0:01.000'), timeMs: 1000 }]) }), [
    { changeType: 'updated', timeMs: 1000 }
  ])
})

test('a time of zero is a time', async (t) => {
  const page = pageOf([{ ...shown('ann', 1, '2147483647'), timeMs: 0 }])
  t.match(diffBoard({ ...BOARD, last: [], page }), [{ timeMs: 0 }])
})

test('an imported entry on the page gets its place, once, and one that is not on the page is removed', async (t) => {
  const imported = (playerName: string): KnownEntry => ({ ...known(playerName, 0), order: null, step: null })
  const last = [imported('ann'), imported('bob')]
  const page = numbered(['ann'])
  const events = diffBoard({ ...BOARD, last, page })
  t.match(events, [
    { playerName: 'ann', changeType: 'moved', order: SPACING, step: 1 },
    { playerName: 'bob', changeType: 'removed' }
  ])
})

test('a name that occurs twice is two entries; the second one leaves when one of them does', async (t) => {
  const page = pageOf([shown('ann', 1, '9'), shown('Ann', 2, '8'), shown('ann', 3, '7')])
  const board = folded(diffBoard({ ...BOARD, last: [], page }))
  t.same(shownBy(board), page)
  const events = diffBoard({ ...BOARD, last: board, page: page.slice(0, 2) })
  t.same(events, [{ ...BOARD, playerName: 'ann', occurrence: 2, changeType: 'removed' }])
})

const name = fc.oneof(
  fc.constantFrom('ann', 'Ann', 'ANN', '2/ann', '__proto__', 'constructor', '<b>x</b>', 'שלום', 'e\u0301', 'é', ' '),
  fc.nat({ max: 12 }).map((n) => `player ${n}`)
)
const details = fc.option(
  fc.constantFrom({ car: 'Elise' }, { car: 'Elise', date: '2004-01-01 00:00:00' }, { races: '7' }),
  {
    nil: undefined
  }
)
const row = fc.record({
  playerName: name,
  rank: fc.oneof(fc.integer({ min: 1, max: 9 }), fc.constantFrom(-2_147_483_648, 0, 2_147_483_647)),
  rating: fc.constantFrom('10', '20', '-5', '99999999999999999999', 'n/a'),
  details
})

/** Any pages: with ties, gaps, falling ranks and repeated names. */
const anyPage: fc.Arbitrary<BoardEntry[]> = fc
  .oneof(
    fc.array(row, { maxLength: 25 }),
    // Like most boards: ranks that rise by one, with some ties.
    fc
      .array(
        row.chain((entry) => fc.nat({ max: 3 }).map((step) => ({ ...entry, rank: Math.min(step, 1) }))),
        {
          maxLength: 25
        }
      )
      .map((rows) => {
        let rank = 0
        return rows.map((entry) => {
          rank += entry.rank
          return { ...entry, rank: Math.max(1, rank) }
        })
      })
  )
  .map((rows) => pageOf(rows.map(({ details, ...entry }) => ({ ...entry, timeMs: null, ...(details && { details }) }))))

const order = fc.oneof(
  fc.constant(null),
  fc.integer({ min: -6, max: 6 }),
  fc.integer({ min: -(2 ** 52), max: 2 ** 52 }),
  fc.constantFrom(2 ** 52, -(2 ** 52), 2 ** 52 + 1, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER)
)
const anyKnown: fc.Arbitrary<Folded> = fc
  .record({
    playerName: name,
    occurrence: fc.constantFrom(1, 1, 1, 2, 3),
    rating: fc.constantFrom('10', '20', '-5', ''),
    timeMs: fc.option(fc.nat({ max: 5 })),
    statedRank: fc.option(fc.nat({ max: 9 })),
    order,
    step: fc.integer({ min: -3, max: 3 }),
    details
  })
  .map(({ details, step, ...entry }) => ({
    ...entry,
    step: entry.order === null ? null : step,
    ...(details && { details })
  }))

function shown(playerName: string, rank: number, rating: string): Shown {
  return { playerName, rank, rating, timeMs: null }
}

function known(playerName: string, order: number): Folded {
  return { playerName, occurrence: 1, rating: ratingOf(playerName), timeMs: null, statedRank: null, order, step: 1 }
}

/** A page with these names and ranks 1, 2, 3 …; each name always has the same rating. */
function numbered(names: readonly string[]): BoardEntry[] {
  return pageOf(names.map((playerName, i) => shown(playerName, i + 1, ratingOf(playerName))))
}

function ratingOf(playerName: string): string {
  return `rating of ${playerName}`
}

function pageOf(rows: readonly Shown[]): BoardEntry[] {
  const seen = new Map<string, number>()
  return rows.map((entry) => {
    const occurrence = (seen.get(entry.playerName) ?? 0) + 1
    seen.set(entry.playerName, occurrence)
    return { ...entry, occurrence }
  })
}

function identity({ playerName, occurrence }: { playerName: string; occurrence: number }): string {
  return JSON.stringify([playerName, occurrence])
}

/** The plain fold: the newest state of each entry, without removed ones. */
function folded(events: readonly LeaderboardEntryChanged[], before: readonly Folded[] = []): Folded[] {
  const states = new Map(before.map((entry) => [identity(entry), entry]))
  for (const event of events) {
    const { playerName, occurrence = 1 } = event
    const key = identity({ playerName, occurrence })
    if (event.changeType === 'removed') states.delete(key)
    else {
      states.set(key, {
        playerName,
        occurrence,
        rating: event.rating ?? '',
        timeMs: event.timeMs ?? null,
        statedRank: event.rank ?? null,
        order: event.order ?? null,
        step: event.step ?? null,
        ...(event.details && { details: event.details })
      })
    }
  }
  return [...states.values()]
}

/** Returns a folded board as readers show it. */
function shownBy(board: readonly Folded[]): BoardEntry[] {
  return ranked(board).map(({ entry: { playerName, occurrence, rating, timeMs, details }, rank }) => ({
    playerName,
    occurrence,
    rank,
    rating,
    timeMs,
    ...(details && { details })
  }))
}

function withKnownTimes(page: readonly BoardEntry[], last: readonly Folded[]): BoardEntry[] {
  const before = new Map(last.map((entry) => [identity(entry), entry]))
  return page.map((entry) => {
    const same = before.get(identity(entry))
    return same?.rating === entry.rating ? { ...entry, timeMs: same.timeMs } : entry
  })
}

/** Checks that events match the schema and contain each entry once, with the right kind of change. */
function assertSound(events: readonly LeaderboardEntryChanged[], before: readonly Folded[]): void {
  const states = new Map(before.map((entry) => [identity(entry), entry]))
  const published = new Set<string>()
  for (const event of events) {
    LeaderboardEntryChanged.parse(event)
    assert.ok(Math.abs(event.order ?? 0) <= 2 ** 52)
    const key = identity({ playerName: event.playerName, occurrence: event.occurrence ?? 1 })
    assert.ok(!published.has(key), 'an entry has one event')
    published.add(key)
    const state = states.get(key)
    const same = state !== undefined && state.rating === event.rating
    const kind = state === undefined ? 'new' : event.changeType === 'removed' ? 'removed' : same ? 'moved' : 'updated'
    assert.equal(event.changeType, kind)
  }
}
