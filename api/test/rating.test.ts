import { runs } from '@gamenet/engines/testing'
import { averageOf, Refusal } from '@gamenet/schemas'
import fc from 'fast-check'
import { createRatingWriter } from '../src/writes/rating.js'
import { onEachPostgres, onPostgres, openPeopleApi } from './people-api.js'

onEachPostgres('a rating is stored, shown, and replaced by a second one', async (t, postgres) => {
  const api = await openPeopleApi(t, postgres)
  const ann = api.signIn('Ann')
  const bob = api.signIn('Bob', 'Bobby')
  api.see('Cleo')
  const first = await api.rate('cLEO', ann, { stars: 4, comment: '  Good <b>sport</b>\nindeed.  ' })
  const createdAt = '2026-03-14T20:00:30.250Z'
  const viewer = { stars: 4, comment: 'Good <b>sport</b>\nindeed.', createdAt }
  const totals = { average: 4.91, ratingCount: 1, effectiveVotes: 11, priorOnly: false }
  t.same([first.status, first.body], [200, { success: true, reputation: totals, viewer }])
  t.equal(first.headers['cache-control'], 'private, no-store')
  const feedback = [{ raterUsername: 'Ann', ...viewer }]
  t.same((await api.reputation('Cleo')).body, { ...totals, feedback, viewer: null })
  t.same((await api.reputation('Cleo', { key: ann })).body, { ...totals, feedback, viewer })
  t.same((await api.reputation('Cleo', { key: bob })).body, { ...totals, feedback, viewer: null })
  api.clock.nowMs += 1000
  const second = await api.rate('Cleo', ann, { stars: 1 })
  t.match(second.body, {
    reputation: { average: 4.64, ratingCount: 1 },
    viewer: { stars: 1, comment: null, createdAt: '2026-03-14T20:00:31.250Z' }
  })
  await api.rate('Cleo', bob, { stars: 5, comment: '   ' })
  const both = (await api.reputation('Cleo')).body
  t.match(both, {
    average: 4.67,
    ratingCount: 2,
    effectiveVotes: 12,
    feedback: [{ raterUsername: 'Bob', comment: null }, { raterUsername: 'Ann' }]
  })
  t.same(((await api.reputation('Cleo', {}, '?feedbackLimit=1')).body.feedback as unknown[]).length, 1)
  const rows = await api.outbox()
  t.match(
    rows.filter(({ topic }) => topic === 'rating'),
    [
      { people: ['cleo', 'ann'], event: { username: 'Cleo', raterUsername: 'Ann', stars: 4 } },
      { event: { stars: 1, comment: null } },
      { event: { raterUsername: 'Bob', stars: 5 } }
    ]
  )
})

onPostgres('users cannot rate themselves, unknown users, or with anything but 1 to 5 stars', async (t, postgres) => {
  const api = await openPeopleApi(t, postgres)
  const ann = api.signIn('Ann')
  api.see('Bob')
  for (const [path, body, status, sentence] of [
    ['ann', { stars: 5 }, 400, 'Users cannot rate their own profile.'],
    ['ＡＮＮ', { stars: 5 }, 400, 'Users cannot rate their own profile.'],
    ['Nobody', { stars: 5 }, 404, 'No user "Nobody" is known.'],
    [`'; DROP TABLE rating; --`, { stars: 5 }, 404, /^No user/],
    ['a\u0000', { stars: 5 }, 400, /^username must be 1 to 64 characters/],
    ['a\u200b', { stars: 5 }, 400, /^username must be/],
    ['x'.repeat(65), { stars: 5 }, 400, /^username must be/],
    ['Bob', {}, 400, /^stars must be an integer from 1 to 5; it is missing/],
    ...[0, 6, 2.5, '3', true, null, [3], { $gt: 0 }, -1, 1e300].map(
      (stars) => ['Bob', { stars }, 400, /^stars must be an integer from 1 to 5; got/] as const
    ),
    ['Bob', { stars: 3, comment: 'x'.repeat(501) }, 400, /^comment must be text of at most 500 characters/],
    ['Bob', { stars: 3, comment: '😀'.repeat(501) }, 400, /^comment must be/],
    ['Bob', { stars: 3, comment: 'a\u0000b' }, 400, /^comment must be/],
    ['Bob', { stars: 3, comment: 'a\u0007b' }, 400, /^comment must be/],
    ['Bob', { stars: 3, comment: 'a\ud800b' }, 400, /^comment must be/],
    ['Bob', { stars: 3, comment: 5 }, 400, /^comment must be/],
    ['Bob', { stars: 3, comment: ['a'] }, 400, /^comment must be/]
  ] as const) {
    const { status: got, body: answer, headers } = await api.rate(path, ann, body)
    t.equal(got, status, `${path} ${JSON.stringify(body).slice(0, 60)}`)
    t.match(answer.error, sentence)
    t.same(Object.keys(answer), ['error'])
    t.equal(headers['cache-control'], 'no-store')
  }
  t.same(await postgres.query('SELECT r.stars FROM rating AS r'), [], 'nothing is kept')
  const longest = `${'😀'.repeat(250)}${'x'.repeat(250)}`
  const given = await api.rate('Bob', ann, { stars: 3, comment: `${' '.repeat(600)}${longest}\n`, unknown: { a: [1] } })
  t.same([given.status, (given.body.viewer as { comment: string }).comment], [200, longest])
  t.same(((await api.rate('Bob', ann, { stars: 3, comment: null })).body.viewer as { comment: null }).comment, null)
  t.equal((await api.reputation('Nobody')).status, 404)
  t.equal((await api.reputation('x\u0000')).status, 400)
  for (const limit of ['0', '31', '1.5', '', 'x']) {
    const refused = await api.reputation('Bob', { key: ann }, `?feedbackLimit=${limit}`)
    t.match([refused.status, refused.body.error], [400, /^feedbackLimit must be/], limit)
  }
})

