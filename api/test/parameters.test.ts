import { lineText, nameKey, Refusal } from '@gamenet/schemas'
import fc from 'fast-check'
import { test } from 'tap'
import { z } from 'zod'
import {
  date,
  instant,
  integer,
  nameKeys,
  oneOf,
  parseInput,
  playerName,
  resolution,
  shown,
  text,
  texts,
  time,
  timeZone,
  twoNames,
  username
} from '../src/request/parameters.js'
import { readQuery } from '../src/request/query-string.js'
import { window } from '../src/request/window.js'

const days = z.object({ days: integer({ min: 1, max: 30 }).default(7) })

function sentenceOf(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    if (error instanceof Refusal && error.status === 400) return error.message
    throw error
  }
  return 'nothing was refused'
}

test('an integer is plain decimal digits within its range, and nothing else', async (t) => {
  t.same(parseInput(days, {}), { days: 7 })
  t.same(parseInput(days, { days: '30' }), { days: 30 })
  for (const [given, said] of [
    ['', 'days must be an integer from 1 to 30; it is empty.'],
    ['0', 'days must be an integer from 1 to 30; got "0".'],
    ['31', 'days must be an integer from 1 to 30; got "31".'],
    ['-1', 'days must be an integer from 1 to 30; got "-1".'],
    [['1', '2'], 'days must be an integer from 1 to 30; it is given 2 times.'],
    ['1\u0000', 'days must be an integer from 1 to 30; got "1\\u{0}".'],
    ['😀', 'days must be an integer from 1 to 30; got "😀".']
  ] as const) {
    t.equal(
      sentenceOf(() => parseInput(days, { days: given })),
      said
    )
  }
  for (const given of ['1e1', '0x1', '1.0', '01', '+1', ' 1', '1 ', '-0', '１', '1_0', 'NaN', 'Infinity', '١']) {
    t.match(
      sentenceOf(() => parseInput(days, { days: given })),
      /^days must be an integer/,
      given
    )
  }
  t.same(parseInput(z.object({ n: integer({ min: -5, max: 5 }) }), { n: '-5' }), { n: -5 })
  t.equal(
    sentenceOf(() => parseInput(z.object({ n: integer({ min: 0, max: 5 }) }), {})),
    'n must be an integer from 0 to 5; it is missing.'
  )
})

test('an integer reads every safe integer in its range back as it was written', async () => {
  const any = z.object({ n: integer({ min: Number.MIN_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER }) })
  fc.assert(
    fc.property(fc.maxSafeInteger(), (n) => parseInput(any, { n: String(n) }).n === n),
    { seed: 1 }
  )
})

test('any text as any parameter is accepted or refused with 400 and a short sentence without control characters', async () => {
  const all = [
    integer({ min: 1, max: 9 }),
    oneOf(['a', 'b']),
    instant(),
    resolution(),
    texts({ max: 2, example: 'x' }),
    text({ example: 'x' })
  ] as const
  const anyText = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 50 }),
    fc.string({ unit: 'grapheme' }),
    fc.base64String()
  )
  fc.assert(
    fc.property(fc.constantFrom(...all), fc.oneof(anyText, fc.array(anyText, { minLength: 2 })), (schema, given) => {
      try {
        parseInput(z.object({ p: schema as z.ZodType }), { p: given })
        return true
      } catch (error) {
        if (!(error instanceof Refusal)) throw error
        return error.status === 400 && error.message.length < 300 && !/\p{Cc}/u.test(error.message)
      }
    }),
    { numRuns: 500, seed: 1 }
  )
})

test('a name in a path or a parameter is read as boards keep it', (t) => {
  for (const [given, kept] of [
    ['ann', 'ann'],
    [' a  b ', 'a b'],
    ['a\u00a0', 'a\u00a0'],
    ['\u3000a', '\u3000a']
  ]) {
    t.equal(parseInput(z.object({ player: playerName() }), { player: given }).player, kept)
    t.equal(parseInput(z.object({ user: username() }), { user: given }).user, kept)
  }
  for (const given of ['a\tb', 'a\n'])
    t.match(
      sentenceOf(() => parseInput(z.object({ player: playerName() }), { player: given })),
      /^player must be 1 to/
    )
  t.end()
})

