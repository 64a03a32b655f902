import { access } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { pino } from 'pino'
import { type Test, test } from 'tap'
import { z } from 'zod'
import { actAsPeople } from '../demo/activity.js'
import { type DemoAuth, type DemoAuthOptions, startDemoAuth } from '../demo/auth/server.js'
import { createWorld, type World } from '../demo/network/world.js'

const NOON = Date.UTC(2026, 10, 21, 12)
const EVENING = Date.UTC(2026, 10, 21, 20)
const HOUR_MS = 3_600_000
const world = createWorld(7)

const Friends = z.strictObject({
  friends: z.array(
    z.union([
      z.strictObject({
        gamertag: z.string(),
        status: z.literal('Online'),
        isOnline: z.literal(true),
        game: z.string(),
        duration: z.string().regex(/^(\d+h )?\d+m$/)
      }),
      z.strictObject({
        gamertag: z.string(),
        status: z.literal('Offline'),
        isOnline: z.literal(false),
        lastSeen: z.string().regex(/^(just now|\d+ (minute|hour|day)s? ago)$/)
      })
    ])
  ),
  lastUpdated: z.int(),
  count: z.int()
})
const PlayedGame = z.strictObject({
  title: z.string(),
  lastPlayed: z.string().regex(/^(just now|\d+ (minute|hour|day)s? ago)$/),
  iconUrl: z.url()
})
const Games = z.strictObject({ games: z.array(PlayedGame), lastUpdated: z.int(), count: z.int() })
const Profile = z.strictObject({
  isOnline: z.boolean(),
  status: z.string(),
  game: z.string().optional(),
  timeOnline: z.string().optional(),
  gamesPlayed: z.array(PlayedGame),
  lastUpdated: z.int(),
  count: z.int()
})

test('every user of the network can log in and is verified as that user', async (t) => {
  const { auth } = await started(t)
  t.equal(auth.people.length, world.sightingsAt(NOON).length)
  t.same(
    auth.people.map(({ username }) => username),
    world.sightingsAt(NOON).map(({ username }) => username)
  )
  t.equal(
    new Set(auth.people.map(({ password }) => password)).size,
    auth.people.length,
    'each has a password of its own'
  )
  for (const person of auth.people.slice(0, 10)) {
    const { username, email, gamertag } = person
    const login = await ask(auth, 'login', { body: { email: email.toUpperCase(), password: person.password } })
    const { sessionKey } = z.object({ sessionKey: z.string().min(40) }).parse(login.body)
    t.same(login, { status: 200, body: { success: true, username, email, sessionKey } })
    const known = { username, email, ...(gamertag === undefined ? {} : { gamertag }) }
    t.same(await ask(auth, 'verify', { body: { sessionKey } }), { status: 200, body: { valid: true, ...known } })
    t.same(await ask(auth, 'user', { sessionKey }), { status: 200, body: known })
  }
  t.ok(auth.people.some(({ gamertag }) => gamertag === undefined))
})

test('a login needs both address and password, and does not reveal which one is wrong', async (t) => {
  const { auth, person } = await started(t)
  const { email, password } = person
  const wrong = { status: 401, body: { error: 'The email address or the password is wrong.' } }
  for (const body of [
    { email, password: '' },
    { email, password: `${password} ` },
    { email: 'nobody@example.org', password },
    { email: auth.people[1]?.email, password }
  ]) {
    t.same(await ask(auth, 'login', { body }), wrong)
  }
  for (const body of [null, [], {}, { email }, { email, password: 7 }]) {
    t.match(await ask(auth, 'login', { body }), { status: 400, body: { error: /^A login takes/ } })
  }
  t.match(await ask(auth, 'verify', { body: { sessionKey: 7 } }), { status: 400, body: { error: /^A session/ } })
  const odd = await fetch(`${auth.url}/api/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: `{"email": "${email}", "password": "${password}`
  })
  t.equal(odd.status, 400)
  t.notMatch(await odd.text(), password)
})

