import { test } from 'tap'
import { NOW_MS, storeTitles } from './board-api.js'
import { openProfileApi, type ProfileApi } from './profile-api.js'

const PATHS = ['', '/games-played', '/leaderboard-scores', '/play-time', '/timeline']

async function openAnn(t: Parameters<typeof openProfileApi>[0]): Promise<ProfileApi> {
  const api = await openProfileApi(t)
  await storeTitles(api.model, { '4d530001': 'Race' })
  await api.storePresence('ann', [
    { field: 'username', value: 'Ann', ms: NOW_MS - 1000 },
    { field: 'seen', value: 'online', ms: NOW_MS - 1000 },
    { field: 'online', value: 'Race', ms: NOW_MS - 1000 },
    { field: 'period', value: '60', ms: NOW_MS - 1000 }
  ])
  await api.changed('presence-latest', 'title')
  return api
}

test('a username has 1 to 64 visible characters; a name without a user is unknown', async (t) => {
  const { get } = await openAnn(t)
  const cases: readonly (readonly [name: string, status: number])[] = [
    ['ANN', 200],
    ['%EF%BD%81nn', 200],
    ['bob', 404],
    ['Lucky%2FBadger%20%231', 404],
    ['%F0%9F%8E%AE'.repeat(64), 404],
    ['%F0%9F%8E%AE'.repeat(65), 400],
    ['a'.repeat(65), 400],
    ['a%00b', 400],
    ['a%E2%80%AEb', 400],
    ['%FF', 400]
  ]
  for (const path of PATHS) {
    for (const [name, status] of cases) {
      const answer = await get(`/api/profile/${name}${path}`)
      t.equal(answer.statusCode, status, `${name}${path}`)
      if (status !== 200) t.same(Object.keys(answer.json()), ['error'])
    }
  }
  t.match((await get('/api/profile/bob')).json(), { error: 'No user "bob" is known.' })
  t.match((await get(`/api/profile/${'a'.repeat(65)}`)).json(), {
    error: /^username must be 1 to 64 characters without control or format characters; got "a+" \(the first 40 of 65/
  })
})

test('an answer about a user has an ETag, is cached, and changes with the data of the user', async (t) => {
  const api = await openAnn(t)
  for (const path of PATHS) {
    const url = `/api/profile/ann${path}`
    const first = await api.get(url)
    const etag = String(first.headers.etag)
    t.match(first.headers, { 'cache-control': 'public, max-age=0, must-revalidate', 'x-data-version': /^\d+$/ }, url)
    const again = await api.get(url, { 'If-None-Match': etag })
    t.same([again.statusCode, again.body], [304, ''], url)
    const head = await api.app.inject({ method: 'HEAD', url })
    t.same([head.statusCode, head.body, head.headers.etag], [200, '', etag], url)
    await api.changed('presence-latest:anna', 'profile:anna', 'achievement-unlock:anna', 'presence-day:anna')
    t.equal((await api.get(url, { 'If-None-Match': etag })).statusCode, 304, `${url} after another user’s change`)
    await api.changed('profile:ann')
    t.equal((await api.get(url, { 'If-None-Match': etag })).statusCode, 200, `${url} after a change`)
  }
})

test("a changed profile is read with the user's newest text", async (t) => {
  const api = await openAnn(t)
  t.match((await api.get('/api/profile/ann')).json(), { username: 'Ann', profile: { bio: '' } })
  await api.storeProfile({ username: 'aNN', bio: 'hello' })
  await api.changed('profile:ann')
  t.match((await api.get('/api/profile/ann')).json(), { username: 'aNN', profile: { bio: 'hello' } })
})

test('a user whose newest sighting online is older than three of its periods is offline', async (t) => {
  const api = await openAnn(t)
  const at = async (ms: number) => {
    api.clock.nowMs = NOW_MS + ms
    return (await api.get('/api/profile/ann')).json().playTime
  }
  t.match(await at(0), { lastState: 'online', currentGame: 'Race' })
  t.match(await at(180_000), { lastState: 'online', currentGame: 'Race' })
  const gone = await at(240_000)
  t.match(gone, { lastState: 'offline', currentGame: null, lastOnlineAt: '2026-03-14T20:00:29.000Z' })
})

test('while PostgreSQL is unavailable the last answer is sent with its age, else 503', async (t) => {
  const api = await openAnn(t)
  const url = '/api/profile/ann'
  const last = (await api.get(url)).json()
  api.goAway()
  await api.changed('profile')
  api.clock.nowMs += 61_000
  const stale = await api.get(url)
  t.match([stale.statusCode, stale.headers.age, stale.json()], [200, '61', last])
  const none = await api.get(`${url}/games-played`)
  t.match([none.statusCode, none.headers['retry-after'], Object.keys(none.json())], [503, /^\d+$/, ['error']])
})