test('a long value is shortened in the error', async (t) => {
  t.equal(shown('x'.repeat(10_000)), `"${'x'.repeat(40)}" (the first 40 of 10000 characters)`)
  t.equal(shown('😀'.repeat(40)), `"${'😀'.repeat(40)}"`)
  t.equal(shown('😀'.repeat(65)), `"${'😀'.repeat(40)}" (the first 40 of 65 characters)`, 'limits are stated in these')
  t.equal(shown('a\n\u202e\ud800b'), '"a\\u{a}\\u{202e}\\u{d800}b"')
})

test('an instant has Z or an offset, exists in the calendar and can be stored', async (t) => {
  const at = (given: string) => parseInput(z.object({ from: instant() }), { from: given }).from
  t.equal(at('2026-03-14T20:00:00Z'), Date.UTC(2026, 2, 14, 20))
  t.equal(at('2026-03-14T20:00Z'), Date.UTC(2026, 2, 14, 20))
  t.equal(at('2026-03-14T20:00:00.25Z'), Date.UTC(2026, 2, 14, 20, 0, 0, 250))
  t.equal(at('2026-03-14T20:00:00.1239999Z'), Date.UTC(2026, 2, 14, 20, 0, 0, 123))
  t.equal(at('2026-03-14T20:00:00+02:00'), Date.UTC(2026, 2, 14, 18))
  t.equal(at('2026-03-14T20:00:00-00:30'), Date.UTC(2026, 2, 14, 20, 30))
  t.equal(at('1970-01-01T00:00:00Z'), 0)
  for (const given of [
    '20:00:00Z',
    '20:00:00+00:00',
    '20:00:00-0000',
    '20:00:00+00',
    '22:00:00+0200',
    '18:30:00-0130',
    '18:00:00-02',
    '20:00:00z'
  ]) {
    t.equal(at(`2026-03-14T${given}`), Date.UTC(2026, 2, 14, 20), given)
    t.equal(at(`2026-03-14t${given}`), Date.UTC(2026, 2, 14, 20), given)
  }
  t.equal(at('2026-03-14'), Date.UTC(2026, 2, 14), 'a day is its first instant')
  for (const given of [
    '2026-3-14',
    '2026-02-30',
    '2106-01-01',
    '2026-03-14T20:00:00',
    '2026-02-30T00:00:00Z',
    '2026-03-14T24:00:00Z',
    '2026-03-14T23:60:00Z',
    '2026-03-14 20:00:00Z',
    '2026-03-14T20:00:00 02:00',
    '2026-03-14T20:00:00+24:00',
    '1969-12-31T23:59:59Z',
    '2106-01-01T00:00:00Z',
    '1773518400'
  ]) {
    t.match(
      sentenceOf(() => at(given)),
      /^from must be a day or an ISO 8601 instant/,
      given
    )
  }
  t.match(
    sentenceOf(() => at('2026-03-14T20:00:00 02:00')),
    /; got "2026-03-14T20:00:00 02:00"; the blank was a \+, which an address writes as %2B\.$/
  )
  t.match(
    sentenceOf(() => at('2026-03-14 20:00')),
    /; got "2026-03-14 20:00"\.$/
  )
  t.match(
    sentenceOf(() => parseInput(z.object({ from: date() }), { from: '2026-03-14T20:00:00Z' })),
    /; got "2026-03-14T20:00:00Z"\.$/,
    'a valid instant where a day is expected has lost no plus'
  )
})

