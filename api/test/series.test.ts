import { deepEqual, equal } from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { bucketsTouched, cutAtDays, cutAtHours, seriesWidth, tooManyPoints } from '../src/queries/series.js'
import { DAY_MS, HOUR_MS } from './plain-counts.js'

const START = Date.UTC(2026, 2, 14)
const windowOf = (fromMs: number, spanMs: number) => ({ fromMs, toMs: fromMs + spanMs })
const width = (spanMs: number, fromMs = START, resolution?: 'raw' | number) =>
  seriesWidth(windowOf(fromMs, spanMs), spanMs, resolution)

test('a window of up to 24 hours has samples, a longer one has buckets', async (t) => {
  t.equal(width(1), 0)
  t.equal(width(DAY_MS), 0)
  t.equal(width(DAY_MS + 1), 300)
})

test('a window that ends now has the requested length, without the current minute', async (t) => {
  t.equal(seriesWidth(windowOf(START, DAY_MS + 60_000), DAY_MS, undefined), 0)
})

test('the width is the finest one with at most 2,000 buckets in the window', async (t) => {
  for (const [seconds, next] of [
    [300, 900],
    [900, 3600],
    [3600, 21_600],
    [21_600, 86_400],
    [86_400, 604_800]
  ] as const) {
    // The midnight of a Monday begins a bucket of every default width.
    const aligned = Date.UTC(2026, 2, 9)
    t.equal(width(2000 * seconds * 1000, aligned), seconds, `2,000 buckets of ${seconds} s`)
    t.equal(width(2000 * seconds * 1000 + 1, aligned), next, `a millisecond more than 2,000 buckets of ${seconds} s`)
    t.equal(width(2000 * seconds * 1000, aligned + 1), next, `the same length touches 2,001 buckets of ${seconds} s`)
  }
})

test('a series of more than 2,000 weeks has buckets of weeks', async (t) => {
  t.equal(seriesWidth({ fromMs: 0, toMs: Date.UTC(2105, 0, 1) }, Date.UTC(2105, 0, 1), undefined), 604_800)
})

test('a requested resolution takes precedence', async (t) => {
  t.equal(width(DAY_MS, START, 60), 60)
  t.equal(width(3000 * DAY_MS, START, 'raw'), 0)
  t.equal(width(1, START, 604_800), 604_800)
})

test('the buckets of a window are those that contain one of its instants', async (t) => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 500_000 }), fc.integer({ min: 1, max: 300_000 }), (fromMs, spanMs) => {
      const seconds = 7
      const held = new Set<number>()
      for (let ms = fromMs; ms < fromMs + spanMs; ms += 1000) held.add(Math.floor(ms / 7000))
      held.add(Math.floor((fromMs + spanMs - 1) / 7000))
      return bucketsTouched(windowOf(fromMs, spanMs), seconds) === held.size
    }),
    { seed: 1 }
  )
  t.pass()
})

test('a bucket of a week begins on a Monday', async (t) => {
  const monday = Date.UTC(2026, 2, 9)
  t.equal(bucketsTouched(windowOf(monday, 7 * DAY_MS), 604_800), 1)
  t.equal(bucketsTouched(windowOf(monday - 1, 2), 604_800), 2)
  t.equal(bucketsTouched(windowOf(monday + 3 * DAY_MS - 1, 2), 604_800), 1, 'no bucket begins on a Thursday')
})

test('the parts of a divided window are whole units, and each of its instants is in exactly one', async () => {
  const near = fc.oneof(
    fc.integer({ min: 0, max: 5 * DAY_MS }),
    fc.integer({ min: 0, max: 120 }).map((hours) => hours * HOUR_MS),
    fc
      .tuple(fc.integer({ min: 0, max: 5 }), fc.integer({ min: -1, max: 1 }))
      .map(([day, ms]) => Math.max(0, day * DAY_MS + ms))
  )
  fc.assert(
    fc.property(near, near, (a, b) => {
      fc.pre(a !== b)
      const window = { fromMs: Math.min(a, b), toMs: Math.max(a, b) }
      const hours = cutAtHours(window)
      const days = cutAtDays(window)
      equal(
        [hours.firstHour, hours.lastHour].every((ms) => ms % HOUR_MS === 0 || ms === window.toMs),
        true
      )
      equal(
        [days.firstDay, days.lastDay].every((ms) => ms % DAY_MS === 0 || ms === days.lastHour),
        true
      )
      const wholeHours = hours.lastHour - hours.firstHour
      const wholeDays = days.lastDay - days.firstDay
      // The largest possible part is read from rollups …
      equal(wholeHours, Math.max(0, Math.floor(window.toMs / HOUR_MS) - Math.ceil(window.fromMs / HOUR_MS)) * HOUR_MS)
      equal(wholeDays, Math.max(0, Math.floor(window.toMs / DAY_MS) - Math.ceil(window.fromMs / DAY_MS)) * DAY_MS)
      // … and the boundaries are in order, so that nothing is read twice or omitted.
      const borders = [days.from, days.firstHour, days.firstDay, days.lastDay, days.lastHour, days.to]
      deepEqual(
        borders,
        [...borders].sort((x, y) => x - y)
      )
    }),
    { seed: 1 }
  )
})

test('the refusal of too many points names a resolution that fits', async (t) => {
  const nineYears = { fromMs: Date.UTC(2017, 0, 1), toMs: Date.UTC(2026, 0, 1) }
  t.match(tooManyPoints(nineYears, 60).message, /resolution=60 gives more than 1000000 points.*resolution=300 fits/)
  t.match(tooManyPoints({ fromMs: START, toMs: START + DAY_MS }, 0).message, /resolution=raw .*resolution=60 fits/)
  t.match(
    tooManyPoints({ fromMs: 0, toMs: Date.UTC(2105, 0, 1) }, 300).message,
    /resolution=21600 fits|resolution=3600 fits/
  )
})
