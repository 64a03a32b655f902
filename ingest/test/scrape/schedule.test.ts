import assert from 'node:assert/strict'
import { runs } from '@gamenet/engines/testing'
import fc from 'fast-check'
import { test } from 'tap'
import { nextOnGrid, schedule, type Timing } from '../../src/scrape/schedule.js'

const MINUTE = 60_000

/** A clock and timers whose time passes only on request. */
function fixedWorld(random = 0.5) {
  let nowMs = 1000
  let draws = 0
  let planned: { atMs: number; callBack: () => void } | undefined
  const timing: Timing = {
    now: () => nowMs,
    random() {
      draws += 1
      return random
    },
    after(waitMs, callBack) {
      assert.equal(planned, undefined, 'one timer at a time')
      const mine = { atMs: nowMs + waitMs, callBack }
      planned = mine
      return () => {
        if (planned === mine) planned = undefined
      }
    }
  }
  return {
    timing,
    draws: () => draws,
    plannedAtMs: () => planned?.atMs,
    pass(ms: number) {
      nowMs += ms
    },
    /** Advances the time to the next timer, and `lateMs` beyond it (a timer may also fire a little early). */
    fire(lateMs = 0) {
      const due = planned
      assert.ok(due)
      planned = undefined
      nowMs = Math.max(nowMs, due.atMs + lateMs)
      due.callBack()
    }
  }
}

/** Returns the instants at which work began, with these durations of runs and delays of timers. */
async function runsOf(periodMs: number, random: number, steps: readonly { takesMs: number; lateMs: number }[]) {
  const world = fixedWorld(random)
  const beganAtMs: number[] = []
  const plannedAtMs: (number | undefined)[] = []
  let takesMs = 0
  const stop = schedule(
    periodMs,
    async () => {
      beganAtMs.push(world.timing.now())
      world.pass(takesMs)
    },
    world.timing
  )
  for (const step of steps) {
    plannedAtMs.push(world.plannedAtMs())
    takesMs = step.takesMs
    world.fire(step.lateMs)
    await new Promise(setImmediate)
  }
  stop()
  assert.equal(world.plannedAtMs(), undefined, 'nothing is planned after the stop')
  return { beganAtMs, plannedAtMs: plannedAtMs.map(Number), draws: world.draws() }
}

test('the first run begins at once, and all others exactly one period apart, at one offset', async (t) => {
  const steps = Array.from({ length: 6 }, (_, i) => ({ takesMs: i * 9_000, lateMs: 0 }))
  const { beganAtMs, draws } = await runsOf(MINUTE, 0.5, steps)
  t.same(
    beganAtMs,
    [0, 1, 2, 3, 4, 5].map((n) => 1000 + n * MINUTE + (n === 0 ? 0 : 1500))
  )
  t.equal(draws, 1)
})

test('schedules that start together run apart, by at most 3 s or a twentieth of a short period', async (t) => {
  const second = async (periodMs: number, random: number) => {
    const { plannedAtMs } = await runsOf(periodMs, random, Array(2).fill({ takesMs: 1, lateMs: 0 }))
    return Number(plannedAtMs[1]) - 1000 - periodMs
  }
  t.equal(await second(MINUTE, 0), 0)
  t.equal(await second(MINUTE, 0.25), 750)
  t.equal(await second(60 * MINUTE, 0.999), 2997)
  t.equal(await second(1000, 0.5), 25)
})

test('with runs of any duration and timers with any delay, runs stay on the grid, and missed ones are skipped', async () => {
  const step = fc.record({
    takesMs: fc.oneof(fc.nat({ max: 900 }), fc.nat({ max: 100_000 })),
    lateMs: fc.oneof(fc.constant(0), fc.constant(-0.5), fc.nat({ max: 50 }), fc.nat({ max: 1_000_000 }))
  })
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 5000 }), fc.array(step, { minLength: 2 }), async (periodMs, steps) => {
      const { beganAtMs, plannedAtMs } = await runsOf(periodMs, 0, steps)
      for (const [at, plannedMs] of plannedAtMs.entries()) {
        assert.equal((plannedMs - 1000) % periodMs, 0)
        if (at === 0) continue
        const endedMs = Number(beganAtMs[at - 1]) + Number(steps[at - 1]?.takesMs)
        assert.ok(plannedMs > Number(plannedAtMs[at - 1]), 'no instant twice, even when its timer was early')
        assert.ok(plannedMs > endedMs, 'nothing that was missed is made up for')
        assert.ok(plannedMs <= Math.max(endedMs, Number(plannedAtMs[at - 1])) + periodMs, 'no instant left out')
      }
    }),
    runs(100)
  )
})

test('the next run is the next one on the grid, even after a long sleep', (t) => {
  t.equal(nextOnGrid(0, 60, 1), 60)
  t.equal(nextOnGrid(0, 60, 60), 120)
  t.equal(nextOnGrid(0, 60, 1000), 1020)
  t.equal(nextOnGrid(100, 60, 99), 160)
  t.end()
})

test('on the real clock a schedule never runs twice at once, and ends when it is stopped', async (t) => {
  let running = 0
  let runs = 0
  await new Promise<void>((resolve) => {
    const stop = schedule(1, async () => {
      running += 1
      runs += 1
      t.equal(running, 1)
      await new Promise(setImmediate)
      running -= 1
      if (runs === 5) {
        stop()
        resolve()
      }
    })
    const awake = setInterval(() => {}, 1000)
    t.teardown(() => clearInterval(awake))
  })
  t.equal(runs, 5)
})