test('a day is its first instant in the zone `tz`, also where that is not midnight', async (t) => {
  const input = z.object({ from: instant(), tz: timeZone().default('UTC') })
  const at = (from: string, tz: string) => parseInput(input, { from, tz }).from
  t.equal(at('2026-03-14', 'Europe/Berlin'), Date.UTC(2026, 2, 13, 23))
  t.equal(at('2026-07-01', 'Asia/Kolkata'), Date.UTC(2026, 5, 30, 18, 30))
  t.equal(at('2018-11-04', 'America/Sao_Paulo'), Date.UTC(2018, 10, 4, 3), 'a day without midnight')
  t.equal(at('2026-03-14T20:00:00Z', 'Europe/Berlin'), Date.UTC(2026, 2, 14, 20), 'an instant has its own offset')
  t.match(
    sentenceOf(() => at('2026-03-14', 'Mars/Base')),
    /^tz must be/
  )
  t.equal(parseInput(z.object({ from: instant() }), { from: '2026-03-14', tz: 'Europe/Berlin' }).from % 86_400_000, 0)
  const zones = fc.constantFrom(...Intl.supportedValuesOf('timeZone'))
  const days = fc.integer({ min: 7305, max: 49_000 }).map((n) => new Date(n * 86_400_000).toISOString().slice(0, 10))
  fc.assert(
    fc.property(zones, days, (tz, day) => {
      const shownDay = new Intl.DateTimeFormat('sv', { timeZone: tz, dateStyle: 'short' })
      const ms = at(day, tz)
      return shownDay.format(ms) >= day && shownDay.format(ms - 1) < day
    }),
    { seed: 1, numRuns: 300 }
  )
})

test('every instant in any offset reads as the same milliseconds', async () => {
  const from = z.object({ from: instant() })
  const anyMs = fc.integer({ min: 86_400_000, max: Date.UTC(2105, 11, 30) })
  fc.assert(
    fc.property(anyMs, fc.integer({ min: -839, max: 839 }), (ms, minutes) => {
      const local = new Date(ms + minutes * 60_000).toISOString().slice(0, -1)
      const size = Math.abs(minutes)
      const zone = `${minutes < 0 ? '-' : '+'}${String(Math.floor(size / 60)).padStart(2, '0')}:${String(size % 60).padStart(2, '0')}`
      return parseInput(from, { from: local + zone }).from === ms
    }),
    { seed: 1 }
  )
})

test('the patterns of instants, days and times say what is accepted', async (t) => {
  // A date has a format instead: generators of clients break on a pattern of a date.
  const patternOf = (schema: z.ZodType) => new RegExp(String(z.globalRegistry.get(schema)?.pattern ?? ''))
  const isAccepted = (schema: z.ZodType, given: string) => z.safeParse(schema, given).success
  for (const schema of [instant(), time()] as z.ZodType[]) {
    const isDay = (given: string) => {
      const [day = ''] = given.split(/T/i)
      const exists = !/^\d{4}-/.test(day) || new Date(day).toISOString().startsWith(day)
      // Offsets leave the range on its first and last day.
      return exists && !/^(1970-01-01|2105-12-31)/.test(day)
    }
    fc.assert(
      fc.property(fc.stringMatching(patternOf(schema)).filter(isDay), (given) => isAccepted(schema, given)),
      { seed: 1 }
    )
  }
  for (const [schema, accepted, refused] of [
    [
      instant(),
      ['1970-01-01T00:00:00Z', '2105-12-31T23:59:59.999Z', '2105-12-31', '2026-01-01t00:00:00+0000'],
      ['1969-12-31T23:59:59Z', '2106-01-01T00:00:00Z']
    ],
    [date(), ['1970-01-02', '2105-12-31'], ['1969-12-31', '2106-01-01', '0281-02-17']],
    [time(), ['99999:59.999', '5999999.999', '0:00.000'], ['100000:00.000', '6000000.000', '1:60.000']]
  ] as [z.ZodType, string[], string[]][]) {
    for (const given of [...accepted, ...refused]) {
      const expected = accepted.includes(given)
      t.equal(isAccepted(schema, given), expected, given)
      if (schema.meta()?.format === undefined) t.equal(patternOf(schema).test(given), expected, given)
    }
  }
})

