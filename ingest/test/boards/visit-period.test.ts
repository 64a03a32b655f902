import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { nextPeriodS, restAfterFailureS, restS } from '../../src/boards/visit-period.js'

const DAY_S = 86_400
const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })

test('the next visit is at the earliest after its period, and at the latest after a day', async () => {
  fc.assert(
    fc.property(fc.double({ min: 1, max: DAY_S, noNaN: true }), chance, fc.boolean(), (periodS, by, isFirst) => {
      const rest = restS(periodS, by, isFirst)
      assert.ok(rest >= periodS && rest <= Math.min(DAY_S, 2 * periodS))
    })
  )
})

test('a board that always changes is soon visited at the shortest period, a quiet one once a day', async (t) => {
  const after = (changes: boolean[]) =>
    changes.reduce((periodS, hasChanged) => nextPeriodS(periodS, hasChanged, 300), 300)
  t.equal(after(Array(20).fill(true)), 300)
  t.equal(after(Array(20).fill(false)), DAY_S)
  t.equal(after([...Array(20).fill(false), ...Array(10).fill(true)]), 300, 'and a dead one that comes to life')
  fc.assert(
    fc.property(fc.array(fc.boolean(), { maxLength: 40 }), (changes) => {
      const periodS = after(changes)
      assert.ok(periodS >= 300 && periodS <= DAY_S)
      assert.ok(nextPeriodS(periodS, true, 300) <= periodS && nextPeriodS(periodS, false, 300) >= periodS)
    })
  )
})

test('an unreadable board is visited ever less often, but at least once a day', (t) => {
  const rests = Array.from({ length: 30 }, (_, failures) => restAfterFailureS(failures + 1, 300, 0))
  t.same(rests.slice(0, 4), [600, 1200, 2400, 4800])
  t.ok(rests.every((rest, n) => rest >= (rests[n - 1] ?? 0)))
  t.equal(rests.at(-1), DAY_S)
  t.end()
})

test('boards that were found together are spread over the whole period from their second visit on', (t) => {
  let seed = 1
  const random = () => {
    seed = (seed * 48_271) % 2_147_483_647
    return seed / 2_147_483_647
  }
  // 600 boards that are found at once, always change, and are visited at two requests a second.
  const due = Array.from({ length: 600 }, () => ({ atS: 0, visits: 0 }))
  const visitsByMinute: number[] = []
  for (let atS = 0; atS < 3600; atS += 0.5) {
    const board = due.filter((each) => each.atS <= atS).sort((a, b) => a.atS - b.atS)[0]
    if (board === undefined) continue
    board.atS = atS + restS(600, random(), board.visits === 0)
    board.visits += 1
    const minute = Math.floor(atS / 60)
    visitsByMinute[minute] = (visitsByMinute[minute] ?? 0) + 1
  }
  const later = visitsByMinute.slice(20)
  t.ok(Math.max(...later) <= 90, `never the whole rate again: ${later}`)
  t.ok(Math.min(...later) >= 25, `and never silence: ${later}`)
  t.end()
})
