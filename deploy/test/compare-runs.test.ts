import { test } from 'tap'
import { slowerThan } from '../proof/bench/compare-runs.js'
import type { Result } from '../proof/bench/measurement.js'

const speed = (measured: number, baseline?: number): Result => ({
  what: 'events',
  measured,
  unit: 'events/s',
  ...(baseline === undefined ? {} : { baseline: { what: 'bare', measured: baseline } })
})
const time = (measured: number, baseline?: number): Result => ({ ...speed(measured, baseline), unit: 'ms' })

function compared(before: Result, now: Result): string[] {
  const run = (result: Result) => [{ name: 'load', results: [result] }]
  return slowerThan({ conditions: { scale: 1 }, reports: run(before) }, run(now))
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

test('a measurement of only one of the runs is not compared', (t) => {
  const now = [{ name: 'load', results: [time(500)] }, { name: 'other' }]
  t.same(slowerThan({ conditions: { scale: 1 }, reports: [{ name: 'load' }] }, now), [])
  t.end()
})
