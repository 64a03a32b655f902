import { deepEqual, equal, ok } from 'node:assert/strict'
import type { RequestListener } from 'node:http'
import { mock } from 'node:test'
import { freePort, listening, recording } from '@gamenet/engines/testing'
import fc from 'fast-check'
import { test } from 'tap'
import { GamenetError, gamenetClient } from '../src/index.js'

test('an unexpected answer is an error that quotes it', async (t) => {
  const answers: Record<string, RequestListener> = {
    '/busy': (_, response) => response.writeHead(503, { 'retry-after': '7' }).end('{"error":"Ask again shortly."}'),
    '/proxy': (_, response) => response.writeHead(502, { 'retry-after': 'soon' }).end('<h1>Bad gateway</h1>'),
    '/page': (_, response) => response.end('<h1>Welcome</h1>'),
    '/cut': (_, response) => response.writeHead(200, { 'content-length': '99' }).write('{"', () => response.destroy()),
    '/silent': () => undefined
  }
  const url = await listening(t, (request, response) => {
    const first = `/${(request.url ?? '').split('/')[1]}`
    answers[first]?.(request, response)
  })
  const requested = (path: string, timeoutMs?: number) =>
    gamenetClient({ baseUrl: url + path, timeoutMs, retries: 0 }).getGames()
  await t.rejects(requested('/busy'), { status: 503, message: 'Ask again shortly.', retryAfterSeconds: 7 })
  await t.rejects(requested('/proxy'), {
    status: 502,
    message: `${url}/proxy/api/games answered HTTP status 502.`,
    retryAfterSeconds: undefined
  })
  await t.rejects(requested('/page'), {
    status: 200,
    message: /\/page\/api\/games answered no JSON; check that baseUrl/
  })
  await t.rejects(requested('/cut'), { status: 0, message: /\/cut\/api\/games cannot be reached: .*; check baseUrl/ })
  await t.rejects(requested('/silent', 100), {
    status: 0,
    message: /\/silent\/api\/games did not answer within 100 ms; check/
  })
  const nobody = gamenetClient({ baseUrl: `http://127.0.0.1:${await freePort()}` }).getGames()
  await t.rejects(nobody, { name: 'GamenetError', status: 0, message: /cannot be reached: .*ECONNREFUSED/ })
})

test('requests to busy services are retried after Retry-After, within the time of the call', async (t) => {
  const answering = (...answers: [status: number, headers: Record<string, string>][]) =>
    recording(async () => {
      const [status, headers] = answers.shift() ?? [200, {}]
      return new Response(status === 200 ? '["Halo 2"]' : '{"error":"Not now."}', { status, headers })
    })
  const now = { 'retry-after': '0' }
  const good = answering([503, now], [429, now])
  t.same(await gamenetClient({ baseUrl: 'http://x', fetch: good.fetch }).getGames(), ['Halo 2'])
  t.equal(good.requests.length, 3)
  for (const [status, headers, options, requests] of [
    [503, now, {}, 3],
    [503, now, { retries: 0 }, 1],
    [503, { 'retry-after': '7' }, { timeoutMs: 5000 }, 1],
    [503, {}, {}, 1],
    [500, now, {}, 1]
  ] as const) {
    const busy = answering(...Array.from({ length: 5 }, (): [number, Record<string, string>] => [status, headers]))
    await t.rejects(gamenetClient({ baseUrl: 'http://x', fetch: busy.fetch, ...options }).getGames(), {
      name: 'GamenetError',
      status
    })
    t.equal(busy.requests.length, requests)
  }
  const abort = new AbortController()
  const waiting = recording(async () => {
    setImmediate(() => abort.abort(new Error('the visitor left')))
    return new Response('{}', { status: 503, headers: { 'retry-after': '9' } })
  })
  const left = gamenetClient({ baseUrl: 'http://x', fetch: waiting.fetch }).getGames({}, { signal: abort.signal })
  await t.rejects(left, { message: 'the visitor left' })
})