test('a session ends by logout, expiry, or with all others, and then is refused', async (t) => {
  const { auth, person, clock } = await started(t, { sessionMs: HOUR_MS })
  const endings: [how: string, end: (sessionKey: string) => Promise<unknown> | unknown][] = [
    ['logout', (sessionKey) => ask(auth, 'logout', { body: { sessionKey } })],
    [
      'time',
      () => {
        clock.ms += HOUR_MS
      }
    ],
    ['order', () => auth.expireSessions()]
  ]
  for (const [how, end] of endings) {
    const sessionKey = await loggedIn(auth, person)
    const other = await loggedIn(auth, auth.people[1])
    t.equal((await ask(auth, 'verify', { body: { sessionKey } })).status, 200)
    await end(sessionKey)
    t.same(await ask(auth, 'verify', { body: { sessionKey } }), { status: 401, body: { valid: false } }, how)
    for (const noun of ['user', 'friends', 'games', 'profile']) {
      t.match(await ask(auth, noun, { sessionKey }), { status: 401, body: { error: /^The session is invalid/ } }, how)
    }
    t.equal((await ask(auth, 'refresh/friends', { sessionKey, method: 'POST' })).status, 401)
    t.equal((await ask(auth, 'verify', { body: { sessionKey: other } })).status, how === 'logout' ? 200 : 401)
  }
  t.equal((await ask(auth, 'friends', {})).status, 401, 'nor to no session')
  t.same(await ask(auth, 'verify', { body: { sessionKey: 'x'.repeat(10_000) } }), {
    status: 401,
    body: { valid: false }
  })
})

test('friends, games and profile equal the network, and change when they are refreshed', async (t) => {
  const { auth, person, clock } = await started(t)
  const sessionKey = await loggedIn(auth, person)
  const get = (noun: string) => ask(auth, noun, { sessionKey }).then(({ body }) => body)
  const refresh = (noun: string) =>
    ask(auth, `refresh/${noun}`, { sessionKey, method: 'POST' }).then(({ body }) => body)
  const first = Friends.parse(await get('friends'))
  t.equal(first.count, first.friends.length)
  t.ok(first.count > 0)
  t.equal(first.lastUpdated, NOON)
  t.same(onlineOf(first), onlineInWorld(NOON, first))

  clock.ms = EVENING
  t.same(await get('friends'), first, 'the service answers from its copy')
  const { success, ...second } = z.looseObject({ success: z.literal(true) }).parse(await refresh('friends'))
  t.equal(success, true)
  t.equal(Friends.parse(second).lastUpdated, EVENING)
  t.same(onlineOf(Friends.parse(second)), onlineInWorld(EVENING, first))
  t.notSame(onlineOf(Friends.parse(second)), onlineOf(first), 'the evening is not the noon')
  t.same(await get('friends'), second)

  const games = Games.parse(await get('games'))
  const profile = Profile.parse(await get('profile'))
  t.same(profile.gamesPlayed, games.games)
  t.ok(games.count > 1 && games.count === new Set(games.games.map(({ title }) => title)).size, 'each game once')
  t.same(profile.isOnline, world.sightingsAt(EVENING)[person.user]?.playing !== undefined)
  for (const noun of ['games', 'profile']) t.match(await refresh(noun), { success: true, lastUpdated: EVENING })
})

test('friendship is mutual, and a profile shows the current game', async (t) => {
  const { auth } = await started(t, {}, EVENING)
  const gamertags = world.sightingsAt(EVENING).map(({ gamertag }) => gamertag)
  const friendsOf = new Map<number, Set<string>>()
  for (const person of auth.people.slice(0, 15)) {
    const sessionKey = await loggedIn(auth, person)
    const { friends } = Friends.parse((await ask(auth, 'friends', { sessionKey })).body)
    friendsOf.set(person.user, new Set(friends.map(({ gamertag }) => gamertag)))
    const profile = Profile.parse((await ask(auth, 'profile', { sessionKey })).body)
    const playing = world.sightingsAt(EVENING)[person.user]?.playing
    t.equal(profile.game, playing?.title.name)
    t.equal(profile.timeOnline === undefined, playing === undefined)
    if (playing !== undefined) t.match(profile.gamesPlayed[0], { title: playing.title.name, lastPlayed: 'just now' })
  }
  let pairs = 0
  for (const [user, friends] of friendsOf) {
    t.notOk(friends.has(gamertags[user] ?? ''))
    for (const [other, theirs] of friendsOf) {
      const isFriend = friends.has(gamertags[other] ?? '')
      t.equal(isFriend, theirs.has(gamertags[user] ?? ''))
      if (isFriend) pairs += 1
    }
  }
  t.ok(pairs > 0)
})

