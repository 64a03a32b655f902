import { Refusal } from '@gamenet/schemas'
import { onPostgres, openPeopleApi, type PeopleApi } from './people-api.js'
import type { Fault } from './support/servers.js'
import { logOfLines } from './support/test-app.js'

const TALK = '/api/profile/Bob/reputation'

onPostgres('a request is refused in the order: body, key, session, owner, then the rest', async (t, postgres) => {
  const api = await openPeopleApi(t, postgres)
  const ann = api.signIn('Ann')
  api.see('Bob')
  const patch = (path: string, body: unknown, key?: string) =>
    api.ask(path, { method: 'PATCH', body, ...(key === undefined ? {} : { key }) })
  const put = (path: string, body: unknown, key: string) => api.ask(path, { method: 'PUT', body, key })
  const post = (body: unknown, key?: string) =>
    api.ask(TALK, { method: 'POST', body, ...(key === undefined ? {} : { key }) })
  for (const [what, answer, status, sentence] of [
    ['no JSON before no key', await post('{'), 400, 'The body is not valid JSON.'],
    ['an array before no key', await post([]), 400, /^the body must be a JSON object/],
    ['no key before wrong stars', await post({ stars: 9 }), 400, /^A session key is needed/],
    ['an empty key is none', await post({ stars: 9, sessionKey: '' }, ''), 400, /^A session key is needed/],
    ['a key that is not text is none', await post({ sessionKey: 5 }), 400, /^A session key is needed/],
    ['nor with a header', await post({ stars: 3, sessionKey: [ann] }, ann), 400, /^sessionKey must be /],
    ['a bad session before wrong stars', await post({ stars: 9 }, 'nobody'), 401, /^The session is invalid/],
    ['a bad session before the owner', await patch('/api/profile/Bob', { x: 1 }, 'nobody'), 401, /ended/],
    ['the owner before a wrong field', await patch('/api/profile/Bob', { x: 1 }, ann), 403, /is not of "Bob"/],
    ['the owner, known or not', await put('/api/profile/Nobody', { x: 1 }, ann), 403, /is not of "Nobody"/],
    ['no owner at all', await put('/api/profile/%00', { x: 1 }, ann), 403, /is not of/],
    ['then the field', await put('/api/profile/ANN', { x: 1 }, ann), 400, /^"x" is not a known field/],
    ['then the stars', await post({ stars: 9 }, ann), 400, /^stars must be/]
  ] as const) {
    t.equal(answer.status, status, what)
    t.match(answer.body, { error: sentence }, what)
  }
})

onPostgres('a key is sent by header, body or query, and the first of these counts', async (t, postgres) => {
  const api = await openPeopleApi(t, postgres)
  const ann = api.signIn('Ann')
  const eve = api.signIn('Eve')
  api.see('Bob')
  const rate = (stars: number, given: { header?: string; body?: string; query?: string }) =>
    api.ask(`${TALK}${given.query === undefined ? '' : `?sessionKey=${given.query}`}`, {
      method: 'POST',
      body: { stars, ...(given.body === undefined ? {} : { sessionKey: given.body }) },
      ...(given.header === undefined ? {} : { key: given.header })
    })
  t.equal((await rate(1, { header: ann, body: eve, query: 'nobody' })).status, 200)
  t.equal((await rate(2, { body: eve, query: ann })).status, 200)
  t.equal((await rate(3, { header: 'nobody', body: ann, query: ann })).status, 401)
  t.equal((await rate(4, { header: '', body: 'nobody', query: ann })).status, 401)
  t.equal((await rate(5, { query: ann })).status, 400, 'the query counts for reading alone')
  const { feedback } = (await api.reputation('Bob')).body as { feedback: { raterUsername: string; stars: number }[] }
  t.same(Object.fromEntries(feedback.map(({ raterUsername, stars }) => [raterUsername, stars])), { Ann: 1, Eve: 2 })
  const starsOf = async (headers: Record<string, string>, query: string) =>
    ((await api.reputation('Bob', { headers }, query)).body.viewer as { stars: number } | null)?.stars
  t.equal(await starsOf({}, `?sessionKey=${ann}`), 1)
  t.equal(await starsOf({ 'x-session-key': eve }, `?sessionKey=${ann}`), 2)
  t.equal(await starsOf({ 'x-session-key': 'nobody' }, `?sessionKey=${ann}`), undefined)
  t.equal(await starsOf({}, `?sessionKey=${ann}&sessionKey=${ann}`), undefined, 'given twice it is none')
  t.equal(await starsOf({}, '?sessionKey='), undefined)
})

