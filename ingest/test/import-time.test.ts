import { runs } from '@gamenet/engines/testing'
import { instantOf } from '@gamenet/schemas'
import fc from 'fast-check'
import { test } from 'tap'
import { readEpoch, readTime } from '../src/import/import-time.js'

const LAST_MS = Date.UTC(2106, 0, 1) - 1
const EPOCH_MS_MIN = 1e11

function instantFrom(text: string): string {
  const time = readTime(text)
  return 'fault' in time ? `fault: ${time.fault}` : time.instant
}

test('all spellings of a time are the same instant', async (t) => {
  const spellings: [string, string][] = [
    ['2017-02-17T06:00:00Z', '2017-02-17T06:00:00Z'],
    ['2017-02-17t06:00:00z', '2017-02-17T06:00:00Z'],
    ['2017-02-17 06:00:00', '2017-02-17T06:00:00Z'],
    ['2017-02-17T06:00:00', '2017-02-17T06:00:00Z'],
    ['2017-02-17 06:00', '2017-02-17T06:00:00Z'],
    ['2017-02-17', '2017-02-17T00:00:00Z'],
    ['2017-02-17 06:00:00 Z', '2017-02-17T06:00:00Z'],
    ['2017-02-17T06:00:00+02:00', '2017-02-17T04:00:00Z'],
    ['2017-02-17T06:00:00-0530', '2017-02-17T11:30:00Z'],
    ['2017-02-17T06:00:00+02', '2017-02-17T04:00:00Z'],
    ['2017-02-17 06:00:00.5', '2017-02-17T06:00:00.500Z'],
    ['2017-02-17T06:00:00,123456789Z', '2017-02-17T06:00:00.123Z'],
    ['1487311200', '2017-02-17T06:00:00Z'],
    ['1487311200000', '2017-02-17T06:00:00Z'],
    ['1487311200.001', '2017-02-17T06:00:00.001Z'],
    ['2016-02-29 00:00:00', '2016-02-29T00:00:00Z'],
    ['2000-02-29', '2000-02-29T00:00:00Z']
  ]
  for (const [text, instant] of spellings) t.equal(instantFrom(text), instant, text)
})

test('an invalid time is a fault with its reason', async (t) => {
  const faults: [string, RegExp][] = [
    ['2017-02-30 00:00:00', /there is no day 2017-02-30/],
    ['2017-02-29', /there is no day/],
    ['1900-02-29', /there is no day/],
    ['2017-00-10', /there is no day/],
    ['2017-13-10', /there is no day/],
    ['2017-01-00', /there is no day/],
    ['2017-01-01 24:00:00', /no such time of day/],
    ['2017-01-01 23:60:00', /no such time of day/],
    ['2016-12-31 23:59:60', /no such time of day/],
    ['2017-01-01T00:00:00+24:00', /no such UTC offset/],
    ['2017-01-01T00:00:00+01:60', /no such UTC offset/],
    ['1969-12-31 23:59:59', /between 1970 and 2105/],
    ['1970-01-01T00:00:00+01:00', /between 1970 and 2105/],
    ['2106-01-01', /between 1970 and 2105/],
    ['20200101', /ISO 8601/],
    ['0', /ISO 8601/],
    ['99999999999999999', /between 1970 and 2105/],
    ['-1487311200', /expected a time/],
    ['1e10', /expected a time/],
    ['0x58a69aa0', /expected a time/],
    ['17/02/2017', /expected a time/],
    ['yesterday', /expected a time/],
    ['2017-02-17T06:00:00ZZ', /expected a time/],
    ['2017-02-17 06:00:00\n', /expected a time/],
    ['２０１７-02-17', /expected a time/]
  ]
  for (const [text, fault] of faults) t.match(instantFrom(text), fault, JSON.stringify(text))
  for (const number of [Number.NaN, Number.POSITIVE_INFINITY, -1, 0]) t.ok('fault' in readEpoch(number), `${number}`)
})

test('any instant that can be stored is read back from each of its spellings', async (t) => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: LAST_MS }), fc.integer({ min: -14 * 60, max: 14 * 60 }), (ms, offset) => {
      const instant = instantOf(ms)
      const shifted = ms + offset * 60_000
      const spellings = [instant, instant.slice(0, -1), instant.replace('T', ' ').slice(0, -1)]
      if (shifted >= 0 && shifted <= LAST_MS) {
        const zone = `${offset < 0 ? '-' : '+'}${two(Math.trunc(Math.abs(offset) / 60))}:${two(Math.abs(offset) % 60)}`
        spellings.push(instantOf(shifted).slice(0, -1) + zone)
      }
      if (ms >= EPOCH_MS_MIN) spellings.push(String(ms), (ms / 1000).toFixed(3))
      return spellings.every((text) => instantFrom(text) === instant)
    }),
    runs(500)
  )
  t.pass('read back')
})

test('reading any text as a time never throws, and gives a canonical instant or a fault', async (t) => {
  const digits = fc.string({ unit: fc.constantFrom(...'0123456789-:T .Z+'), maxLength: 30 })
  fc.assert(
    fc.property(fc.oneof(digits, fc.string()), (text) => {
      const time = readTime(text)
      return 'fault' in time || instantOf(time.ms) === time.instant
    }),
    runs(500)
  )
  t.pass('all read or refused')
})

function two(value: number): string {
  return String(value).padStart(2, '0')
}
