import fc from 'fast-check'
import { test } from 'tap'
import { costOf } from '../src/rebuilding/cost.js'

test('what an event costs in long steps is told by two sizes of samples, of whatever steps and events cost', async (t) => {
  const cost = fc.double({ min: 1e-7, max: 1e-3, noNaN: true })
  await fc.assert(
    fc.asyncProperty(
      cost,
      fc.double({ min: 0, max: 10, noNaN: true }),
      fc.array(fc.double({ min: 0, max: 5, noNaN: true }), { maxLength: 2 }),
      fc.integer({ min: 1, max: 8_000_000 }),
      async (event, step, colder, stepEvents) => {
        const seconds = (events: number) => step + event * events
        const few = 20_000
        const samples = [
          // Some are slower, such as the first one.
          ...colder.map((more) => ({ events: few, seconds: seconds(few) + more })),
          ...[few, 200_000].map((events) => ({ events, seconds: seconds(events) }))
        ]
        const told = costOf(samples, stepEvents) * stepEvents
        const right = seconds(stepEvents)
        if (Math.abs(told - right) > 1e-6 * right) t.fail(`${told} s told of a step that takes ${right} s`)
      }
    )
  )
  t.equal(costOf([{ events: 10, seconds: 1 }], 5), 0.1, 'of one size')
  t.equal(costOf([{ events: 10, seconds: 2 }, ...Array(2).fill({ events: 10, seconds: 1 })], 8e6), 0.1)
  const slower = [
    { events: 10, seconds: 2 },
    { events: 100, seconds: 1 }
  ]
  t.equal(costOf(slower, 100), 0.02, 'which costs its keys alone, as far as one can see')
})
