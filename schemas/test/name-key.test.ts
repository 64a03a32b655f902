import { equal } from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { hasOwnKey, isVisible, nameKey, titleKey } from '../src/index.js'

test('names that differ in case, width or composition have one key', async (t) => {
  t.equal(nameKey('HALO 2'), nameKey('halo 2'))
  t.equal(nameKey('Ｈalo'), nameKey('halo'))
  t.equal(nameKey('Pok\u00e9'), nameKey('Poke\u0301'))
  t.not(nameKey('Halo'), nameKey('Halo 2'))
})

test('a title is found with other blanks', async (t) => {
  t.equal(titleKey(' Halo\u00a0 2 '), nameKey('halo 2'))
})

test('the key of a key is the same key', async () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (name) => equal(nameKey(nameKey(name)), nameKey(name))),
    { seed: 1 }
  )
})

test('a name with a key of its own shares it with no name that another user may have', async (t) => {
  for (const name of [
    'Ann',
    'i\u0307x',
    'ΟΔΟΣ',
    'οδος',
    'STRASSE',
    'Straße',
    'STRAẞE',
    'ⴀ',
    'Ა',
    'Ꭰ',
    '李',
    '😀',
    'Poké'
  ])
    t.ok(hasOwnKey(name), name)
  const shared: Readonly<Record<string, string>> = {
    ...{
      İx: 'i\u0307x',
      'I\u0307x': 'i\u0307x',
      ﬁsh: 'fish',
      ＦＩＳＨ: 'fish',
      '\u212aim': 'kim',
      ſam: 'sam',
      '\u212b': 'å'
    },
    ...{
      '\u2126': 'ω',
      ϴ: 'θ',
      ϐ: 'β',
      ǅ: 'dž',
      Ⅷ: 'viii',
      ª: 'a',
      '²': '2',
      'Poke\u0301': 'poké',
      'H\u0331': '\u1e96'
    },
    ...{ 'a\u034f\u0301': 'a\u034f\u0301' }
  }
  for (const [name, key] of Object.entries(shared)) {
    t.equal(nameKey(name), key)
    if (name !== key) t.notOk(hasOwnKey(name), name)
  }
  const byKey = new Map<string, string[]>()
  for (let point = 0; point <= 0x10ffff; point += 1) {
    const letter = String.fromCodePoint(point)
    if (/[\p{Cs}\p{Cn}\p{Co}]/u.test(letter) || !hasOwnKey(letter)) continue
    const key = nameKey(letter)
    byKey.set(key, [...(byKey.get(key) ?? []), letter])
  }
  t.ok(byKey.size > 100_000)
  const other = [...byKey.values()].filter(([one = '', ...cases]) =>
    cases.some((each) => each.toLowerCase() !== one.toLowerCase() || cases.length > 1)
  )
  t.same(other, [], 'at most two letters of one key, which are cases of one')
})

test('names of several letters have a key of their own, or share it only by case', async () => {
  const letter = fc.constantFrom(
    ...'IİiıKkKſsSΣσςßẞǅǆǄﬁfÅåÅΩωῼ',
    '\u0307',
    '\u0301',
    '\u0331',
    'H',
    'J',
    '\u030c',
    '\u200d'
  )
  const name = fc.string({ unit: letter, minLength: 1, maxLength: 4 }).filter(hasOwnKey)
  fc.assert(
    fc.property(
      name,
      name,
      (one, other) => (nameKey(one) === nameKey(other)) === (one.toLowerCase() === other.toLowerCase())
    ),
    { seed: 1, numRuns: 5000 }
  )
})

test('a name without ink is invisible', async (t) => {
  for (const name of [
    '',
    ' ',
    '\u00a0',
    '\u3000',
    '\u200b',
    '\u2060',
    '\u3164',
    '\u115f\u1160',
    '\uffa0',
    '\u2800 \u2800'
  ])
    t.notOk(isVisible(name), JSON.stringify(name))
  for (const name of ['\u034f', '\ufe0f', '\u17b4', '\u180b', '\u{e0100}', '\u0307', '\ud800', '\ufffe'])
    t.notOk(isVisible(name), JSON.stringify(name))
  for (const name of [
    'a',
    '.',
    '_',
    '😀',
    '❤\ufe0f',
    '👨\u200d👩\u200d👧',
    'می\u200cخواهم',
    '한',
    'क\u094d',
    '-\u200b'
  ])
    t.ok(isVisible(name), name)
})
