import fc from 'fast-check'
import { test } from 'tap'
import { Pace } from '../src/rebuild/fillers.js'

const Step = fc.record({
  events: fc.integer({ min: 1, max: 500_000 }),
  workMs: fc.integer({ min: 0, max: 20_000 }),
  rate: fc.integer({ min: 100, max: 1_000_000 })
})

test('a fill has its rate on average, whatever its steps take and however often the rate is read or changed', async (t) => {
  const property = fc.property(
    fc.array(Step, { maxLength: 20 }),
    fc.integer({ min: 1, max: 5000 }),
    (steps, lookSeconds) => {
      let now = 1000
      const pace = new Pace(now)
      for (const { events, workMs, rate } of steps) {
        const begun = now
        now += workMs
        pace.took(events)
        for (let left = pace.waitMs(rate, now); left > 0; left = pace.waitMs(rate, now))
          now += Math.min(left, lookSeconds * 1000)
        // Work slower than the rate delays nothing, and earns nothing for later steps.
        const atRate = (events / rate) * 1000
        const expected = Math.max(workMs, atRate)
        if (Math.abs(now - begun - expected) > 1e-3 * expected + 1)
          throw new Error(`${now - begun} ms, not ${expected}`)
      }
    }
  )
  fc.assert(property, { seed: 7 })
  const pace = new Pace(0)
  pace.took(1e9)
  t.equal(pace.waitMs(null, 0), 0, 'no rate')
  t.equal(pace.waitMs(1, 0), 0, 'what was filled without one does not count')
})