onPostgres('a user with too many changes gets 429 with Retry-After, other users do not', async (t, postgres) => {
  const api = await openPeopleApi(t, postgres, { people: { writesPerMinute: 3 } })
  const ann = api.signIn('Ann')
  const bob = api.signIn('Bob')
  api.see('Cleo')
  const spent = async (retryAfter: string) => {
    const refused = await api.rate('Cleo', ann, { stars: 5 })
    t.match(
      [refused.status, refused.headers['retry-after'], refused.body],
      [429, retryAfter, { error: /^A user has at most 3/ }]
    )
  }
  t.equal((await api.rate('Cleo', ann, { stars: 3 })).status, 200)
  t.equal((await api.edit('Ann', ann, { bio: 'x' })).status, 200, 'edits and ratings count together')
  t.equal((await api.edit('Bob', ann, { bio: 'x' })).status, 403, 'what is not hers counts nothing')
  t.equal((await api.rate('Cleo', ann, { stars: 9 })).status, 400, 'one that is refused counts')
  await spent('20')
  t.equal((await api.reputation('Cleo', { key: ann })).status, 200, 'reads have no limit')
  t.equal((await api.rate('Cleo', bob, { stars: 4 })).status, 200)
  api.clock.nowMs += 19_999
  await spent('1')
  api.clock.nowMs += 1
  t.equal((await api.rate('Cleo', ann, { stars: 1 })).status, 200, 'a third of a minute later there is one')
  await spent('20')
  api.clock.nowMs -= 86_400_000
  t.equal((await api.rate('Cleo', ann, { stars: 2 })).status, 200, 'a clock that is set back locks nobody out')
  api.clock.nowMs += 3_600_000
  for (let n = 0; n < 3; n += 1) t.equal((await api.rate('Cleo', ann, { stars: 3 })).status, 200)
  await spent('20')
})

