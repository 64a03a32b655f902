import { deepEqual, notEqual, ok } from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import {
  achievementUnlockTopic,
  decodeEvent,
  encodeEvent,
  instantOf,
  type LogRecord,
  PRESENCE_STATES,
  type PresenceSeen,
  type ProfileRated,
  presenceTopic,
  profileTopic,
  ratingTopic,
  readSealedValue,
  SEAL_KEY_BYTES,
  type Seal,
  topics
} from '../src/index.js'

const anyKey = fc.uint8Array({ minLength: SEAL_KEY_BYTES, maxLength: SEAL_KEY_BYTES })
const anySeal: fc.Arbitrary<Seal> = fc.record({ id: fc.integer({ min: 1, max: 999_999_999_999_999 }), key: anyKey })
const anyName = fc.stringMatching(/^[\p{L}\p{N}\p{S}\p{P} ]{1,64}$/u).filter((name) => [...name].length <= 64)
const anyInstant = fc.integer({ min: 0, max: Date.UTC(2106, 0, 1) - 1 }).map(instantOf)
const anySighting: fc.Arbitrary<PresenceSeen> = fc.record(
  {
    username: anyName,
    gamertag: anyName,
    state: fc.constantFrom(...PRESENCE_STATES),
    game: anyName,
    periodSeconds: fc.integer({ min: 1, max: 86_400 }),
    observedAt: anyInstant
  },
  { requiredKeys: ['username', 'state', 'periodSeconds', 'observedAt'] }
)
const anyRating: fc.Arbitrary<ProfileRated> = fc.record({
  username: anyName,
  raterUsername: anyName,
  stars: fc.integer({ min: 1, max: 5 }),
  comment: fc.option(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 500 })),
  revision: fc.integer({ min: 1 }),
  ratedAt: anyInstant
})
const source = { source: '/test' }

const keysOf = (seals: readonly Seal[]) => {
  const keys = new Map(seals.map(({ id, key }) => [id, key]))
  return (person: number) => keys.get(person)
}
const sealedSighting = (event: PresenceSeen, seal: Seal): LogRecord => ({
  offset: 0,
  ...encodeEvent(presenceTopic, event, source, [seal])
})
const sealedRating = (event: ProfileRated, seals: readonly Seal[]): LogRecord => ({
  offset: 0,
  ...encodeEvent(ratingTopic, event, source, seals)
})
/** Returns the same record as bytes, as a log may deliver it. */
const asBytes = (record: LogRecord): LogRecord => ({ ...record, value: Buffer.from(String(record.value)) })

test('an event about one person is decrypted with the key, as text and as bytes', async (t) => {
  fc.assert(
    fc.property(anySighting, anySeal, (event, seal) => {
      const record = sealedSighting(event, seal)
      const opened = { ok: true, event, source: '/test', importId: '' }
      ok(t.same(decodeEvent(presenceTopic, record, keysOf([seal])), opened))
      ok(t.same(decodeEvent(presenceTopic, asBytes(record), keysOf([seal])), opened))
    }),
    { seed: 1 }
  )
})

test('an event about two people needs the keys of both', async (t) => {
  fc.assert(
    fc.property(
      anyRating,
      fc.uniqueArray(anySeal, { minLength: 2, maxLength: 2, selector: ({ id }) => id }),
      (event, seals) => {
        const record = sealedRating(event, seals)
        ok(t.match(decodeEvent(ratingTopic, record, keysOf(seals)), { ok: true, event }))
        for (const seal of seals) {
          ok(t.match(decodeEvent(ratingTopic, record, keysOf([seal])), { ok: false, isErased: true }))
        }
        ok(t.match(decodeEvent(ratingTopic, record), { ok: false, isErased: true }))
      }
    ),
    { seed: 1 }
  )
})

test('an event sealed twice is the same message; another event or key gives another one', async () => {
  fc.assert(
    fc.property(anySighting, anySeal, anyKey, (event, seal, otherKey) => {
      deepEqual(sealedSighting(event, seal), sealedSighting({ ...event }, seal))
      const other = { ...event, periodSeconds: (event.periodSeconds % 86_400) + 1 }
      notEqual(sealedSighting(other, seal).value, sealedSighting(event, seal).value)
      fc.pre(Buffer.compare(otherKey, seal.key) !== 0)
      notEqual(sealedSighting(event, { ...seal, key: otherKey }).value, sealedSighting(event, seal).value)
    }),
    { seed: 1 }
  )
})

test('a message that was sealed with another key, or has a changed or missing byte, is not an event', async (t) => {
  const unreadable = {
    ok: false,
    isErased: undefined,
    reason: /^the message (cannot be decrypted|is not sealed|has no value)/
  }
  fc.assert(
    fc.property(anySighting, anySeal, anyKey, fc.nat(), (event, seal, otherKey, at) => {
      const record = sealedSighting(event, seal)
      fc.pre(Buffer.compare(otherKey, seal.key) !== 0)
      ok(
        t.match(
          decodeEvent(presenceTopic, record, () => otherKey),
          unreadable
        )
      )
      const value = String(record.value)
      const { sealed = '' } = readSealedValue(value) ?? {}
      const bytes = Buffer.from(sealed, 'base64url')
      bytes.writeUInt8(bytes.readUInt8(at % bytes.length) ^ (1 + (at % 255)), at % bytes.length)
      const changed = value.replace(sealed, bytes.toString('base64url'))
      ok(t.match(decodeEvent(presenceTopic, { ...record, value: changed }, keysOf([seal])), unreadable))
      const torn = value.slice(0, at % value.length)
      ok(t.match(decodeEvent(presenceTopic, { ...record, value: torn }, keysOf([seal])), unreadable))
      const cut = value.replace(sealed, sealed.slice(0, at % sealed.length))
      ok(t.match(decodeEvent(presenceTopic, { ...record, value: cut }, keysOf([seal])), unreadable))
    }),
    { seed: 1 }
  )
})

