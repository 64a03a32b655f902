import { test } from 'tap'
import { bytesText } from '../src/values/bytes-text.js'
import { durationText } from '../src/values/duration-text.js'

test('bytes are shown in units of powers of 1,000 with three digits', (t) => {
  t.same([0, 999, 1000, 1_536_000, 12_345_678_901, 2 ** 60].map(bytesText), [
    '0 bytes',
    '999 bytes',
    '1 kB',
    '1.54 MB',
    '12.3 GB',
    '1150 PB'
  ])
  t.end()
})

test('a duration is shown in the unit that suits its length', (t) => {
  t.same([0, 1.4, 119, 120, 7199, 11_100].map(durationText), ['1 s', '1 s', '119 s', '2 min', '2 h 0 min', '3 h 5 min'])
  t.end()
})
