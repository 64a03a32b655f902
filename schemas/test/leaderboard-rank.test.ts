import { equal, ok } from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { compareMeasures, ranked, type Standing } from '../src/index.js'

const entry = (playerName: string, more: Partial<Standing> = {}): Standing => ({
  playerName,
  occurrence: 1,
  rating: '0',
  timeMs: null,
  statedRank: null,
  order: null,
  step: null,
  ...more
})
const shown = (entries: readonly Standing[]) =>
  ranked(entries).map(({ entry, rank }) => [entry.playerName, rank] as const)

test('scraped entries are ordered by their order key; the rank is the running sum of steps', (t) => {
  const board = [
    entry('cid', { order: 30, step: 2 }),
    entry('ann', { order: -10, step: 1 }),
    entry('bob', { order: 20, step: 0 })
  ]
  t.same(shown(board), [
    ['ann', 1],
    ['bob', 1],
    ['cid', 3]
  ])
  t.end()
})

test('a rank that is lower than the one above it is shown unchanged', (t) => {
  const board = [entry('ann', { order: 1, step: 5 }), entry('bob', { order: 2, step: -3 })]
  t.same(shown(board), [
    ['ann', 5],
    ['bob', 2]
  ])
  t.end()
})

test('imported entries without ranks are ordered by time, then by exact number; equal ones share a rank', (t) => {
  const board = [
    entry('text', { rating: 'n/a' }),
    entry('low', { rating: '9007199254740993' }),
    entry('high', { rating: '9,007,199,254,740,994' }),
    entry('minus', { rating: '-5.25' }),
    entry('slow', { timeMs: 61_000 }),
    entry('fast', { timeMs: 0 }),
    entry('same', { timeMs: 61_000 })
  ]
  t.same(shown(board), [
    ['fast', 1],
    ['same', 2],
    ['slow', 2],
    ['high', 4],
    ['low', 5],
    ['minus', 6],
    ['text', 7]
  ])
  t.end()
})

test('of scores that are better when lower, the lowest is first; a text stays last', (t) => {
  const scores = ['text', '10', '9.5', '1,000', '-2', '10.0']
  t.same(shown(scores.map((rating) => entry(rating, { rating, isAscending: true }))), [
    ['-2', 1],
    ['9.5', 2],
    ['10', 3],
    ['10.0', 3],
    ['1,000', 5],
    ['text', 6]
  ])
  t.end()
})

test('a stated rank is shown unchanged with any ratings', (t) => {
  const board = [entry('ann', { statedRank: 7, rating: '100' }), entry('bob', { statedRank: 2, rating: '1' })]
  t.same(shown(board), [
    ['bob', 2],
    ['ann', 7]
  ])
  t.end()
})

test('measures are a total order', (t) => {
  const measure = fc.record({
    rating: fc.oneof(fc.bigInt().map(String), fc.constantFrom('', 'x', '1,000', '0.5', '-0.5', '00')),
    timeMs: fc.option(fc.nat(5), { nil: null }),
    isAscending: fc.boolean()
  })
  fc.assert(
    fc.property(measure, measure, measure, (a, b, c) => {
      const sign = (n: number) => Math.sign(n)
      equal(sign(compareMeasures(a, b)), -sign(compareMeasures(b, a)) || 0)
      if (compareMeasures(a, b) <= 0 && compareMeasures(b, c) <= 0) ok(compareMeasures(a, c) <= 0)
    }),
    { numRuns: 200, seed: 1 }
  )
  t.end()
})

test('the rank of an entry without order or stated rank is one more than the number of better ones', (t) => {
  const measured = fc.record({ rating: fc.nat(4).map(String), timeMs: fc.option(fc.nat(3), { nil: null }) })
  fc.assert(
    fc.property(fc.array(measured, { maxLength: 12 }), (measures) => {
      const board = measures.map((each, n) => entry(`p${n}`, each))
      for (const { entry: one, rank } of ranked(board)) {
        equal(rank, 1 + board.filter((other) => compareMeasures(other, one) < 0).length)
      }
    }),
    { numRuns: 100, seed: 1 }
  )
  t.end()
})