onPostgres('a username that only looks like another one is not a session', async (t, postgres) => {
  const { logger, lines } = logOfLines()
  const api = await openPeopleApi(t, postgres, { logger })
  const fish = api.signIn('fish')
  api.see('fish')
  api.see('Bob')
  t.equal((await api.edit('fish', fish, { bio: 'mine' })).status, 200)
  api.see('i\u0307x')
  for (const username of ['ﬁsh', 'ＦＩＳＨ', 'fis\u{1d42f}', 'İx', '\u115f', '\u2800', ' ']) {
    const key = api.signIn(username)
    const refused = { status: 403, body: { error: /^The username ".*" has characters that only look like others/ } }
    for (const owner of ['fish', 'i\u0307x'])
      t.match(await api.edit(owner, key, { bio: 'stolen' }), refused, `${owner} by ${username}`)
    t.match(await api.rate('Bob', key, { stars: 1 }), refused, username)
    t.match(await api.reputation('Bob', { key }), { status: 200, body: { viewer: null } }, username)
  }
  t.match(await api.reputation('ﬁsh'), { status: 200 }, 'a lookup by path stays')
  t.same(lines, [], 'the log does not name them')
})

onPostgres('a gamertag that only looks like another one verifies no link', async (t, postgres) => {
  const api = await openPeopleApi(t, postgres)
  const eve = api.signIn('Eve', 'Ａｎｎ')
  for (const linked of ['Ann', 'Ａｎｎ']) {
    t.match(await api.edit('Eve', eve, { linked_gamertag: linked }), { status: 200, body: { console_verified: false } })
  }
  const ann = api.signIn('Ann', 'Ann')
  t.match((await api.edit('Ann', ann, { linked_gamertag: 'ANN' })).body, { console_verified: true })
  const published = (await api.outbox()).filter(({ topic }) => topic === 'profile').map(({ event }) => event)
  t.same(
    published.filter((event) => event.console_verified).map(({ username }) => username),
    ['Ann']
  )
})

onPostgres('an impossible key is not checked, and is not a session', async (t, postgres) => {
  const api = await openPeopleApi(t, postgres)
  api.see('Bob')
  for (const key of [
    'x'.repeat(513),
    'x'.repeat(10_000),
    'two words',
    'schön',
    '\ud800',
    "'; DROP TABLE profile; --",
    'a\r\nX-Admin: 1'
  ]) {
    const answer = await api.ask(TALK, { method: 'POST', body: { stars: 3, sessionKey: key } })
    t.match([answer.status, answer.body.error], [401, /^The session is invalid/], key.slice(0, 20))
    if (/^[\x20-\x7e]+$/.test(key)) t.equal((await api.rate('Bob', key, { stars: 3 })).status, 401)
    const read = await api.reputation('Bob', {}, `?sessionKey=${encodeURIComponent(Buffer.from(key).toString())}`)
    t.match([read.status, read.body], [200, { viewer: null }])
  }
  t.same(api.auth.asked, [])
  t.equal((await api.rate('Bob', 'x'.repeat(512), { stars: 3 })).status, 401)
  t.same(api.auth.asked, ['x'.repeat(512)])
})

onPostgres(
  'a valid session is cached for a minute, an invalid one for ten seconds, and one request runs at a time',
  async (t, postgres) => {
    const api = await openPeopleApi(t, postgres)
    const ann = api.signIn('Ann')
    let release = (): void => undefined
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    api.auth.hold = () => held
    const many = Array.from({ length: 20 }, () => api.edit('Ann', ann, {}))
    for (let turns = 0; api.auth.asked.length === 0 && turns < 1e6; turns += 1) await new Promise(setImmediate)
    release()
    t.same(
      (await Promise.all(many)).map(({ status }) => status),
      Array(20).fill(200)
    )
    t.equal(api.auth.asked.length, 1)
    api.auth.sessions.clear()
    api.clock.nowMs += 59_999
    t.equal((await api.edit('Ann', ann, {})).status, 200)
    api.clock.nowMs += 1
    t.equal((await api.edit('Ann', ann, {})).status, 401)
    api.signIn('Ann')
    api.clock.nowMs += 9999
    t.equal((await api.edit('Ann', ann, {})).status, 401)
    t.equal(api.auth.asked.length, 2)
    api.clock.nowMs += 1
    t.equal((await api.edit('Ann', ann, {})).status, 200)
    t.equal(api.auth.asked.length, 3)
    const metrics = await api.registry.metrics()
    t.match(metrics, /gamenet_session_checks_total\{judgement="invalid"\} 2/)
    t.match(metrics, /gamenet_session_checks_total\{judgement="valid"\} 2/)
  }
)