test('a result has the headers and the next page, and pages can be followed to the end or endlessly', async (t) => {
  const changes = Array.from({ length: 5 }, (_, id) => ({ id: String(id) }))
  let polls = 0
  const feed = recording(async (input, init) => {
    if (polls > 0 && polls++ === 3) changes.push({ id: '5' })
    const at = Number(new URL(String(input)).searchParams.get('after')?.replace('start', '0'))
    const page = changes.slice(at, at + 2)
    const etag = `"${at}-${page.length}"`
    if (new Headers(init?.headers).get('if-none-match') === etag) return new Response(null, { status: 304 })
    const link = `</api/leaderboard-changes?limit=2&after=${at + page.length}>; rel="next"`
    return new Response(JSON.stringify(page), { headers: { etag, link, 'x-data-version': '7' } })
  })
  const client = gamenetClient({ baseUrl: 'http://x/stats', fetch: feed.fetch })
  const first = await client.getLeaderboardChanges({ after: 'start', limit: 2 }).result()
  t.match(first, { data: [{ id: '0' }, { id: '1' }], cursor: '2' })
  t.equal(first.headers.get('x-data-version'), '7')
  const again = await client.getLeaderboardChanges({ after: 'start', limit: 2 }).result()
  t.equal(feed.requests.at(-1)?.status, 304)
  t.match(again, { data: first.data, cursor: '2' }, 'an answer that is not sent again has its headers, too')
  t.match(await first.next(), { data: [{ id: '2' }, { id: '3' }], cursor: '4' })
  t.equal(feed.requests.at(-1)?.url, 'http://x/stats/api/leaderboard-changes?limit=2&after=2')

  const ids = []
  for await (const { data } of client.getLeaderboardChanges({ after: 'start', limit: 2 }).pages()) {
    ids.push(...data.map(({ id }) => id))
  }
  t.same(ids, ['0', '1', '2', '3', '4'])
  const abort = new AbortController()
  const following = client
    .getLeaderboardChanges({ after: '4', limit: 2 }, { signal: abort.signal })
    .pages({ followMs: 1 })
  t.match(await following.next(), { value: { data: [{ id: '4' }] } })
  polls = 1
  t.match(await following.next(), { value: { data: [{ id: '5' }], cursor: '6' } })
  abort.abort(new Error('enough'))
  await t.rejects(following.next(), { message: 'enough' })

  const { fetch } = recording(async () => new Response('["Halo 2"]', { headers: { link: '</x>; rel="help"' } }))
  const games = gamenetClient({ baseUrl: 'http://x', fetch })
  t.match(await games.getGames().result(), { data: ['Halo 2'], cursor: undefined })
  t.equal(await (await games.getGames().result()).next(), undefined)
  for await (const { data } of games.getGames().pages()) t.same(data, ['Halo 2'])
})

test('a parameter that the service ignored is warned of once', async (t) => {
  const warn = mock.method(console, 'warn', () => undefined)
  t.teardown(() => warn.mock.restore())
  const headers = { 'x-unknown-parameters': 'dayz' }
  const { fetch } = recording(async () => new Response('[]', { headers }))
  const client = gamenetClient({ baseUrl: 'http://x', fetch })
  for (let times = 0; times < 3; times += 1) await client.getOnlineHistory({ days: 1 })
  headers['x-unknown-parameters'] = 'hourz'
  await client.getGames()
  t.same(
    warn.mock.calls.map(({ arguments: [text] }) => String(text).split(':', 1)[0]),
    ['/api/network-stats/online-24h has no parameter dayz', '/api/games has no parameter hourz']
  )
})

test('a signal ends a call with its own reason, before and during the request', async (t) => {
  const abort = new AbortController()
  const url = await listening(t, () => abort.abort(new Error('the visitor left')))
  const client = gamenetClient({ baseUrl: url })
  await t.rejects(client.getOnlineUsers({ signal: abort.signal }), { message: 'the visitor left' })
  await t.rejects(client.getTopGames({ days: 7 }, { signal: abort.signal }), { message: 'the visitor left' })
})