onPostgres('a body is JSON in UTF-8, and unusual JSON changes nothing', async (t, postgres) => {
  const api = await openPeopleApi(t, postgres)
  const ann = api.signIn('Ann')
  api.see('Bob')
  const deep = (levels: number) => `{"stars":3,"x":${'{"x":'.repeat(levels)}1${'}'.repeat(levels)}}`
  for (const [body, status, headers] of [
    ['{"stars":3', 400],
    ['', 400],
    ['[]', 400],
    ['null', 400],
    ['"stars"', 400],
    ['{"stars":3,"__proto__":{"stars":5}}', 400],
    ['{"stars":3,"constructor":{"prototype":{}}}', 400],
    ['{"stars":3,"x":[{"\\u005f_proto__":1}]}', 400],
    ['{"stars":3,"stars":5}', 400],
    ['{"stars":3,"st\\u0061rs":3}', 400],
    [`{"sessionKey":"${ann}","sessionKey":"x","stars":3}`, 400],
    [deep(64), 400],
    [`{"stars":3,"x":${'['.repeat(30_000)}${']'.repeat(30_000)}}`, 400],
    [Buffer.from('{"stars":3,"comment":"schön"}', 'latin1'), 400],
    ['{"stars":3}', 415, { 'content-type': 'application/json; charset=iso-8859-1' }],
    ['stars=3', 415, { 'content-type': 'application/x-www-form-urlencoded' }],
    [`{"stars":3,"comment":"${'x'.repeat(70_000)}"}`, 413]
  ] as const) {
    const answer = await api.ask('/api/profile/Bob/reputation', {
      method: 'POST',
      key: ann,
      body,
      headers: { ...headers }
    })
    t.equal(answer.status, status, String(body).slice(0, 50))
    t.match(answer.body, { error: /\.$/ })
  }
  t.same(await postgres.query('SELECT r.stars FROM rating AS r'), [])
  for (const body of [
    deep(30),
    `{"stars":3,"comment":"\\"stars\\":1, {\\\\","x":"stars","y":["stars","stars",{"stars":1},{"stars":1}]}`,
    '{"stars" :\n3, "x": "__proto__", "a": {"b": 1}, "b": {"a": 1}}'
  ]) {
    t.equal((await api.rate('Bob', ann, body)).status, 200, 'what is not known is ignored')
  }
  const utf8 = { 'content-type': 'application/json; charset="UTF-8"' }
  const named = await api.ask('/api/profile/Bob/reputation', {
    method: 'POST',
    key: ann,
    body: '{"stars":2}',
    headers: utf8
  })
  t.equal(named.status, 200)
})

onEachPostgres('averages equal a plain model, in any order of ratings', async (t, postgres) => {
  const api = await openPeopleApi(t, postgres)
  const names = ['Ann', 'Bob', 'Cleo', 'Dan', 'Eve']
  const keys = new Map(names.map((name) => [name, api.signIn(name)]))
  for (const name of names) api.see(name)
  const rating = fc.record({
    rater: fc.constantFrom(...names),
    user: fc.constantFrom(...names),
    stars: fc.integer({ min: 1, max: 5 })
  })
  const rounds = fc.array(
    fc.uniqueArray(rating, { selector: ({ rater, user }) => `${rater} ${user}`, maxLength: 12 }),
    {
      minLength: 1,
      maxLength: 6
    }
  )
  await fc.assert(
    fc.asyncProperty(rounds, async (steps) => {
      await postgres.script('TRUNCATE rating, outbox')
      for (const name of names) api.versions.recordWrite(['rating', name.toLowerCase()])
      const model = new Map<string, number>()
      for (const step of steps) {
        const answers = await Promise.all(
          step.map(({ user, rater, stars }) => api.rate(user, keys.get(rater) ?? '', { stars }))
        )
        for (const [n, { rater, user, stars }] of step.entries()) {
          if (rater !== user) model.set(`${rater} ${user}`, stars)
          if (answers[n]?.status !== (rater === user ? 400 : 200))
            throw new Error(`${rater} ${user}: ${answers[n]?.status}`)
        }
        // Read directly, and through the cache of answers: no answer may be outdated.
        for (const user of names) {
          const given = [...model].filter(([pair]) => pair.endsWith(` ${user}`)).map(([, stars]) => stars)
          const sum = given.reduce((a, b) => a + b, 0)
          const { body } = await api.reputation(user)
          const wanted = {
            average: Math.round(((50 + sum) / (given.length + 10)) * 100) / 100,
            ratingCount: given.length
          }
          if (body.average !== wanted.average || body.ratingCount !== wanted.ratingCount) {
            throw new Error(`${user}: ${JSON.stringify(body)} instead of ${JSON.stringify(wanted)}`)
          }
          if (averageOf(sum, given.length) !== wanted.average) throw new Error('the schema computes otherwise')
        }
      }
      await outboxHasAll(api, model)
    }),
    runs(3)
  )
  t.pass()
})

/** The newest event of each pair equals the model, and revisions of a pair rise with the ids. */
async function outboxHasAll(api: Awaited<ReturnType<typeof openPeopleApi>>, model: ReadonlyMap<string, number>) {
  const newest = new Map<string, { stars: number; revision: number }>()
  for (const { topic, event } of await api.outbox()) {
    if (topic !== 'rating') continue
    const { raterUsername, username, stars, revision } = event as {
      raterUsername: string
      username: string
      stars: number
      revision: number
    }
    const before = newest.get(`${raterUsername} ${username}`)
    if (before !== undefined && before.revision >= Number(revision)) throw new Error('a revision fell')
    newest.set(`${raterUsername} ${username}`, { stars, revision })
  }
  const published = Object.fromEntries([...newest].map(([pair, { stars }]) => [pair, stars]))
  const kept = Object.fromEntries(model)
  const sorted = (pairs: Record<string, number>) => JSON.stringify(Object.entries(pairs).sort())
  if (sorted(published) !== sorted(kept)) throw new Error(`told ${sorted(published)}, kept ${sorted(kept)}`)
}

