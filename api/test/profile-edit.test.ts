import { runs } from '@gamenet/engines/testing'
import { isVisible, ProfileChanged } from '@gamenet/schemas'
import fc from 'fast-check'
import { test } from 'tap'
import { z } from 'zod'
import { editProfile } from '../src/routes/profile-edit.js'
import { onPostgres, openPeopleApi } from './people-api.js'

const DEFAULTS = {
  avatar_url: '',
  avatar_hue: null,
  chat_profile_url: '',
  display_name_override: null,
  linked_gamertag: '',
  console_verified: false,
  bio: '',
  social_links: [],
  sync_avatar_from_chat: false
}
const ID = '12345678901234567'
const CHAT = `https://chat.example.org/users/${ID}`
const LINK = { platform: 'videos', url: 'https://videos.example.org/ann?a=1#b', label: 'Laps' }

onPostgres('an owner edits some fields, and all others stay unchanged', async (t, postgres) => {
  const api = await openPeopleApi(t, postgres)
  const ann = api.signIn('Ann', 'LUCKY badger')
  const first = await api.edit('ann', ann, {})
  t.same([first.status, first.body], [200, DEFAULTS])
  t.equal(first.headers['cache-control'], 'private, no-store')
  const fields = {
    avatar_url: 'https://images.example.org/ann.png',
    avatar_hue: 359,
    display_name_override: '  Ann the Lucky 😀  ',
    linked_gamertag: 'Lucky Badger',
    bio: '<script>alert(1)</script>\n\t"; DROP TABLE profile; --'
  }
  const wanted = { ...DEFAULTS, ...fields, display_name_override: 'Ann the Lucky 😀', console_verified: true }
  t.same((await api.edit('Ann', ann, fields)).body, wanted)
  t.same((await api.ask('/api/profile/Ann', { method: 'PUT', body: { bio: 'x', sessionKey: ann } })).body, {
    ...wanted,
    bio: 'x'
  })
  const cleared = { avatar_url: '', avatar_hue: null, display_name_override: null, linked_gamertag: '', bio: '' }
  t.same((await api.edit('Ann', ann, cleared)).body, DEFAULTS)
  t.same((await api.edit('Ann', ann, cleared)).body, DEFAULTS)
  const rows = await api.outbox()
  t.equal(rows.length, 4, 'the session, then three edits that changed something')
  const events = rows.map(({ topic, people, event }) => {
    t.same([topic, people], ['profile', ['ann']])
    return ProfileChanged.parse(event)
  })
  t.match(events[1], {
    username: 'Ann',
    console_verified: true,
    bio: fields.bio,
    changedAt: '2026-03-14T20:00:30.250Z'
  })
  const revisions = events.map(({ revision }) => revision)
  t.same(
    revisions,
    [...new Set(revisions)].sort((a, b) => a - b)
  )
})