test('any name arrives as one segment of the path, or is refused before anything is sent', async (t) => {
  const { fetch, requests } = recording(async () => new Response('{}'))
  const client = gamenetClient({ baseUrl: 'https://stats.example.org/network', fetch })
  const names = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string(),
    fc.constantFrom('', '.', '..', '$&', ':game', '\ud800')
  )
  await fc.assert(
    fc.asyncProperty(names, async (game) => {
      const before = requests.length
      const error = await client.getGame({ game }).then(
        () => undefined,
        (error: unknown) => error
      )
      if (['', '.', '..'].includes(game) || /\p{Cs}/u.test(game)) {
        ok(t.match(error, { name: 'GamenetError', status: 0, message: /^game cannot be asked for: / }))
        equal(requests.length, before)
        return
      }
      const { pathname, search, hash } = new URL(requests.at(-1)?.url ?? '')
      deepEqual(pathname.split('/').map(decodeURIComponent), ['', 'network', 'api', 'game', game])
      deepEqual({ error, search, hash }, { error: undefined, search: '', hash: '' })
    })
  )
})

test('a value that is neither an address nor an instant is refused with a sentence', async (t) => {
  for (const baseUrl of [
    '',
    'stats.example.org',
    'ftp://stats.example.org',
    'https://',
    'https://x/?a=b',
    'http://['
  ]) {
    t.throws(() => gamenetClient({ baseUrl }), { name: 'GamenetError', message: /^baseUrl must be an http address/ })
  }
  const { fetch, requests } = recording(async () => new Response('[]'))
  const client = gamenetClient({ baseUrl: 'https://stats.example.org', fetch })
  await t.rejects(
    client.getOnlineHistory({ from: new Date('x') }),
    new GamenetError(0, 'from is an invalid Date; expected an instant.')
  )
  t.equal(requests.length, 0)
  await client.getOnlineHistory({ from: new Date(0), to: undefined })
  t.equal(requests[0]?.url, 'https://stats.example.org/api/network-stats/online-24h?from=1970-01-01T00%3A00%3A00.000Z')
})

test('a call with a session sends the key only in a header, and its answer is not cached', async (t) => {
  const sent: RequestInit[] = []
  const { fetch, requests } = recording(async (_, init) => {
    sent.push(init ?? {})
    return new Response('{}', { headers: { etag: '"a"' } })
  })
  const client = gamenetClient({ baseUrl: 'https://stats.example.org', fetch })
  const whose = { sessionKey: 'a key' }
  await client.editProfile({ username: 'a/b', bio: 'hello', avatar_hue: null }, whose)
  await client.rateProfile({ username: 'bob', stars: 4 }, whose)
  await client.getReputation({ username: 'bob' }, whose)
  await client.getReputation({ username: 'bob' }, whose)
  await client.getReputation({ username: 'bob' })
  t.same(
    requests.map(({ method, url, tag }) => [method, url.slice('https://stats.example.org/api/profile/'.length), tag]),
    [
      ['PATCH', 'a%2Fb', null],
      ['POST', 'bob/reputation', null],
      ['GET', 'bob/reputation', null],
      ['GET', 'bob/reputation', null],
      ['GET', 'bob/reputation', null]
    ]
  )
  t.same(
    sent.map(({ body, headers }) => [body, new Headers(headers).get('x-session-key')]),
    [
      ['{"bio":"hello","avatar_hue":null}', 'a key'],
      ['{"stars":4}', 'a key'],
      [undefined, 'a key'],
      [undefined, 'a key'],
      [undefined, null]
    ]
  )
})

test('cached answers are bounded: the oldest ones are evicted', async (t) => {
  const text = JSON.stringify([`${'x'.repeat(3_000_000)}`])
  const { fetch, requests } = recording(async (_, init) =>
    new Headers(init?.headers).has('if-none-match')
      ? new Response(null, { status: 304 })
      : new Response(text, { headers: { etag: '"a"' } })
  )
  const client = gamenetClient({ baseUrl: 'https://stats.example.org', fetch })
  for (const days of [1, 2, 2, 3, 3, 2, 1]) await client.getOnlineHistory({ days })
  t.same(
    requests.map(({ status }) => status),
    [200, 200, 304, 200, 304, 304, 200]
  )
})