onPostgres(
  'an auth service that fails is 503 with Retry-After, never 401, and is left alone for a while',
  async (t, postgres) => {
    const faults: Fault[] = ['reset', '500', 'html', 'half', 'redirect', 'huge', 'echo']
    for (const fault of faults) {
      const api = await openPeopleApi(t, postgres)
      const ann = api.signIn('Ann')
      api.see('Bob')
      api.auth.fault = fault
      const answer = await api.edit('Ann', ann, {})
      t.match([answer.status, answer.headers['retry-after']], [503, '5'], fault)
      t.equal(answer.body.error, 'The auth service is unavailable at the moment; retry shortly.')
      const read = await api.reputation('Bob', { key: ann })
      t.match(
        [read.status, read.body, read.headers['cache-control']],
        [200, { viewer: null }, 'private, no-store'],
        fault
      )
      for (let n = 0; n < 10; n += 1) t.equal((await api.edit('Ann', ann, {})).status, 503)
      t.equal(api.auth.asked.length, 5, 'after five failures in a row nothing is asked')
    }
    const api = await openPeopleApi(t, postgres, { people: { authUrl: undefined } })
    api.see('Bob')
    t.equal((await api.edit('Ann', 'key', {})).status, 503, 'nor where there is none')
    t.match((await api.reputation('Bob', { key: 'key' })).body, { viewer: null })
    t.equal((await api.ask('/api/profile/Ann', { method: 'PATCH', body: {} })).status, 400, 'no key comes first')
  }
)

onPostgres(
  'while the auth service is unavailable, a key that was good keeps working for five minutes',
  async (t, postgres) => {
    const api = await openPeopleApi(t, postgres)
    const [ann, eve] = [api.signIn('Ann'), api.signIn('Eve')]
    api.see('Bob')
    t.equal((await api.edit('Ann', ann, {})).status, 200)
    t.equal((await api.edit('Eve', eve, {})).status, 200)
    api.auth.fault = 'reset'
    api.clock.nowMs += 299_999
    for (let n = 0; n < 10; n += 1) t.equal((await api.edit('Ann', ann, {})).status, 200)
    t.equal((await api.edit('Ann', 'unknown', {})).status, 503)
    t.equal(api.auth.asked.length, 7, 'the breaker is open')
    api.clock.nowMs += 1
    t.match(await api.edit('Ann', ann, {}), { status: 503, headers: { 'retry-after': '5' } })
  }
)

onPostgres(
  'a key that was good stops working with a 401, also if the auth service fails later',
  async (t, postgres) => {
    const api = await openPeopleApi(t, postgres)
    const ann = api.signIn('Ann')
    t.equal((await api.edit('Ann', ann, {})).status, 200)
    api.auth.sessions.clear()
    api.clock.nowMs += 60_000
    t.equal((await api.edit('Ann', ann, {})).status, 401)
    api.auth.fault = 'reset'
    api.clock.nowMs += 10_000
    t.equal((await api.edit('Ann', ann, {})).status, 503)
  }
)

onPostgres('keys that the auth service refuses with any 4xx delay no other key', async (t, postgres) => {
  for (const status of [400, 403, 404, 413, 429, 431]) {
    for (const isPage of [false, true]) {
      const api = await openPeopleApi(t, postgres)
      const ann = api.signIn('Ann')
      api.auth.refuse = (key) => (key === ann ? undefined : { status, isPage })
      for (let n = 0; n < 10; n += 1) t.equal((await api.edit('Ann', `other-${n}`, {})).status, 503)
      t.equal((await api.edit('Ann', ann, {})).status, 200, `${status} ${isPage}`)
    }
  }
})