test('it has the ordered faults, as often as ordered, and then answers correctly', async (t) => {
  const { auth, person } = await started(t, { slowMs: 1 })
  const sessionKey = await loggedIn(auth, person)
  const verify = () => ask(auth, 'verify', { body: { sessionKey } })
  const order = (body: unknown) =>
    fetch(`${auth.url}/_faults`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body)
    })
  t.equal((await order({ fault: '500', path: '/api/auth/verify', count: 2 })).status, 204)
  t.same(await (await fetch(`${auth.url}/_faults`)).json(), [{ path: '/api/auth/verify', fault: '500', count: 2 }])
  t.equal((await ask(auth, 'user', { sessionKey })).status, 200, 'other calls are well')
  t.same(await verify(), { status: 500, body: { error: 'The service is out of order.' } })
  t.equal((await verify()).status, 500)
  t.equal((await verify()).status, 200)
  auth.orderFault({ fault: 'slow' })
  t.equal((await verify()).status, 200, 'slow is right all the same')
  auth.orderFault({ fault: 'garbage' })
  t.same(await verify(), { status: 200, body: '<!doctype html><h1>Welcome</h1>' })
  auth.orderFault({ fault: 'broken' })
  t.same(await verify(), { status: 200, body: '{"valid": true, "username": "a' })
  auth.orderFault({ fault: 'down', count: 1000 })
  await t.rejects(verify(), /fetch failed/)
  auth.orderFault({ fault: 'down', count: 0 })
  t.equal((await verify()).status, 200)
  t.equal((await order({ fault: 'bad mood' })).status, 400)
  t.equal((await order({ fault: '500', path: 'verify' })).status, 400)
})

test('a closing service does not wait for hanging or slow answers', async (t) => {
  const { auth } = await started(t, { slowMs: 600_000 })
  auth.orderFault({ fault: 'hang', path: '/api/auth/user' })
  auth.orderFault({ fault: 'slow', path: '/api/auth/friends' })
  const hanging = [ask(auth, 'user', {}), ask(auth, 'friends', {})]
  const settled = Promise.allSettled(hanging)
  while (((await (await fetch(`${auth.url}/_faults`)).json()) as unknown[]).length > 0);
  await auth.close()
  const [user] = await settled
  t.equal(user?.status, 'rejected')
})

test('a page of another origin may send a session key and read answers and errors', async (t) => {
  const { auth } = await started(t)
  const preflight = await fetch(`${auth.url}/api/auth/friends`, { method: 'OPTIONS' })
  t.equal(preflight.status, 204)
  t.equal(preflight.headers.get('access-control-allow-origin'), '*')
  t.match(preflight.headers.get('access-control-allow-headers'), 'X-Session-Key')
  t.match(preflight.headers.get('access-control-allow-methods'), 'POST')
  for (const path of ['friends', 'nothing']) {
    const answer = await fetch(`${auth.url}/api/auth/${path}`)
    t.equal(answer.status, path === 'friends' ? 401 : 404)
    t.equal(answer.headers.get('access-control-allow-origin'), '*')
    t.equal(answer.headers.get('cache-control'), 'no-store')
  }
  t.equal(
    (await fetch(`${auth.url}/_faults`)).headers.get('access-control-allow-origin'),
    null,
    'pages cannot order faults'
  )
})

test('neither passwords nor session keys appear in its log or in its reported answers', async (t) => {
  const lines: string[] = []
  const logger = pino({ level: 'trace' }, { write: (line: string) => lines.push(line) })
  const answered: unknown[] = []
  const { auth, person } = await started(t, { logger, onAnswered: (one) => answered.push(one) })
  const sessionKey = await loggedIn(auth, person)
  await ask(auth, 'friends', { sessionKey })
  await ask(auth, `verify?sessionKey=${sessionKey}`, { body: { sessionKey } })
  await ask(auth, 'login', { body: `{"password":"${person.password}"` })
  await ask(auth, 'login', { body: { email: person.email, password: `${person.password}2` } })
  auth.orderFault({ fault: '500' })
  await ask(auth, 'verify', { body: { sessionKey } })
  await ask(auth, 'logout', { body: { sessionKey } })
  t.ok(lines.length > 0, 'there is a log')
  const logged = lines.join('') + JSON.stringify(answered)
  t.notOk(logged.includes(sessionKey))
  t.notOk(logged.includes(person.password))
  t.same(answered.slice(0, 3), [
    { path: '/api/auth/login', status: 200 },
    { path: '/api/auth/friends', status: 200 },
    { path: '/api/auth/verify', status: 200 }
  ])
})

