import fc from 'fast-check'
import { test } from 'tap'
import { halvesOf, lengthOf, type Range } from '../src/store/range.js'

const stretch = fc.record({ first: fc.nat(1000), length: fc.integer({ min: 1, max: 1000 }) })
const ranges = fc
  .array(stretch, { minLength: 1, maxLength: 4 })
  .map(
    (all): Range => all.map(({ first, length }, partition) => ({ epoch: 1, partition, first, next: first + length }))
  )

const offsetsOf = (range: Range) =>
  range.flatMap(({ partition, first, next }) =>
    Array.from({ length: next - first }, (_, n) => `${partition}/${first + n}`)
  )

test('the halves of a range are of about equal length, and contain each of its offsets once', async () => {
  fc.assert(
    fc.property(ranges, (range) => {
      const halves = halvesOf(range)
      const [half = 0, rest = 0] = halves.map(lengthOf)
      return half - rest >= 0 && half - rest <= 1 && halves.flatMap(offsetsOf).join() === offsetsOf(range).join()
    })
  )
})