onPostgres(
  'every field that is not what it must be is refused by its name, and nothing is changed',
  async (t, postgres) => {
    const api = await openPeopleApi(t, postgres)
    const ann = api.signIn('Ann')
    api.chat.accounts.set(ID, null)
    await api.edit('Ann', ann, { bio: 'before', chat_profile_url: CHAT, social_links: [LINK] })
    const before = await postgres.query('SELECT p.* FROM profile AS p')
    const long = (length: number) => `https://e.org/${'x'.repeat(length - 14)}`
    const addresses = [
      'http://e.org/a.png',
      'javascript:alert(1)',
      'data:image/png;base64,AA',
      '//e.org/a',
      'https://',
      'https:///a',
      'https://e.org/a b',
      'https://e.org/"onerror=',
      'https://e.org/<b>',
      'https://user:pass@e.org/',
      'https://e.org@evil.org/',
      'https://e.org/\u0000',
      'https://e.org/\u202e',
      'https://e.org:99999/',
      'https://127.1/a',
      'https://printer.local/a',
      long(2049),
      5,
      null
    ]
    const odd = [5, true, ['a'], { a: 1 }]
    const cases: Record<string, readonly unknown[]> = {
      avatar_url: addresses,
      avatar_hue: [-1, 360, 1.5, '3', true, [], 1e300],
      display_name_override: [
        '',
        '   ',
        'x'.repeat(65),
        '😀'.repeat(65),
        'a\u0000',
        'a\nb',
        'a\u202eb',
        '\u200b',
        '\u3164',
        '\u2800 \u2800',
        '\u034f',
        '\ud800',
        ...odd
      ],
      linked_gamertag: [' ', 'x'.repeat(65), 'a\u0000', '\u200b', '\u3164', '\u2800', null, ...odd],
      bio: ['x'.repeat(1001), '😀'.repeat(1001), 'a\u0000b', 'a\u0007', '\udc00', 'a\u202eb', 'a\u2066b', null, ...odd],
      chat_profile_url: [null, 'x'.repeat(301), ...odd],
      sync_avatar_from_chat: [null, 'true', 1, 0],
      social_links: [
        null,
        {},
        'x',
        Array(11).fill(LINK),
        ['x'],
        [null],
        [{}],
        [{ platform: 'a' }],
        [{ ...LINK, more: 1 }],
        [{ ...LINK, label: '' }],
        [{ ...LINK, label: null }],
        [{ ...LINK, platform: '' }],
        [{ ...LINK, platform: '\u3164' }],
        [{ ...LINK, label: '\u2800' }],
        [{ ...LINK, platform: 'x'.repeat(65) }],
        ...addresses.map((url) => [{ platform: 'a', url }])
      ],
      username: ['Bob'],
      console_verified: [true],
      unknown: [1],
      '__proto__ ': [1]
    }
    for (const [field, values] of Object.entries(cases)) {
      for (const value of values) {
        const { status, body } = await api.edit('Ann', ann, { bio: 'after', [field]: value })
        const note = `${field} ${JSON.stringify(value)?.slice(0, 60)}`
        t.equal(status, 400, note)
        t.ok(String(body.error).includes(field), `${note}: ${body.error}`)
        t.ok(String(body.error).length < 400)
        t.same(Object.keys(body), ['error'])
      }
    }
    const poisoned = await api.edit('Ann', ann, '{"bio":"after","__proto__":{"bio":"x"}}')
    t.match([poisoned.status, poisoned.body.error], [400, 'the body must not have the field "__proto__".'])
    const twice = await api.edit('Ann', ann, '{"bio":"1","bio":"2"}')
    t.match([twice.status, twice.body.error], [400, 'the body has the field "bio" twice.'])
    const deep = await api.edit('Ann', ann, `{"bio":${'['.repeat(64)}${']'.repeat(64)}}`)
    t.match([deep.status, deep.body.error], [400, 'the body is nested deeper than 32 levels.'])
    const latin = await api.edit('Ann', ann, Buffer.from('{"bio":"schön"}', 'latin1'))
    t.match([latin.status, latin.body.error], [400, 'The body is not valid UTF-8.'])
    t.same(await postgres.query('SELECT p.* FROM profile AS p'), before)
    const most = {
      avatar_url: long(2048),
      bio: '😀'.repeat(1000),
      display_name_override: '😀'.repeat(64),
      linked_gamertag: 'x'.repeat(64),
      social_links: Array(10).fill({ ...LINK, url: long(2048), platform: '😀'.repeat(64), label: '😀'.repeat(64) })
    }
    t.match((await api.edit('Ann', ann, most)).body, most)
    for (const { event } of await api.outbox()) t.equal(ProfileChanged.safeParse(event).success, true)
  }
)

onPostgres('a chat profile is verified if its account exists, and links depend on it', async (t, postgres) => {
  const api = await openPeopleApi(t, postgres)
  const ann = api.signIn('Ann')
  const other = '98765432109876543210'
  api.chat.accounts.set(ID, 'face').set(other, null)
  const edit = (body: unknown) => api.edit('Ann', ann, body)
  const forbidden = /^social_links needs a chat profile/
  for (const links of [[LINK], [], null, 'x', [{ platform: 'a', url: 'javascript:alert(1)' }]]) {
    const refused = await edit({ social_links: links })
    t.match([refused.status, refused.body.error], [403, forbidden], 'before their own faults')
  }
  t.same((await edit({ chat_profile_url: CHAT, social_links: [LINK] })).body, {
    ...DEFAULTS,
    chat_profile_url: CHAT,
    social_links: [LINK]
  })
  t.same(api.chat.asked, [ID])
  const upper = await edit({ chat_profile_url: CHAT.replace('https://chat.example.org', 'HTTPS://Chat.Example.ORG') })
  t.equal(upper.body.chat_profile_url, CHAT)
  t.match((await edit({ chat_profile_url: `https://chat.example.com/users/${other}` })).body, { social_links: [LINK] })
  t.match((await edit({ social_links: [] })).body, { social_links: [] })
  await edit({ social_links: [LINK] })
  t.match((await edit({ chat_profile_url: '', social_links: [LINK] })).status, 403, 'judged by what comes of the edit')
  t.match((await edit({ chat_profile_url: '' })).body, { chat_profile_url: '', social_links: [] })
  t.equal((await edit({ social_links: [LINK] })).status, 403)
})