onPostgres('an address may cause so many checks of keys that identify nobody', async (t, postgres) => {
  const api = await openPeopleApi(t, postgres, { people: { sessionChecksPerMinute: 5 } })
  api.see('Bob')
  const from = (remoteAddress: string, key: string, method: 'GET' | 'POST' = 'POST', headers = {}) =>
    api.app.inject({
      method,
      url: TALK,
      remoteAddress,
      headers: { 'x-session-key': key, ...headers },
      ...(method === 'POST' ? { payload: { stars: 2 } } : {})
    })
  const ask = async (address: string, count: number, method: 'GET' | 'POST' = 'POST') => {
    const statuses: number[] = []
    for (let n = 0; n < count; n += 1)
      statuses.push((await from(address, `${address}-${method}-${n}`, method)).statusCode)
    return statuses
  }
  for (let n = 0; n < 20; n += 1) t.equal((await from('192.0.2.1', api.signIn(`User${n}`))).statusCode, 200)
  t.same(await ask('192.0.2.1', 7), [401, 401, 401, 401, 401, 429, 429])
  const refused = await from('192.0.2.1', 'another')
  t.match(refused.headers, { 'retry-after': '12', 'x-error-code': 'session_checks_spent' })
  t.equal(
    (await from('192.0.2.1', '192.0.2.1-POST-0')).statusCode,
    401,
    'a key that is known to be invalid needs no check'
  )
  t.same(await ask('192.0.2.1', 2, 'GET'), [200, 200], 'who may read reads')
  t.same(await ask('192.0.2.2', 5), [401, 401, 401, 401, 401], 'others have their own')
  t.equal(api.auth.asked.length, 30)
  t.same(new Set(await ask('127.0.0.1', 20)), new Set([401]))
  const proxied = { 'x-forwarded-for': '192.0.2.9' }
  for (let n = 0; n < 20; n += 1)
    t.equal((await from('192.0.2.3', `proxied-${n}`, 'POST', proxied)).statusCode, 401, 'an untrusted proxy')
  api.clock.nowMs += 12_000
  t.equal((await from('192.0.2.1', 'another')).statusCode, 401)
  t.match(await api.registry.metrics(), /gamenet_session_checks_total\{judgement="refused"\} 5/)
})

onPostgres('an auth service that answers nonsense about one session is asked about the others', async (t, postgres) => {
  const api = await openPeopleApi(t, postgres)
  const ann = api.signIn('Ann')
  const long = api.signIn('x'.repeat(65))
  api.see('Bob')
  for (let n = 0; n < 10; n += 1) {
    const answer = await api.rate('Bob', long, { stars: 1 })
    t.match([answer.status, answer.headers['retry-after']], [503, '5'])
  }
  t.equal((await api.rate('Bob', ann, { stars: 2 })).status, 200)
})

