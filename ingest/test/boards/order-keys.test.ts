import assert from 'node:assert/strict'
import { runs } from '@gamenet/engines/testing'
import fc from 'fast-check'
import { test } from 'tap'
import { orderKeys } from '../../src/boards/order-keys.js'

/** Small numbers, so that keys are nearly always close, equal or exhausted. */
const known = fc.record({
  order: fc.oneof(fc.integer({ min: -8, max: 8 }), fc.integer({ min: -8, max: 8 }), fc.constant(Number.NaN)),
  isPublished: fc.boolean()
})

test('keys rise, and no other choice of keys causes fewer events', async () => {
  fc.assert(
    fc.property(fc.array(known, { maxLength: 9 }), (entries) => {
      const keys = keysOf(entries)
      assert.equal(keys.length, entries.length)
      for (const [place, key] of keys.entries()) {
        assert.ok(Number.isSafeInteger(key))
        assert.ok(place === 0 || key > (keys[place - 1] ?? Number.NaN), `the key at place ${place} rises`)
      }
      const kept = entries.filter(({ order, isPublished }, place) => !isPublished && keys[place] === order).length
      assert.equal(kept, mostThatCanKeep(entries))
    }),
    runs(250)
  )
})

test('new keys are spread: 2^32 apart at the ends, evenly between two keys', async (t) => {
  t.same(keysOf([]), [])
  t.same(keysOf(orders(Number.NaN, Number.NaN)), [2 ** 32, 2 ** 33])
  t.same(keysOf(orders(Number.NaN, Number.NaN, 5, Number.NaN)), [5 - 2 ** 33, 5 - 2 ** 32, 5, 5 + 2 ** 32])
  t.same(keysOf(orders(0, Number.NaN, Number.NaN, Number.NaN, 100)), [0, 25, 50, 75, 100])
})

test('keys beyond 2^52 are not used, and a million entries still get keys', async (t) => {
  t.same(keysOf(orders(2 ** 52 + 2, -(2 ** 52) - 2, Number.MAX_SAFE_INTEGER)), [2 ** 32, 2 ** 33, 2 ** 32 * 3])
  t.same(keysOf(orders(-(2 ** 52), 2 ** 52)), [-(2 ** 52), 2 ** 52])
  const many = orderKeys({
    orders: new Float64Array(2_000_000).fill(Number.NaN),
    isPublished: new Uint8Array(2_000_000)
  })
  t.ok(many.every((key, place) => key > (many[place - 1] ?? 0) && key <= 2 ** 52))
})

type Known = { readonly order: number; readonly isPublished: boolean }

function keysOf(entries: readonly Known[]): number[] {
  return [
    ...orderKeys({
      orders: Float64Array.from(entries, ({ order }) => order),
      isPublished: Uint8Array.from(entries, ({ isPublished }) => Number(isPublished))
    })
  ]
}

function orders(...of: readonly number[]): Known[] {
  return of.map((order) => ({ order, isPublished: false }))
}

/** Tries every choice of entries that keep their keys: between two of them all others must find a whole number. */
function mostThatCanKeep(entries: readonly Known[]): number {
  let most = 0
  for (let choice = 0; choice < 2 ** entries.length; choice += 1) {
    const kept = entries
      .map(({ order, isPublished }, place) => ({ order, isPublished, place }))
      .filter(({ place }) => (choice >> place) % 2 === 1)
    const fits = kept.every(({ order, place }, at) => {
      const above = kept[at - 1]
      return !Number.isNaN(order) && (above === undefined || order - above.order >= place - above.place)
    })
    if (fits) most = Math.max(most, kept.filter(({ isPublished }) => !isPublished).length)
  }
  return most
}