onPostgres('an address that is not a chat profile is refused, and never fetched', async (t, postgres) => {
  const api = await openPeopleApi(t, postgres)
  const ann = api.signIn('Ann')
  api.chat.accounts.set(ID, null)
  for (const url of [
    `http://chat.example.org/users/${ID}`,
    `https://chat.example.net/users/${ID}`,
    `https://evil.chat.example.org/users/${ID}`,
    `https://chat.example.org.evil.net/users/${ID}`,
    `https://chat.example.org@evil.net/users/${ID}`,
    `https://user:pass@chat.example.org/users/${ID}`,
    `https://chat.example.org:443/users/${ID}`,
    `https://chat.example.org:8443/users/${ID}`,
    `https://chat.example.org./users/${ID}`,
    `https://chаt.example.org/users/${ID}`,
    `https://ｃhat.example.org/users/${ID}`,
    `https://xn--cht-8cd.example.org/users/${ID}`,
    `https://chat。example。org/users/${ID}`,
    `https:/\\chat.example.org/users/${ID}`,
    `https://chat.example.org/users/${ID}/`,
    `https://chat.example.org/users/${ID}?x=1`,
    `https://chat.example.org/users/${ID}#x`,
    `https://chat.example.org/users/../users/${ID}`,
    `https://chat.example.org/users/%31${ID}`,
    `https://chat.example.org/users/${ID}\n`,
    ` ${CHAT}`,
    'https://chat.example.org/users/1234567890123456',
    'https://chat.example.org/users/123456789012345678901',
    `https://chat.example.org/users/${'１'.repeat(17)}`,
    'https://chat.example.org/users/me',
    '127.0.0.1',
    ID
  ]) {
    const { status, body } = await api.edit('Ann', ann, { bio: 'x', chat_profile_url: url })
    t.match([status, body.error], [400, /^chat_profile_url is not a profile address of the chat platform/], url)
  }
  t.same(api.chat.asked, [])
  const unknown = await api.edit('Ann', ann, { bio: 'x', chat_profile_url: CHAT.replace('1', '2') })
  t.match([unknown.status, unknown.body.error], [400, /^chat_profile_url belongs to no account/])
  t.match(await postgres.query('SELECT p.bio, p.chat_id FROM profile AS p'), [{ bio: '', chat_id: null }])
})

onPostgres('a chat platform that fails is 502, and nothing is changed', async (t, postgres) => {
  for (const fault of ['reset', '500', 'html', 'half', 'odd', 'redirect', 'huge'] as const) {
    const api = await openPeopleApi(t, postgres)
    const ann = api.signIn('Ann')
    api.chat.accounts.set(ID, 'face')
    api.chat.fault = fault
    const { status, body } = await api.edit('Ann', ann, { bio: fault, chat_profile_url: CHAT })
    t.match([status, body.error], [502, 'The chat platform is unavailable at the moment; nothing was changed.'], fault)
    t.match(await postgres.query('SELECT p.bio FROM profile AS p'), [{ bio: '' }])
  }
  const away = await openPeopleApi(t, postgres, { people: { chat: undefined } })
  const ann = away.signIn('Ann')
  t.equal((await away.edit('Ann', ann, { chat_profile_url: CHAT })).status, 502)
  t.equal((await away.edit('Ann', ann, { chat_profile_url: 'https://x/users/1' })).status, 400)
  t.equal((await away.edit('Ann', ann, { chat_profile_url: '', bio: 'y' })).status, 200, 'clearing asks nobody')
})