test('names in a list are those that boards keep: no-break spaces are part of a name, blanks around commas are not', async (t) => {
  const keys = (names: string) => parseInput(z.object({ names: nameKeys({ max: 3 }) }), { names }).names
  t.same(keys('ann\u00a0, bob ,ANN'), [nameKey('ann\u00a0'), 'bob', 'ann'])
  const anyName = fc
    .array(fc.oneof(fc.string({ unit: 'grapheme', maxLength: 4 }), fc.constantFrom(' ', '\u00a0', '\u3000')))
    .map((parts) => lineText(parts.join('')))
    .filter((name) => name !== '' && !/[,\p{Cc}\p{Cs}]/u.test(name))
  fc.assert(
    fc.property(anyName, (name) => keys(`a, ${name} ,b`).includes(nameKey(name))),
    { seed: 1 }
  )
  const two = parseInput(z.object({ names: twoNames() }), { names: 'ann\u00a0, ann' }).names
  t.same(two, ['ann\u00a0', 'ann'])
  for (const names of ['ann', 'ann,ANN ', 'ann,bob,cid', 'ann,', ' ,ann']) {
    t.match(
      sentenceOf(() => parseInput(z.object({ names: twoNames() }), { names })),
      /^names must be 2 different names separated by commas, none of them blank/
    )
  }
})

test('a query is decoded strictly, and repeated parameters are reported', async (t) => {
  const read = (url: string) => ({ ...readQuery(url) })
  t.same(read('/x'), {})
  t.same(read('/x?'), {})
  t.same(read('/x?a=1&b=%26%3D+c&a=2&a=3&d'), { a: ['1', '2', '3'], b: '&= c', d: '' })
  t.same(read('/x?a=b=c&&'), { a: 'b=c' })
  // Copying the values so far for each repetition would take minutes.
  t.equal(read(`/x?${'a=1&'.repeat(200_000)}`).a?.length, 200_000)
  t.equal(readQuery('/x?__proto__=1&constructor=2').constructor, '2')
  for (const bad of ['?a=%zz', '?a=%ff', '?%ff=1', '?a=%', '?a=%f0%9f']) {
    t.equal(
      sentenceOf(() => readQuery(`/x${bad}`)),
      'The query is not valid percent-encoded UTF-8.',
      bad
    )
  }
})

const NOW = Date.UTC(2026, 2, 14, 20, 0, 30, 500)
const MINUTE = Date.UTC(2026, 2, 14, 20)

test('a window that ends now starts on a minute and holds the current minute', async (t) => {
  const day = { fromMs: MINUTE - 86_400_000, toMs: MINUTE + 60_000, spanMs: 86_400_000 }
  t.same(window({}, { days: 1 }, NOW), day)
  t.same(window({ hours: 24 }, { hours: 48 }, NOW), day)
  t.same(window({ from: MINUTE - 90_500 }, { days: 1 }, NOW), {
    fromMs: MINUTE - 120_000,
    toMs: MINUTE + 60_000,
    spanMs: 120_000
  })
  t.same(window({ from: MINUTE - 90_500, to: MINUTE + 1 }, { days: 1 }, NOW), {
    fromMs: MINUTE - 90_500,
    toMs: MINUTE + 1,
    spanMs: 90_501
  })
})

test('a window is the same all minute long', async () => {
  const anyInput = fc.oneof(
    fc.record({ days: fc.integer({ min: 1, max: 365 }) }),
    fc.record({ hours: fc.integer({ min: 1, max: 8760 }) }),
    fc.record({ from: fc.integer({ min: 0, max: MINUTE - 1 }) })
  )
  const inMinute = fc.integer({ min: MINUTE, max: MINUTE + 59_999 })
  fc.assert(
    fc.property(anyInput, inMinute, inMinute, (input, first, second) => {
      return JSON.stringify(window(input, { days: 1 }, first)) === JSON.stringify(window(input, { days: 1 }, second))
    }),
    { seed: 1 }
  )
})

test('a contradictory window is refused with the reason', async (t) => {
  const said = (input: Parameters<typeof window>[0]) => sentenceOf(() => window(input, { days: 1 }, NOW))
  t.match(said({ to: MINUTE }), /^to needs from/)
  t.match(said({ from: MINUTE, to: MINUTE }), /^from must be before to; got 2026-03-14T20:00:00.000Z and /)
  t.match(said({ from: NOW }), /^from must be before now when to is not given/)
  t.match(said({ days: 1, from: 0 }), /^days cannot be given together with from/)
  t.match(said({ hours: 1, to: MINUTE }), /^hours cannot be given together with to/)
  t.match(said({ days: 1, from: 0, to: 1 }), /^days cannot be given together with from/)
})