onPostgres('an answer to a request with a key is not cached, and not sent to other clients', async (t, postgres) => {
  const api = await openPeopleApi(t, postgres)
  const ann = api.signIn('Ann')
  const eve = api.signIn('Eve')
  api.see('Bob')
  await api.rate('Bob', ann, { stars: 2 })
  const anonymous = await api.reputation('Bob')
  t.match(anonymous.headers, { etag: /^"/, 'cache-control': 'public, max-age=0, must-revalidate' })
  t.equal((await api.reputation('Bob', { headers: { 'if-none-match': String(anonymous.headers.etag) } })).status, 304)
  const queries = ['', `?sessionKey=${ann}`, '?sessionKey=nobody']
  for (let round = 0; round < 2; round += 1) {
    for (const query of queries) {
      for (const key of query === '' ? [ann, eve, 'nobody'] : [undefined]) {
        const given = key === undefined ? {} : { key }
        const headers = { 'if-none-match': `${anonymous.headers.etag}, *` }
        const { status, body, headers: got } = await api.reputation('Bob', { ...given, headers }, query)
        t.equal(status, 200)
        t.match(got, { 'cache-control': 'private, no-store' })
        t.equal(got.etag, undefined)
        const isAnn = key === ann || query.endsWith(ann)
        t.same((body.viewer as { stars: number } | null)?.stars, isAnn ? 2 : undefined, `${query} ${key}`)
        t.equal((await api.reputation('Bob')).body.viewer, null)
      }
    }
  }
  const head = await api.app.inject({ method: 'HEAD', url: TALK, headers: { 'x-session-key': ann } })
  t.same([head.statusCode, head.body, head.headers['cache-control']], [200, '', 'private, no-store'])
  const other = await api.ask(`/api/games?sessionKey=${ann}`, { key: ann })
  t.equal(other.status, 200, 'a key changes nothing elsewhere')
  const options = await api.app.inject({ method: 'OPTIONS', url: TALK })
  t.equal(options.headers.allow, 'GET, HEAD, OPTIONS, POST')
  const wrong = await api.app.inject({ method: 'DELETE', url: '/api/profile/Bob' })
  t.same([wrong.statusCode, wrong.headers.allow], [405, 'GET, HEAD, OPTIONS, PATCH, PUT'])
})

onPostgres('no key is in a log, a metric or an answer', async (t, postgres) => {
  const { logger, lines } = logOfLines('trace')
  const api = await openPeopleApi(t, postgres, { logger })
  const ann = api.signIn('Ann')
  api.see('Bob')
  const said: string[] = []
  const all = async (asked: PeopleApi) => {
    for (const url of [
      `${TALK}?sessionKey=${ann}`,
      `/api/games?sessionKey=${ann}`,
      `/api/games?%73essionKey=${ann}`,
      `/nope?sessionKey=${ann}`,
      `${TALK}?feedbackLimit=x&sessionKey=${ann}`
    ]) {
      for (const key of [ann, undefined]) {
        const { body, headers } = await asked.ask(url, key === undefined ? {} : { key })
        said.push(JSON.stringify([body, headers]))
      }
    }
    for (const body of [
      { stars: 9 },
      { stars: 3 },
      { sessionKey: ann, stars: 'x' },
      { sessionKey: [ann] },
      `{"sessionKey":"${ann}",`
    ]) {
      const { body: answer } = await asked.ask(TALK, { method: 'POST', body, key: ann })
      said.push(JSON.stringify(answer))
    }
  }
  await all(api)
  api.clock.nowMs += 120_000
  for (const fault of ['reset', '500', 'html', 'echo', 'odd'] as const) {
    const other = await openPeopleApi(t, postgres, { logger })
    other.auth.sessions.set(ann, { username: 'Ann' })
    other.auth.fault = fault
    await all(other)
  }
  t.ok(lines.length > 5, 'something was logged')
  t.notMatch(lines.join('\n'), ann)
  t.notMatch(said.join('\n'), ann)
  t.notMatch(await api.registry.metrics(), ann)
  const kept = await postgres.query('SELECT p.* FROM profile AS p')
  t.notMatch(JSON.stringify([kept, await api.outbox()]), ann)
})

onPostgres('while PostgreSQL is unavailable nothing is stored; cached answers have their age', async (t, postgres) => {
  let isAway = false
  const through = <Rest extends unknown[], Result>(call: (...rest: Rest) => Promise<Result>) => {
    return async (...rest: Rest) => {
      if (isAway) throw new Refusal('engine_away', [], { retryAfterSeconds: 5 })
      return await call(...rest)
    }
  }
  const writes = { query: through(postgres.query), transaction: through(postgres.transaction) }
  const api = await openPeopleApi(t, postgres, { writes: writes as typeof postgres })
  const ann = api.signIn('Ann')
  const eve = api.signIn('Eve')
  api.see('Bob')
  await api.rate('Bob', ann, { stars: 2 })
  const known = await api.reputation('Bob')
  isAway = true
  api.versions.recordWrite(['rating', 'bob'])
  api.clock.nowMs += 7000
  for (const answer of [
    await api.rate('Bob', ann, { stars: 3 }),
    await api.edit('Ann', ann, { bio: 'x' }),
    await api.edit('Eve', eve, { bio: 'x' }),
    await api.reputation('Ann')
  ]) {
    t.match([answer.status, answer.headers['retry-after']], [503, '5'])
  }
  const last = await api.reputation('Bob')
  t.match([last.status, last.body, last.headers.age], [200, known.body, '7'])
  const personal = await api.reputation('Bob', { key: ann })
  t.match([personal.status, personal.body, personal.headers.age], [200, { ...known.body, viewer: null }, '7'])
  t.match(personal.headers, { 'cache-control': 'private, no-store' })
  t.equal(personal.headers.etag, undefined)
  isAway = false
  t.match((await api.reputation('Bob', { key: ann })).body, { viewer: { stars: 2 } })
})