onPostgres('the avatar of the chat account is copied once, and takes precedence', async (t, postgres) => {
  const api = await openPeopleApi(t, postgres)
  const ann = api.signIn('Ann')
  api.chat.accounts.set(ID, 'fäce/1')
  const edit = async (body: unknown) => await api.edit('Ann', ann, body)
  const none = await edit({ sync_avatar_from_chat: true })
  t.match([none.status, none.body.error], [400, /^sync_avatar_from_chat needs a linked chat profile/])
  const avatar_url = 'https://images.example.org/own.png'
  const taken = `https://images.example.org/${ID}/f%C3%A4ce%2F1.png`
  t.match((await edit({ chat_profile_url: CHAT, avatar_url })).body, { avatar_url, sync_avatar_from_chat: false })
  t.match((await edit({ avatar_url: 'https://e.org/x', sync_avatar_from_chat: true })).body, {
    avatar_url: taken,
    sync_avatar_from_chat: true
  })
  t.match((await edit({ bio: 'x' })).body, { avatar_url: taken, sync_avatar_from_chat: false })
  t.match((await edit({ avatar_url, sync_avatar_from_chat: false })).body, { avatar_url })
  api.chat.accounts.set(ID, null)
  t.match((await edit({ sync_avatar_from_chat: true })).body, { avatar_url: '' }, 'the account has none now')
  t.equal((await edit({ chat_profile_url: '', sync_avatar_from_chat: true })).status, 400)
  await edit({ avatar_url })
  api.chat.accounts.clear()
  t.equal((await edit({ sync_avatar_from_chat: true })).status, 400, 'the account is gone')
  t.match(await postgres.query('SELECT p.avatar_url FROM profile AS p'), [{ avatar_url }])
})

onPostgres('of concurrent edits the later one wins in every field, and none is lost', async (t, postgres) => {
  const api = await openPeopleApi(t, postgres)
  const ann = api.signIn('Ann')
  const edit = fc.record(
    {
      bio: fc.string({ maxLength: 3, unit: 'grapheme-ascii' }),
      avatar_hue: fc.option(fc.integer({ min: 0, max: 359 })),
      linked_gamertag: fc.constantFrom('', 'a', 'b')
    },
    { requiredKeys: [] }
  )
  await fc.assert(
    fc.asyncProperty(fc.array(edit, { maxLength: 8 }), async (edits) => {
      const reset = { bio: 'start', avatar_hue: null, linked_gamertag: '' }
      await api.edit('Ann', ann, reset)
      await postgres.script('TRUNCATE outbox')
      const answers = await Promise.all(edits.map((body) => api.edit('Ann', ann, body)))
      const [row] = await postgres.query('SELECT p.bio, p.avatar_hue, p.linked_gamertag FROM profile AS p')
      for (const [n, { status, body }] of answers.entries()) {
        if (status !== 200) throw new Error(`${status}`)
        for (const [field, value] of Object.entries(edits[n] ?? {})) {
          if (body[field] !== value) throw new Error(`an edit answers with another's ${field}`)
        }
      }
      for (const [field, value] of Object.entries(row ?? {})) {
        const given = edits.flatMap((body) => (field in body ? [(body as Record<string, unknown>)[field]] : []))
        const allowed = given.length === 0 ? [reset[field as keyof typeof reset]] : given
        if (!allowed.includes(value)) throw new Error(`${field} is ${value}, given were ${given}`)
      }
      // Each event is the complete state: the next edit changes the result of the one before.
      const events = (await api.outbox()).map(({ event }) => ProfileChanged.parse(event))
      const newest = events.at(-1)
      if (newest !== undefined) {
        const { bio, avatar_hue, linked_gamertag } = newest
        if (JSON.stringify(row) !== JSON.stringify({ bio, avatar_hue, linked_gamertag }))
          throw new Error('ordered otherwise')
      }
      if (events.some(({ revision }, n) => revision <= (events[n - 1]?.revision ?? 0)))
        throw new Error('a revision fell')
    }),
    runs(4)
  )
  t.pass()
})