test('a value under another event id or topic is not an event, with or without its version byte', async (t) => {
  const unreadable = {
    ok: false,
    isErased: undefined,
    reason: /^the message (cannot be decrypted|is not sealed)/
  }
  const anyMove = fc.constantFrom<(record: LogRecord) => LogRecord>(
    (record) => record,
    (record) => ({ ...record, value: String(record.value).replace('"sealed":"1.', '"sealed":"') })
  )
  fc.assert(
    fc.property(anySighting, anySeal, anyInstant, anyMove, (event, seal, instant, move) => {
      fc.pre(instant !== event.observedAt)
      const record = sealedSighting(event, seal)
      const other = sealedSighting({ ...event, observedAt: instant }, seal)
      const moved = move({ ...other, value: record.value })
      ok(t.match(decodeEvent(presenceTopic, moved, keysOf([seal])), unreadable))
      const { ce_id: _, ...headers } = record.headers
      ok(t.match(decodeEvent(presenceTopic, move({ ...record, headers }), keysOf([seal])), unreadable))
      // An attacker may write the type that the other topic expects.
      const retyped = { ...record.headers, ce_type: `gamenet.profile.v${profileTopic.version}` }
      ok(t.match(decodeEvent(profileTopic, move({ ...record, headers: retyped }), keysOf([seal])), unreadable))
      const spelled = { ...retyped, ce_id: String(record.headers.ce_id).replace('presence/', 'profile/') }
      ok(t.match(decodeEvent(profileTopic, move({ ...record, headers: spelled }), keysOf([seal])), unreadable))
    }),
    { seed: 1 }
  )
})

test('one key seals one text for two places with two vectors', async (t) => {
  const vectorOf = (value: LogRecord['value']) => readSealedValue(value)?.sealed.slice(0, 16)
  const seals = [1, 2].map((id) => ({ id, key: Buffer.alloc(32, 1) }))
  const event = { username: 'Ann', state: 'online', periodSeconds: 60, observedAt: '2026-03-14T20:00:00Z' } as const
  const [first, second] = seals.map((seal) => vectorOf(sealedSighting(event, seal).value))
  t.not(first, second)
})

test('a seal of a newer program is refused as such', async (t) => {
  const seal = { id: 17, key: Buffer.alloc(32, 1) }
  const event = { username: 'Ann', state: 'online', periodSeconds: 60, observedAt: '2026-03-14T20:00:00Z' } as const
  const record = sealedSighting(event, seal)
  const value = String(record.value).replace('"sealed":"1.', '"sealed":"2.')
  t.match(decodeEvent(presenceTopic, { ...record, value }, keysOf([seal])), {
    ok: false,
    reason: /sealed in version 2, newer than this program/
  })
})

test('a plain event about a person is not an event', async (t) => {
  const event = { username: 'Ann', state: 'online', periodSeconds: 60, observedAt: '2026-03-14T20:00:00Z' } as const
  const record = { ...sealedSighting(event, { id: 1, key: new Uint8Array(32) }), value: JSON.stringify(event) }
  t.match(
    decodeEvent(presenceTopic, record, () => new Uint8Array(32)),
    { ok: false, reason: /is not sealed/ }
  )
})

test('a message contains only the numbers of its people, not their names', async (t) => {
  const seals = [
    { id: 17, key: Buffer.alloc(32, 1) },
    { id: 4, key: Buffer.alloc(32, 2) }
  ]
  const record = sealedRating(
    {
      username: 'LuckyBadger',
      raterUsername: 'QuietOtter',
      stars: 1,
      comment: 'never again',
      revision: 9,
      ratedAt: '2026-03-14T20:00:00Z'
    },
    seals
  )
  t.equal(record.key, '17')
  t.equal(record.headers.ce_id, 'rating/17/4/9@2026-03-14T20:00:00Z')
  const everything = JSON.stringify(record).toLowerCase()
  for (const word of ['luckybadger', 'quietotter', 'never', 'stars']) t.notOk(everything.includes(word), word)
})

test('every topic about people is sealed, and its identity does not reveal them', async (t) => {
  t.same(
    topics.filter((topic) => topic.people !== undefined),
    [presenceTopic, profileTopic, ratingTopic, achievementUnlockTopic]
  )
  const event = { achievementId: 3, points: 10, unlockedAt: '2026-03-14T20:00:00Z', username: 'Ann' }
  const sealed = encodeEvent(achievementUnlockTopic, event, source, [{ id: 5, key: new Uint8Array(32) }])
  t.equal(sealed.headers.ce_id, 'achievement-unlock/5/3@2026-03-14T20:00:00Z')
  t.throws(() => encodeEvent(achievementUnlockTopic, event, source), /about 1 people and got the seals of 0/)
  t.throws(() => encodeEvent(achievementUnlockTopic, event, source, [{ id: 5, key: new Uint8Array(16) }]), /16 bytes/)
})
