import { test } from 'tap'
import { compareRuns } from '../proof/bench/compare-runs.js'
import type { Result } from '../proof/bench/measurement.js'

const speed = (measured: number, baseline?: number): Result => ({
  what: 'events',
  measured,
  unit: 'events/s',
  ...(baseline === undefined ? {} : { baseline: { what: 'bare', measured: baseline } })
})
const time = (measured: number, baseline?: number): Result => ({ ...speed(measured, baseline), unit: 'ms' })

function compared(before: Result, now: Result): readonly string[] {
  const run = (result: Result) => [{ name: 'load', results: [result] }]
  return compareRuns({ conditions: { scale: 1 }, reports: run(before) }, run(now)).slower
}

test('a figure is named when it is worse beyond noise, in either direction', (t) => {
  t.same(compared(time(100), time(136)), ['load, events: 100 → 136 ms'])
  t.same(compared(speed(136), speed(100)), ['load, events: 136 → 100 events/s'])
  t.same(compared(time(100), time(134)), [])
  t.same(compared(speed(100), speed(1000)), [])
  t.end()
})

test('a ratio decides where both runs have a baseline', (t) => {
  t.same(compared(time(100, 100), time(300, 300)), [], 'a slower machine is slower for both')
  t.same(compared(speed(100, 100), speed(80, 100)), ['load, events: 1 → 0.800 ×'])
  t.same(compared(time(100), time(136, 200)), ['load, events: 100 → 136 ms'])
  t.end()
})

test('figures of only one of the runs are named, unless their measurement was not chosen', (t) => {
  const named = (what: string) => ({ ...time(500), what })
  const before = [
    { name: 'load', results: [named('a'), named('b')] },
    { name: 'skipped', results: [named('c')] }
  ]
  const now = [{ name: 'load', results: [named('b'), named('d')] }, { name: 'other' }]
  t.same(compareRuns({ conditions: { scale: 1 }, reports: before }, now), {
    compared: 1,
    slower: [],
    alone: ['load, d', 'load, a']
  })
  t.end()
})