onPostgres('a verified session makes its user known, and new values are published', async (t, postgres) => {
  const api = await openPeopleApi(t, postgres)
  const ann = api.signIn('Ann', 'Tag')
  const bob = api.signIn('Bob')
  t.equal((await api.reputation('Ann')).status, 404)
  t.equal((await api.reputation('Ann', { key: ann })).status, 200, 'by reading alone')
  t.equal((await api.reputation('Ann')).status, 200)
  t.equal((await api.rate('ANN', bob, { stars: 5 })).status, 200)
  t.match((await api.edit('Ann', ann, { linked_gamertag: 'tag' })).body, { console_verified: true })
  api.auth.sessions.set(ann, { username: 'ANN', gamertag: null })
  api.clock.nowMs += 60_000
  t.match((await api.edit('Ann', ann, {})).body, { console_verified: false })
  const published = (await api.outbox()).filter(({ topic, people }) => topic === 'profile' && people[0] === 'ann')
  t.match(
    published.map(({ event }) => [event.username, event.console_verified]),
    [
      ['Ann', false],
      ['Ann', true],
      ['ANN', false]
    ]
  )
  for (const answer of [
    { username: 'x'.repeat(65) },
    { username: 'a\u0000' },
    { username: 'Ann', gamertag: 'a\u0000' }
  ]) {
    api.auth.sessions.set('odd', answer)
    t.equal((await api.edit('Ann', 'odd', {})).status, 503, 'no answer that makes sense')
  }
})

onPostgres('an erased user returns by their own actions, not by mentions', async (t, postgres) => {
  const api = await openPeopleApi(t, postgres)
  const ann = api.signIn('Ann')
  const bob = api.signIn('Bob')
  await postgres.query("INSERT INTO erasure_salt (salt) VALUES ('\\x00') ON CONFLICT DO NOTHING")
  const recordErasure = async (isDone: boolean) => {
    await postgres.query(
      `INSERT INTO erasure (name_hash, erased_at, done_at)
       SELECT sha256(s.salt || convert_to('ann', 'UTF8')), now(), CASE WHEN $1 THEN now() END FROM erasure_salt AS s
       ON CONFLICT (name_hash) DO UPDATE SET done_at = excluded.done_at`,
      [isDone]
    )
    api.clock.nowMs += 60_000
  }
  await recordErasure(false)
  api.see('Ann')
  t.equal((await api.rate('Ann', bob, { stars: 1 })).status, 404, 'a source that still names them makes nobody')
  t.equal((await api.reputation('Bob', { key: ann })).status, 200)
  t.same(await postgres.query("SELECT p.username FROM profile AS p WHERE p.user_key = 'ann'"), [])
  const early = await api.edit('Ann', ann, { bio: 'x' })
  t.match([early.status, early.headers['retry-after'], early.body.error], [503, '5', /is being erased/])
  t.equal((await api.rate('Bob', ann, { stars: 3 })).status, 503)
  t.same(await postgres.query('SELECT r.stars FROM rating AS r'), [])
  await recordErasure(true)
  t.equal((await api.rate('Bob', ann, { stars: 3 })).status, 200)
  t.same(await postgres.query('SELECT f.returned_at IS NOT NULL AS is_back FROM erasure AS f'), [{ is_back: true }])
  t.equal((await api.edit('Ann', ann, { bio: 'x' })).status, 200)
})

test('the patterns of names and addresses say what is accepted', (t) => {
  const { $defs } = z.toJSONSchema(editProfile.body, { io: 'input', unrepresentable: 'any' })
  const patternOf = (name: string) => {
    const field = $defs?.EditProfileBody?.properties?.[name]
    return new RegExp(z.object({ pattern: z.string() }).parse(field).pattern, 'u')
  }
  const isAccepted = (name: string, given: string) => editProfile.body.safeParse({ [name]: given }).success
  const character = fc.constantFrom(...'\t\n\v\f\r\u0001\x85\u200b\u200f\u2028\u2029\u202f\ufeff\u3000 aé😀')
  const text = fc.oneof(fc.string({ unit: character, maxLength: 6 }), fc.string({ unit: 'binary', maxLength: 6 }))
  fc.assert(
    fc.property(
      text.filter(isVisible),
      fc.constantFrom('display_name_override', 'linked_gamertag'),
      (given, name) => isAccepted(name, given) === patternOf(name).test(given)
    ),
    { seed: 1, numRuns: 2000 }
  )
  for (const [given, expected] of [
    ['', true],
    ['HTTPS://images.example.org/a', true],
    ['http://images.example.org/a', false],
    ['https:///a', false]
  ] as const)
    t.same([isAccepted('avatar_url', given), patternOf('avatar_url').test(given)], [expected, expected], given)
  t.end()
})
