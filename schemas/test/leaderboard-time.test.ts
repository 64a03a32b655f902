import { equal } from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { millisecondsOfRawScore, millisecondsOfTime, timeText } from '../src/index.js'

test('the text of a time is parsed to the same time', (t) => {
  fc.assert(
    fc.property(fc.nat(599_999_999), (ms) => {
      equal(millisecondsOfTime(timeText(ms)), ms)
    }),
    { numRuns: 200, seed: 1 }
  )
  t.equal(timeText(0), '0:00.000')
  t.equal(timeText(83_456), '1:23.456')
  t.equal(timeText(3_600_000), '60:00.000')
  t.end()
})

test('text that is not a time has no milliseconds', (t) => {
  for (const text of [
    '',
    '1:60.000',
    '1:2.345',
    '1:02.34',
    '-1:02.345',
    '1:02.345 ',
    '1:02,345',
    '83456',
    '1e1:00.000'
  ]) {
    t.equal(millisecondsOfTime(text), undefined, JSON.stringify(text))
  }
  t.equal(millisecondsOfTime('01:02.345'), 62_345)
  t.end()
})

test('a raw score is a time from zero to an hour', (t) => {
  t.equal(millisecondsOfRawScore('2147483647'), 0)
  t.equal(millisecondsOfRawScore('2143883647'), 3_600_000)
  t.equal(millisecondsOfRawScore('2143883646'), undefined)
  t.equal(millisecondsOfRawScore('2147483648'), undefined)
  t.equal(millisecondsOfRawScore('-2147483647'), undefined)
  t.equal(millisecondsOfRawScore('2,147,483,647'), undefined)
  t.end()
})
