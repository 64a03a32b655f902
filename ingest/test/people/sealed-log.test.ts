import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openEmbeddedLog } from '@gamenet/engines/log'
import {
  achievementUnlockTopic,
  type LogMessage,
  nameKey,
  type PresenceSeen,
  type ProfileChanged,
  presenceTopic,
  profileTopic,
  ratingTopic,
  type Seal
} from '@gamenet/schemas'
import { test } from 'tap'
import { importInWorker, type People, publish } from '../../src/index.js'
import { memoryLog } from '../import-log.js'

const T0 = '2026-03-14T20:00:00Z'
const WORDS = [
  'LuckyBadger',
  'QuietOtter',
  'xX-Sniper-Xx',
  'Halo 2',
  'never again, sadly',
  'plays at night',
  'friends.example'
]

/** Every user except the erased ones has a seal. */
function peopleBut(erased: readonly string[]): People & { dropped: Record<string, number> } {
  const seals = new Map<string, Seal>()
  const dropped: Record<string, number> = {}
  return {
    dropped,
    async seals(usernames) {
      for (const userKey of [...usernames].map(nameKey)) {
        if (erased.includes(userKey) || seals.has(userKey)) continue
        seals.set(userKey, { id: seals.size + 1, key: Buffer.alloc(32, seals.size + 1) })
      }
      return seals
    },
    passedOver(topic, events) {
      dropped[topic] = (dropped[topic] ?? 0) + events
    }
  }
}

const profile: ProfileChanged = {
  username: 'LuckyBadger',
  avatar_url: 'https://friends.example/a.png',
  chat_profile_url: '',
  display_name_override: null,
  linked_gamertag: 'xX-Sniper-Xx',
  console_verified: true,
  bio: 'plays at night',
  social_links: [],
  avatar_hue: 7,
  revision: 1,
  changedAt: T0
}

/** Returns whether the bytes contain a text in any case, as UTF-8, UTF-16, base64 or percent-encoded. */
function traceOf(word: string, bytes: Buffer): string | undefined {
  const texts = [bytes.toString('latin1').toLowerCase(), bytes.toString('utf16le').toLowerCase()]
  const hidden = [0, 1, 2].map((shift) =>
    Buffer.from(' '.repeat(shift) + word)
      .toString('base64')
      .slice(shift === 0 ? 0 : shift + 1, -4)
  )
  const spellings = [word.toLowerCase(), encodeURIComponent(word).toLowerCase()]
  if (spellings.some((spelling) => texts.some((text) => text.includes(spelling)))) return word
  return hidden.some((part) => part.length > 5 && bytes.includes(part)) ? `${word} in base64` : undefined
}

test('a log of events about people, searched byte for byte, has no trace of them', async (t) => {
  const path = join(t.testdir({}), 'log')
  const log = openEmbeddedLog({ path })
  const people = peopleBut([])
  const rating = { username: 'LuckyBadger', raterUsername: 'QuietOtter', stars: 2, comment: 'never again, sadly' }
  const seen: PresenceSeen[] = Array.from({ length: 500 }, (_, n) => ({
    username: n % 2 === 0 ? 'LuckyBadger' : 'QuietOtter',
    gamertag: 'xX-Sniper-Xx',
    state: 'online',
    game: 'Halo 2',
    periodSeconds: 60,
    observedAt: new Date(Date.parse(T0) + n * 60_000).toISOString().replace('.000', '')
  }))
  const source = { source: '/test' }
  await publish(log, presenceTopic, seen, source, people)
  await publish(log, profileTopic, [profile], source, people)
  await publish(log, ratingTopic, [{ ...rating, revision: 2, ratedAt: T0 }], source, people)
  const unlock = { username: 'QuietOtter', achievementId: 1, points: 5, unlockedAt: T0 }
  await publish(log, achievementUnlockTopic, [unlock], source, people)

  // The bytes on the disk are compressed, so the records are searched too.
  const records: Buffer[] = []
  const reading = new AbortController()
  await log.consume({
    topics: ['presence', 'profile', 'rating', 'achievement-unlock'],
    startAt: async () => 0,
    deliver: async (batch) => {
      for (const { key, headers, value } of batch.records) {
        records.push(Buffer.from(JSON.stringify([key, headers])), Buffer.from(value ?? ''))
        const { sealed = '' } = JSON.parse(Buffer.from(value ?? '').toString()) as { sealed?: string }
        records.push(Buffer.from(sealed, 'base64url'))
      }
      if (records.length === 3 * 503) reading.abort()
    },
    signal: reading.signal
  })
  await log.close()
  const files = readdirSync(path).map((name) => readFileSync(join(path, name)))
  const everything = Buffer.concat([...files, ...records])
  t.same(
    WORDS.flatMap((word) => traceOf(word, everything) ?? []),
    []
  )
  t.equal(traceOf('LuckyBadger', Buffer.from(JSON.stringify(profile))), 'LuckyBadger', 'the search finds what is there')
})

test('events about an erased person are not published, and those of others are', async (t) => {
  const log = memoryLog()
  const people = peopleBut(['gone'])
  const seen = (username: string): PresenceSeen => ({ username, state: 'offline', periodSeconds: 60, observedAt: T0 })
  await publish(log, presenceTopic, ['Gone', 'Ann', 'gone', 'Bob'].map(seen), { source: '/test' }, people)
  await publish(log, presenceTopic, ['Gone'].map(seen), { source: '/test' }, people)
  t.same(
    log.of('presence').map(({ key }: LogMessage) => key),
    ['1', '2']
  )
  t.same(people.dropped, { presence: 3 })
  t.equal(log.appends.length, 1, 'nothing is not appended')
  await t.rejects(publish(log, presenceTopic, [seen('Ann')], { source: '/test' }), /no seals were given/)
})

test('an import publishes sealed, and counts rows about an erased person as missing', async (t) => {
  const rows = ['username,gamertag,state,periodSeconds,observedAt']
  for (const username of ['Ann', 'Gone', 'Bob', 'ANN'])
    rows.push(`${username},sniper,online,60,2026-03-14T20:00:0${rows.length}Z`)
  const path = join(t.testdir({ 'seen.csv': `${rows.join('\n')}\n` }), 'seen.csv')
  const log = memoryLog()
  const people = peopleBut(['gone'])
  const result = await importInWorker(
    { topic: 'presence', input: path, fileName: 'seen.csv' },
    { log, people, known: log.known }
  )
  t.match(result, { rowsRead: 4, published: 3, missing: 1, rejected: 0, finished: true })
  t.same(
    log.of('presence').map(({ key }) => key),
    ['1', '2', '1']
  )
  t.same(people.dropped, { presence: 1 })
  t.equal(traceOf('sniper', Buffer.from(JSON.stringify(log.of('presence')))), undefined)
  const alone = { log: memoryLog(), known: log.known }
  const again = { topic: 'presence', input: path, fileName: 'seen.csv', strict: true, set: { game: 'Halo 2' } }
  await t.rejects(importInWorker(again, alone), /without access to seal keys/)
})