/** A service whose clock is at noon unless `clock.ms` is changed. */
async function started(t: Test, options: Partial<DemoAuthOptions> = {}, ms = NOON) {
  const clock = { ms }
  const network = { url: 'http://network.example', world: world as World, instantShown: (ms = clock.ms) => ms }
  const auth = await startDemoAuth({ network, now: () => clock.ms, ...options })
  t.teardown(() => auth.close())
  const [person] = auth.people
  if (person === undefined) throw new Error('The demo auth service has no accounts.')
  return { auth, person, clock }
}

async function ask(
  auth: DemoAuth,
  call: string,
  {
    body,
    sessionKey,
    method = body === undefined ? 'GET' : 'POST'
  }: { body?: unknown; sessionKey?: string; method?: string }
): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${auth.url}/api/auth/${call}`, {
    method,
    headers: {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(sessionKey === undefined ? {} : { 'x-session-key': sessionKey })
    },
    body: body === undefined ? null : JSON.stringify(body)
  })
  const text = await response.text()
  try {
    return { status: response.status, body: JSON.parse(text) }
  } catch {
    return { status: response.status, body: text }
  }
}

async function loggedIn(auth: DemoAuth, person: DemoAuth['people'][number] | undefined): Promise<string> {
  const { body } = await ask(auth, 'login', { body: { email: person?.email, password: person?.password } })
  return z.object({ sessionKey: z.string() }).parse(body).sessionKey
}

function onlineOf({ friends }: z.infer<typeof Friends>): string[] {
  return friends.flatMap((friend) => (friend.isOnline ? [`${friend.gamertag}: ${friend.game}`] : [])).sort()
}

/** Returns the same from the world, for the same friends. */
function onlineInWorld(ms: number, { friends }: z.infer<typeof Friends>): string[] {
  const gamertags = new Set(friends.map(({ gamertag }) => gamertag))
  return world
    .sightingsAt(ms)
    .flatMap(({ gamertag, playing }) =>
      playing !== undefined && gamertags.has(gamertag) ? [`${gamertag}: ${playing.title.name}`] : []
    )
    .sort()
}

test('the text of a visitor who signed in as a demo user stays when demo users act', async (t) => {
  const { auth } = await started(t)
  const people = auth.people.slice(0, 3)
  const [ann, bob] = people
  const profiles = new Map(
    people.map(({ username }) => [
      username,
      { bio: '', avatar_hue: null, linked_gamertag: '' } as Record<string, unknown>
    ])
  )
  Object.assign(profiles.get(ann?.username ?? '') ?? {}, { bio: 'It is me.', avatar_hue: 0 })
  const rated: string[] = []
  const api = createServer(async (request, reply) => {
    const [, , , name = '', reputation] = request.url?.split(/[/?]/) ?? []
    const body = request.method === 'GET' ? {} : ((await json(request)) as Record<string, unknown>)
    const isRated = name === bob?.username
    if (request.method === 'POST') rated.push(name)
    const answer =
      reputation === undefined
        ? Object.assign(profiles.get(name) ?? {}, body)
        : { viewer: isRated ? { stars: 1 } : null }
    reply.end(JSON.stringify(answer))
  })
  await new Promise<void>((resolve) => api.listen(0, '127.0.0.1', resolve))
  t.teardown(() => api.close())
  const doneFile = join(t.testdir(), 'done')
  const apiUrl = `http://127.0.0.1:${(api.address() as AddressInfo).port}`
  const signal = new AbortController().signal
  await actAsPeople({ seed: 7, apiUrl, auth: { url: auth.url, people }, chat: undefined, doneFile, signal })
  await access(doneFile)
  const [first, second] = people.map(({ username }) => profiles.get(username))
  t.match(first, { bio: 'It is me.', avatar_hue: 0, linked_gamertag: ann?.gamertag })
  t.match(second, { bio: /./, avatar_hue: Number, linked_gamertag: bob?.gamertag })
  t.ok(rated.includes(ann?.username ?? ''), 'others are rated')
  t.notOk(rated.includes(bob?.username ?? ''), 'who was rated by them is not rated again')
})
