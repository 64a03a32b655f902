import fc from 'fast-check'
import { test } from 'tap'
import { Estimate } from '../src/rebuild/estimate.js'

/** A projection of a fill: its events, and the actual seconds per event. */
const Filled = fc.record({
  events: fc.integer({ min: 100_000, max: 10_000_000 }),
  cost: fc.double({ min: 1e-7, max: 1e-4, noNaN: true })
})

test('halfway through a fill the estimate is within a quarter of the actual time, although the sample was wrong by a factor', (t) => {
  fc.assert(
    fc.property(
      fc.array(Filled, { minLength: 1, maxLength: 5 }),
      fc.double({ min: 1 / 3, max: 3, noNaN: true }),
      (unit, factor) => {
        const whole = unit.reduce((sum, { events, cost }) => sum + events * cost, 0)
        fc.pre(whole >= 20)
        const estimate = new Estimate(Object.fromEntries(unit.map(({ cost }, n) => [`${n}`, cost * factor])))
        const done = new Map(unit.map((_, n) => [`${n}`, 0]))
        const left = new Map(unit.map(({ events }, n) => [`${n}`, events]))
        let now = 0
        for (const [n, { events, cost }] of unit.entries()) {
          const stepEvents = Math.max(1, Math.floor(whole / 40 / cost))
          for (let at = 0; at < events && now < whole / 2; ) {
            const taken = Math.min(stepEvents, events - at)
            at += taken
            now += taken * cost
            estimate.add(`${n}`, taken, taken * cost, now * 1000)
            done.set(`${n}`, at)
            left.set(`${n}`, events - at)
          }
        }
        const estimated = now + estimate.secondsFor(left)
        const share = estimate.shareOf(done, left)
        return Math.abs(estimated - whole) <= whole / 4 && share >= 0.25 && share <= 0.75
      }
    ),
    { seed: 1 }
  )
  t.pass('whatever the projections cost')
  t.end()
})

/** Instants at which slices end: two are read at once, and one at a time is folded. */
function endsOf(slices: number, { read, fold }: { readonly read: number; readonly fold: number }): number[] {
  const ends: number[] = []
  for (let n = 0; n < slices; n += 1) ends.push(Math.max((ends[n - 2] ?? 0) + read, ends[n - 1] ?? 0) + fold)
  return ends
}

test('from the second of slices that are filled two at once, the estimate is within a quarter of the actual time', (t) => {
  const Slice = fc.record({ read: fc.integer({ min: 1, max: 30 }), fold: fc.integer({ min: 0, max: 30 }) })
  fc.assert(
    fc.property(fc.integer({ min: 8, max: 40 }), Slice, (slices, slice) => {
      const estimate = new Estimate({ a: 1 }, ['a'])
      const ends = endsOf(slices, slice)
      const whole = ends.at(-1) ?? 0
      return ends.every((end, n) => {
        estimate.add('a', 500_000, end - (ends[n - 1] ?? 0), end * 1000)
        const estimated = end + estimate.secondsFor(new Map([['a', (slices - n - 1) * 500_000]]))
        return Math.abs(estimated - whole) <= whole * (n === 0 ? 0.5 : 0.25)
      })
    }),
    { seed: 1 }
  )
  t.pass('whatever reading and folding take')
  t.end()
})

test('at a rate each projection takes the longer of its work and its events, and a wait has its length at this rate', (t) => {
  const estimate = new Estimate({ slow: 0.01, fast: 0.0001 })
  const left = new Map([
    ['slow', 1000],
    ['fast', 9000]
  ])
  t.equal(estimate.remaining(left, 0, 1000), 19)
  t.equal(estimate.remaining(left, 0, 10), 1000)
  estimate.owed = 500
  t.equal(estimate.remaining(left, 0, 1000), 19.5)
  t.equal(estimate.remaining(left, 0, 10), 1050)
  t.ok(Math.abs(estimate.remaining(left, 0) - 10.9) < 1e-9, 'no rate')
  t.end()
})

test('work without a sample is estimated from its own steps, and corrects no other estimate', (t) => {
  const estimate = new Estimate({ b: 1e-6 })
  const left = new Map([
    ['load', 5_000_000],
    ['b', 10_000_000]
  ])
  t.ok(estimate.secondsFor(left) > 10, 'loading takes time before anything is known of it')
  estimate.add('load', 5_000_000, 100, 100_000)
  t.equal(Math.round(estimate.secondsFor(left)), 110)
  t.equal(Math.round(estimate.secondsFor(new Map([['b', 10_000_000]]))), 10)
  t.end()
})

const Step = fc.record({
  projection: fc.constantFrom('a', 'b'),
  events: fc.nat(1_000_000),
  seconds: fc.double({ min: 0, max: 100, noNaN: true })
})

test('after any steps, empty ones too, the completed share lies between 0 and 1, and a time is reported', (t) => {
  const events = fc.record({ a: fc.nat(1_000_000), b: fc.nat(1_000_000) })
  fc.assert(
    fc.property(fc.array(Step, { maxLength: 5 }), events, events, fc.boolean(), (steps, done, left, isMeasured) => {
      const estimate = new Estimate(isMeasured ? { a: 1e-6 } : {})
      for (const [n, { projection, events, seconds }] of steps.entries()) estimate.add(projection, events, seconds, n)
      const [was, willBe] = [new Map(Object.entries(done)), new Map(Object.entries(left))]
      const share = estimate.shareOf(was, willBe)
      const seconds = estimate.remaining(willBe, 1000)
      return share >= 0 && share <= 1 && seconds >= 0 && Number.isFinite(seconds)
    }),
    { seed: 1 }
  )
  t.pass()
  t.end()
})

test('while a step runs, the remaining time decreases, but never to 0', (t) => {
  const estimate = new Estimate({ a: 0.001 })
  const left = new Map([['a', 10_000]])
  t.equal(estimate.remaining(left, 500), 10, 'nothing runs')
  estimate.begin(1000)
  t.equal(estimate.remaining(left, 5000), 6)
  t.equal(estimate.remaining(left, 60_000), 0.5, 'the step takes longer than it was thought to')
  estimate.add('a', 5000, 5, 6000)
  t.equal(estimate.remaining(new Map([['a', 5000]]), 8000), 3, 'the next one began when it was done')
  estimate.rest()
  t.equal(estimate.remaining(new Map([['a', 5000]]), 9000), 5)
  t.end()
})

test('the completed share is estimated from events if their cost is unknown', (t) => {
  const estimate = new Estimate({})
  const share = (done: number, left: number) => estimate.shareOf(new Map([['a', done]]), new Map([['a', left]]))
  t.equal(share(0, 4), 0)
  t.equal(share(1, 3), 0.25)
  t.equal(share(4, 0), 1)
  t.equal(share(0, 0), 1, 'nothing to do')
  t.end()
})