onEachPostgres('of many concurrent ratings of one pair the last stored one is shown', async (t, postgres) => {
  const api = await openPeopleApi(t, postgres)
  const ann = api.signIn('Ann')
  api.see('Bob')
  await Promise.all(Array.from({ length: 40 }, (_, n) => api.rate('Bob', ann, { stars: (n % 5) + 1 })))
  const rows = (await api.outbox()).filter(({ topic }) => topic === 'rating')
  const revisions = rows.map(({ event }) => Number(event.revision))
  t.equal(rows.length, 40)
  t.same(
    revisions,
    [...revisions].sort((a, b) => a - b)
  )
  t.match((await api.reputation('Bob')).body, { ratingCount: 1, feedback: [{ stars: rows.at(-1)?.event.stars }] })
})

onEachPostgres('ratings that are stored together have the same answers as separate ones', async (t, postgres) => {
  const api = await openPeopleApi(t, postgres)
  const names = Array.from({ length: 150 }, (_, n) => `User${n}`)
  const keys = names.map((name) => api.signIn(name))
  api.see('Star')
  for (const key of keys) await api.reputation('Star', { key })
  const [, , dead = ''] = names
  await postgres.query('DELETE FROM profile AS p WHERE p.user_key = $1', [dead.toLowerCase()])
  const answers = await Promise.all([
    ...keys.map((key, n) => api.rate('Star', key, { stars: (n % 5) + 1 })),
    api.rate('Nobody', keys[0] ?? '', { stars: 1 }),
    api.rate('User1', keys[0] ?? '', { stars: 1 }),
    api.rate('User1', keys[0] ?? '', { stars: 2 })
  ])
  const statuses = answers.map(({ status }) => status)
  t.same(statuses, [...Array(150).fill(200), 404, 200, 200], 'one whose row is gone is made known again')
  for (const [n, { body }] of answers.slice(0, 150).entries()) {
    t.match(body, { viewer: { stars: (n % 5) + 1 }, reputation: { priorOnly: false } })
  }
  t.match((await api.reputation('Star')).body, { ratingCount: 150, average: averageOf(450, 150) })
  t.match((await api.reputation('User1')).body, { ratingCount: 1, feedback: [{ stars: 2 }] })
  const ratings = (await api.outbox()).filter(({ topic }) => topic === 'rating')
  t.equal(ratings.length, 152)
})

onEachPostgres('only a rating that PostgreSQL refuses fails; those stored with it succeed', async (t, postgres) => {
  await postgres.script(
    "INSERT INTO profile (user_key, username, revision, changed_at) SELECT k, k, 1, now() FROM unnest(ARRAY['a', 'b', 'c']) AS k"
  )
  const writer = createRatingWriter(postgres)
  const rate = (rater: string, stars: number) =>
    writer.write({ userKey: 'a', rater: { userKey: rater, username: rater }, stars, comment: null, nowMs: 0 })
  const [good, bad] = await Promise.allSettled([rate('b', 5), rate('c', 6)])
  t.match(good, { status: 'fulfilled', value: { isUserKnown: true, starsSum: 5, ratingCount: 1 } })
  t.match(bad, { status: 'rejected', reason: { code: '23514' } })
  t.match(await rate('c', 1), { starsSum: 6, ratingCount: 2 })
})

onEachPostgres(
  'while PostgreSQL is away all ratings that wait are refused at once, and later ones kept',
  async (t, postgres) => {
    let asked = 0
    let isAway = true
    const writer = createRatingWriter({
      query: async (sql, values) => {
        asked += 1
        if (isAway) throw new Refusal('engine_away', [], { retryAfterSeconds: 5 })
        return await postgres.query(sql, values)
      }
    })
    const rate = (rater: string) =>
      writer.write({ userKey: 'a', rater: { userKey: rater, username: rater }, stars: 1, comment: null, nowMs: 0 })
    const all = await Promise.allSettled(Array.from({ length: 350 }, (_, n) => rate(`rater${n}`)))
    t.equal(all.filter((each) => each.status === 'rejected' && each.reason.code === 'engine_away').length, 350)
    t.equal(asked, 1, 'no request waits twice for the same thing')
    isAway = false
    t.match(await rate('b'), { isUserKnown: false })
  }
)
