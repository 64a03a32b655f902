import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { addServiceAuth, buildApp } from '@gamenet/api'
import { listening } from '@gamenet/engines/testing'
import { FIRST_GENERATION } from '@gamenet/schemas'
import type { ServiceAuth as ServiceAuthInstance } from '@gamenet/sdk'
import { type Browser, chromium, type Page, type Request } from 'playwright-core'
import { Registry } from 'prom-client'
import { type Test, test } from 'tap'
import { z } from 'zod'
import { startDemoAuth } from '../demo/auth/server.js'
import { createWorld } from '../demo/network/world.js'

type ServiceAuthClass = typeof import('@gamenet/sdk').ServiceAuth

const NOON = Date.UTC(2026, 10, 21, 12)
const MINUTE_MS = 60_000
/** Reached only by a hang. */
const WAIT_MS = 30_000
/** Browsers retry automatically when an existing connection is reset. */
const DOWN = { fault: 'down', count: 1000 } as const
const world = createWorld(7)
const module = await readFile(new URL('service-auth.js', import.meta.resolve('@gamenet/sdk')), 'utf8')

const browserPath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync)
const isBrowserMissing = browserPath === undefined && process.env.CI !== 'true'
if (isBrowserMissing) console.error('NO BROWSER is installed: the browser SDK is not tested in one.')
const skip = isBrowserMissing ? 'NO BROWSER is installed: the browser SDK is not tested in one' : false

/** Pages below `/page` may run only scripts of the API, and send requests only to the auth service. */
const PAGE = '<!doctype html><title>Page</title><script src="/service-auth.js"></script>'

test('the browser SDK is served as a script and as a module, with the configured auth service', async (t) => {
  const app = await builtApp(t, 'https://auth.example.org/')
  for (const path of ['/service-auth.js', '/service-auth.mjs']) {
    const { statusCode, headers, body } = await app.inject(path)
    t.equal(statusCode, 200)
    t.match(headers, {
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=300',
      'access-control-allow-origin': '*',
      'cross-origin-resource-policy': 'cross-origin',
      'x-content-type-options': 'nosniff'
    })
    t.ok(body.includes('const DEFAULT_API_URL = "https://auth.example.org/api";'))
    t.notMatch(body, /sourceMappingURL|^import|eval\(|new Function/m)
    t.equal(/^export/m.test(body), path.endsWith('.mjs'))
    const known = await app.inject({ url: path, headers: { 'if-none-match': String(headers.etag) } })
    t.match([known.statusCode, known.body], [304, ''])
    const packed = await app.inject({ url: path, headers: { 'accept-encoding': 'br' } })
    t.equal(packed.headers['content-encoding'], 'br')
    t.ok(packed.rawPayload.length < 8192, `${packed.rawPayload.length} bytes over the wire`)
    t.equal((await app.inject({ url: path, method: 'HEAD' })).statusCode, 200)
    t.match(await app.inject({ url: path, method: 'POST' }), { statusCode: 405, headers: { allow: /GET/ } })
  }
  const other = await builtApp(t, 'https://other.example.org')
  const tags = await Promise.all([app, other].map(async (app) => (await app.inject('/service-auth.js')).headers.etag))
  t.not(tags[0], tags[1], 'another configuration is another file')
  await t.rejects(builtApp(t, undefined, 'export class ServiceAuth {}'), /has no line "const DEFAULT_API_URL/)
  await t.rejects(builtApp(t, undefined, `import 'x'\n${module}`), /cannot be a script with "import 'x'" in it/)
})

test('the same file is a CommonJS module for Node, where sessions live in memory', async (t) => {
  const { auth, people } = await startedAuth(t)
  const ServiceAuth = await required(t, auth.url)
  const [ann, ben] = people
  const service = new ServiceAuth()
  const events = eventsOf(service)
  t.equal(service.apiUrl, `${auth.url}/api`)
  t.equal(service.storageKey, 'service_auth')
  t.equal(service.isLoggedIn(), false)
  t.equal(await service.getUser(), null)
  const login = await service.login(ann.email, ann.password)
  const user = { username: ann.username, email: ann.email }
  t.same(login, { success: true, user, sessionKey: login.sessionKey })
  t.equal(service.isLoggedIn(), true)
  t.same(await service.getUser(), user)
  t.equal(await service.verifySession(), true)
  const friends = await service.getFriends()
  t.equal(friends.count, friends.friends.length)
  t.match(await service.refreshFriends(), { success: true, friends: friends.friends, count: friends.count })
  const games = await service.getGames()
  t.match((await service.refreshGames()).games, games.games)
  const profile = await service.getProfile()
  t.match((await service.refreshProfile()).gamesPlayed, profile.gamesPlayed)
  t.same(await service.getMutes(), [])
  await service.login(ben.email, ben.password)
  t.match(await service.getUser(), { username: ben.username }, 'a login replaces the one before')
  await service.logout()
  t.equal(service.isLoggedIn(), false)
  t.same(events, [['login', user], ['login', { username: ben.username, email: ben.email }], ['logout']])
  t.equal(new ServiceAuth().isLoggedIn(), false)
})

test('a failing method tells its listeners and rejects with an Error that has a status', async (t) => {
  const { auth, people } = await startedAuth(t)
  const ServiceAuth = await required(t, auth.url)
  const [ann] = people
  const service = new ServiceAuth({ timeoutMs: 2000 })
  const events = eventsOf(service)
  const fails = async (call: Promise<unknown>, status: number, message: RegExp) => {
    const error = await call.then(
      () => undefined,
      (error: unknown) => error
    )
    t.ok(error instanceof Error)
    t.match(error, { name: 'ServiceAuthError', status, message })
    t.same(events, [['error', error]], 'announced once, before it rejected')
    events.length = 0
  }
  await fails(service.login(ann.email, 'wrong'), 401, /^The email address or the password is wrong\.$/)
  await fails(service.getFriends(), 401, /^Nobody is logged in/)
  await fails(service.refreshGames(), 401, /^Nobody is logged in/)
  t.equal(await service.verifySession(), false, 'a missing session is not a failure')
  await service.login(ann.email, ann.password)
  events.length = 0
  const faults: ['500' | 'garbage' | 'broken' | 'down' | 'hang', status: number, message: RegExp][] = [
    ['500', 500, /^The service is out of order\.$/],
    ['garbage', 200, /\/api\/auth\/profile answered no JSON object; check apiUrl\.$/],
    ['broken', 200, /answered no JSON object/],
    ['down', 0, /^The auth service at http:.* cannot be reached\.$/],
    ['hang', 0, /^The auth service at http:.* did not answer within 2000 ms\.$/]
  ]
  for (const [fault, status, message] of faults) {
    auth.orderFault({ fault })
    await fails(service.getProfile(), status, message)
    t.equal(service.isLoggedIn(), true, fault)
  }
  t.match(await service.getProfile(), { count: Number }, 'what failed is not kept')
  auth.expireSessions()
  await fails(service.refreshProfile(), 401, /^The session is invalid/)
  t.equal(service.isLoggedIn(), true, 'only verifySession judges a session')
  t.equal(await service.verifySession(), false)
  t.equal(service.isLoggedIn(), false)
  t.same(events, [], 'an expired session is neither a logout nor a failure')
})

test('an unexpected answer of the auth service is a failure, not a session', async (t) => {
  const answers: Record<string, unknown> = {
    '/api/auth/login': { success: true, username: 'ann' },
    '/api/auth/verify': { username: 'ann' },
    '/api/auth/friends': { games: [] }
  }
  const asked: string[] = []
  const url = await listening(t, ({ url = '', headers }, response) => {
    asked.push(`${url} ${headers['x-session-key'] ?? ''}`)
    const status = { '/api/auth/games': 307, '/api/auth/logout': 401 }[url] ?? 200
    response.writeHead(status, status === 307 ? { location: '/elsewhere' } : {})
    response.end(JSON.stringify(answers[url] ?? {}))
  })
  const service = new (await required(t, url))()
  const events = eventsOf(service)
  await t.rejects(service.login('a', 'b'), { status: 200, message: /without a user name or a session key/ })
  answers['/api/auth/login'] = { success: false, error: 'The account is locked.' }
  await t.rejects(service.login('a', 'b'), { status: 200, message: 'The account is locked.' })
  t.equal(service.isLoggedIn(), false)
  answers['/api/auth/login'] = { success: true, username: 'ann', sessionKey: 'k' }
  t.same((await service.login('a@b', 'b')).user, { username: 'ann', email: 'a@b' }, 'the address that was typed')
  await t.rejects(service.getFriends(), { status: 200, message: /friends without a list friends/ })
  t.equal(await service.verifySession(), false)
  t.equal(service.isLoggedIn(), true, 'no verdict is not a refusal')
  await t.rejects(service.getGames(), { status: 0, message: /cannot be reached/ })
  t.notOk(asked.includes('/elsewhere k'), 'a session key follows no redirect')
  answers['/api/auth/verify'] = { valid: false }
  t.equal(await service.verifySession(), false)
  t.equal(service.isLoggedIn(), false)
  t.equal(events.filter(([name]) => name === 'error').length, 5)
  await service.login('a', 'b')
  await service.logout()
  t.match(events.at(-1), ['logout'], 'a session that is unknown there has ended, as was wanted')
})

test('wrong use is refused with a sentence', async (t) => {
  const ServiceAuth = await required(t, undefined)
  const service = new ServiceAuth()
  await t.rejects(service.login('a', 'b'), { status: 0, message: /^No auth service is configured; give its address/ })
  const odd = service as unknown as { on(name: string, listener: unknown): void }
  t.throws(() => odd.on('toString', () => undefined), {
    name: 'TypeError',
    message: /^on\(toString\) takes login, logout or error/
  })
  t.throws(() => odd.on('login', 'alert(1)'), TypeError)
  for (const ms of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
    t.throws(() => service.startAutoVerify(ms), RangeError)
    t.throws(() => new ServiceAuth({ timeoutMs: ms }), RangeError)
  }
  t.equal(new ServiceAuth({ apiUrl: 'https://auth.example.org/api//' }).apiUrl, 'https://auth.example.org/api')
})

test('a page under a strict policy signs in, and its tabs have the same session', { skip }, async (t) => {
  const { auth, people, asked, apiUrl, open, faults } = await visit(t)
  const [ann, ben] = people
  const page = await open()

  await t.test('a login is announced, stored, and holds after a reload', async (t) => {
    const login = await page.evaluate(`(async () => {
      globalThis.auth = new ServiceAuth()
      globalThis.events = []
      for (const name of ['login', 'logout', 'error']) {
        auth.on(name, (value) => events.push([name, value?.status ?? value?.username ?? null]))
      }
      return { ...await auth.login('${ann.email}', '${ann.password}'), events, isLoggedIn: auth.isLoggedIn() }
    })()`)
    const user = { username: ann.username, email: ann.email }
    t.match(login, { success: true, user, sessionKey: String, events: [['login', ann.username]], isLoggedIn: true })
    const stored = z.string().parse(await page.evaluate(`localStorage.getItem('service_auth')`))
    t.match(stored, z.object({ sessionKey: z.string() }).parse(login).sessionKey)
    t.notMatch(stored, ann.password)
    await page.reload()
    t.same(await page.evaluate('new ServiceAuth().getUser()'), user)
    t.equal(await page.evaluate('new ServiceAuth().verifySession()'), true)
    t.equal(await page.evaluate(`new ServiceAuth({ storageKey: 'other' }).isLoggedIn()`), false)
    const fromModule = `import('/service-auth.mjs').then((m) => [m.default === m.ServiceAuth, new m.ServiceAuth().isLoggedIn()])`
    t.same(await page.evaluate(fromModule), [true, true], 'the module is the same, and shares the session')
  })

  await t.test('lists are requested once, and again after a refresh or a minute', async (t) => {
    const page = await open({ clock: true })
    asked.length = 0
    const lists = `(async () => {
      globalThis.auth = new ServiceAuth()
      const [first, same] = await Promise.all([auth.getFriends(), auth.getFriends()])
      const was = structuredClone(same)
      first.friends.length = same.friends.length = 0
      const again = await auth.getFriends()
      const fresh = await auth.refreshFriends()
      const kept = await auth.getFriends()
      return { was, again, fresh, kept }
    })()`
    const { was, again, fresh, kept } = z.record(z.string(), z.looseObject({})).parse(await page.evaluate(lists))
    t.same(again, was, 'what a page does to an answer stays with the page')
    t.same({ success: true, ...kept }, fresh)
    t.same(asked, ['friends', 'refresh/friends'])
    await page.clock.runFor(MINUTE_MS + 1)
    await page.evaluate('auth.getFriends()')
    t.same(asked, ['friends', 'refresh/friends', 'friends'])
    await page.close()
  })

  await t.test('a login or logout in another tab takes effect at once, without an event', async (t) => {
    await page.evaluate(`(async () => {
      globalThis.auth = new ServiceAuth()
      globalThis.events = []
      for (const name of ['login', 'logout', 'error']) auth.on(name, () => events.push(name))
      globalThis.before = await auth.getFriends()
    })()`)
    const tab = await open()
    await tab.evaluate('new ServiceAuth().logout()')
    await untilShared(tab, page)
    t.same(await page.evaluate('Promise.all([auth.isLoggedIn(), auth.getUser()])'), [false, null])
    t.equal(await page.evaluate('auth.getFriends().catch((error) => error.status)'), 401, 'nor are answers kept for it')
    t.same(await page.evaluate('events'), ['error'])
    await tab.evaluate(`new ServiceAuth().login('${ben.email}', '${ben.password}')`)
    await untilShared(tab, page)
    t.match(await page.evaluate('auth.getUser()'), { username: ben.username })
    t.equal(
      await page.evaluate('auth.getFriends().then((now) => JSON.stringify(now) === JSON.stringify(before))'),
      false,
      'nobody is shown the friends of another'
    )
    await tab.close()
  })

  await t.test('an ended session is deleted, one that cannot be verified is kept', async (t) => {
    const verified = `(async () => {
      events.length = 0
      auth.on('error', ({ status }) => events.push(status))
      return [await auth.verifySession(), auth.isLoggedIn(), ...events.splice(0)]
    })()`
    t.same(await page.evaluate(verified), [true, true])
    auth.orderFault(DOWN)
    t.match(await page.evaluate(verified), [false, true, 'error', 0])
    auth.orderFault({ ...DOWN, count: 0 })
    auth.orderFault({ fault: '500' })
    t.match(await page.evaluate(verified), [false, true, 'error', 500])
    auth.orderFault({ fault: 'garbage' })
    t.match(await page.evaluate(verified), [false, true, 'error', 200])
    auth.expireSessions()
    t.same(await page.evaluate(verified), [false, false])
    t.equal(await page.evaluate(`localStorage.getItem('service_auth')`), null)
  })

  await t.test('a verdict on a session that another tab has replaced does not end the new one', async (t) => {
    const page = await open()
    const other = await open()
    await page.evaluate(`(async () => {
      globalThis.auth = new ServiceAuth()
      await auth.login('${ann.email}', '${ann.password}')
    })()`)
    auth.expireSessions()
    const held = await hold(page, '**/auth/verify')
    const verifying = page.evaluate('auth.verifySession()')
    const release = await held.next()
    await other.evaluate(`new ServiceAuth().login('${ben.email}', '${ben.password}')`)
    await untilShared(other, page)
    release()
    ;(await held.next())()
    t.equal(await verifying, true, 'the new one is verified instead')
    t.match(await page.evaluate('auth.getUser()'), { username: ben.username })
    await Promise.all([page.close(), other.close()])
  })

  await t.test('a logout ends the session at both sides, or only here if the service is unavailable', async (t) => {
    const page = await open()
    const outcome = await page.evaluate(`(async () => {
      globalThis.auth = new ServiceAuth()
      const events = []
      for (const name of ['logout', 'error']) auth.on(name, () => events.push([name, auth.isLoggedIn()]))
      const { sessionKey } = await auth.login('${ann.email}', '${ann.password}')
      await auth.logout()
      const verify = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ sessionKey }) }
      return { events, status: (await fetch(auth.apiUrl + '/auth/verify', verify)).status }
    })()`)
    t.same(outcome, { events: [['logout', false]], status: 401 })
    await page.evaluate(`auth.login('${ann.email}', '${ann.password}')`)
    auth.orderFault(DOWN)
    const offline = await page.evaluate(`(async () => {
      const events = []
      for (const name of ['logout', 'error']) auth.on(name, () => events.push(name))
      return [await auth.logout().catch((error) => error.status), events, auth.isLoggedIn()]
    })()`)
    auth.orderFault({ ...DOWN, count: 0 })
    t.same(offline, [0, ['logout', 'error'], false])
    await page.close()
  })

  await t.test('any other content of the storage counts as no session', async (t) => {
    const entries = [
      '',
      'null',
      '[]',
      '7',
      '{',
      '{"sessionKey":""}',
      '{"sessionKey":"k"}',
      '{"sessionKey":"k","user":[]}'
    ]
    for (const entry of [...entries, '{"sessionKey":7,"user":{"username":"a","email":"b"}}', '\ud800']) {
      const seen = `localStorage.setItem('service_auth', ${JSON.stringify(entry)})
        auth = new ServiceAuth(); Promise.all([auth.isLoggedIn(), auth.getUser(), auth.verifySession()])`
      t.same(await page.evaluate(seen), [false, null, false], entry)
    }
    await page.evaluate('localStorage.clear()')
  })

  await t.test('with a forbidden or full storage the session is only of this page', async (t) => {
    const login = `(async () => {
      globalThis.auth = new ServiceAuth()
      const { user } = await auth.login('${ann.email}', '${ann.password}')
      return [user.username, auth.isLoggedIn(), await auth.verifySession(), (await auth.getFriends()).count > 0]
    })()`
    const loggedOut = 'auth.logout().then(() => auth.isLoggedIn())'
    const sandboxed = await open({ path: '/page/sandboxed' })
    t.match(await sandboxed.evaluate('try { localStorage } catch (error) { error.name }'), 'SecurityError')
    t.same(await sandboxed.evaluate(login), [ann.username, true, true, true])
    t.equal(await sandboxed.evaluate(loggedOut), false)
    await sandboxed.close()

    const old = JSON.stringify({ sessionKey: 'k', user: { username: 'b', email: 'b' } })
    await page.evaluate(`localStorage.setItem('service_auth', '${old}')
      for (let size = 8_000_000; size >= 1; size = Math.floor(size / 2)) {
        for (let isFull = false; !isFull;) {
          try {
            localStorage.setItem('filler' + localStorage.length, 'x'.repeat(size))
          } catch {
            isFull = true
          }
        }
      }`)
    t.match(await page.evaluate('new ServiceAuth().getUser()'), { username: 'b' })
    t.same(await page.evaluate(login), [ann.username, true, true, true])
    t.equal(await page.evaluate(`localStorage.getItem('service_auth')`), null, 'the former one stays deleted')
    t.equal(await page.evaluate(loggedOut), false)
    await page.evaluate('localStorage.clear()')
  })

  await t.test('the session is verified at intervals that do not pile up, until it is stopped', async (t) => {
    const page = await open({ clock: true })
    const held = await hold(page, '**/auth/verify')
    const checks = () => asked.filter((call) => call === 'verify').length
    const start = 'globalThis.stop = auth.startAutoVerify(60_000, tell)'
    const notifications = (count: number) =>
      page.evaluate(`new Promise((resolve) => {
        globalThis.look = () => told.length >= ${count} && resolve(told.join())
        look()
      })`)
    await page.evaluate(`(async () => {
      globalThis.told = []
      globalThis.look = () => undefined
      globalThis.tell = (isValid) => {
        told.push(isValid)
        look()
      }
      globalThis.auth = new ServiceAuth({ timeoutMs: 24 * 3_600_000 })
      await auth.login('${ann.email}', '${ann.password}')
      ${start}
      globalThis.first = stop
      ${start}
    })()`)
    asked.length = 0
    await page.clock.runFor(MINUTE_MS)
    const release = await held.next()
    await page.clock.runFor(60 * MINUTE_MS)
    t.equal(held.waiting(), 0, 'while one check waits, no other begins')
    release()
    t.equal(await notifications(1), 'true')
    await page.evaluate('first()')
    await page.clock.runFor(MINUTE_MS)
    ;(await held.next())()
    t.equal(await notifications(2), 'true,true')
    t.equal(checks(), 2, 'the second start took the place of the first, whose stop stops nothing more')
    await page.evaluate('stop()')
    await page.clock.runFor(60 * MINUTE_MS)
    t.equal(held.waiting(), 0)
    t.equal(checks(), 2)
    await page.evaluate(start)
    auth.expireSessions()
    await page.clock.runFor(MINUTE_MS)
    ;(await held.next())()
    t.equal(await notifications(3), 'true,true,false')
    await page.clock.runFor(10 * MINUTE_MS)
    t.equal(checks(), 3, 'without a login no request is sent')
    await page.close()
  })

  t.same(faults, [], 'no violation of the policy, no unhandled rejection')

  await t.test('a listener that fails changes nothing but is reported', async (t) => {
    const outcome = await page.evaluate(`(async () => {
      const auth = new ServiceAuth()
      const heard = []
      auth.on('login', () => { throw new Error('a mistake of the page') })
      const off = auth.on('login', () => heard.push('first'))
      auth.on('login', ({ username }) => heard.push(username))
      await auth.login('${ann.email}', '${ann.password}')
      off()
      await auth.login('${ann.email}', '${ann.password}')
      return heard
    })()`)
    t.same(outcome, ['first', ann.username, ann.username])
    t.same(faults.splice(0), ['a mistake of the page', 'a mistake of the page'])
  })

  await t.test('a page of another origin loads it, as a script and as a module', async (t) => {
    const origin = await listening(t, (_, response) =>
      response.writeHead(200, { 'content-type': 'text/html' }).end('<p>')
    )
    const page = await open({ path: '/', origin })
    await page.addScriptTag({ url: `${apiUrl}/service-auth.js` })
    t.equal(
      await page.evaluate(`new ServiceAuth().login('${ann.email}', '${ann.password}').then((l) => l.success)`),
      true
    )
    t.equal(await page.evaluate(`import('${apiUrl}/service-auth.mjs').then((m) => new m.default().isLoggedIn())`), true)
    await page.close()
  })
})

/** The API with only the browser SDK, and pages below `/page`. */
async function builtApp(t: Test, authUrl: string | undefined, text = module) {
  const none = () => Promise.reject(new Error('No table is asked here.'))
  const app = await buildApp(
    {
      endpoints: [],
      tables: { rows: none, json: none, stream: none },
      positions: none,
      dataVersions: {
        serving: FIRST_GENERATION,
        refreshDropped: none,
        repeatedReads: 0,
        revision: 0,
        isCurrent: true,
        versionOf: () => 0,
        recordWrite: () => undefined,
        onChange: () => () => undefined
      },
      catalog: { newest: none, held: none, boards: none },
      publicUrl: 'http://127.0.0.1',
      version: '0',
      registry: new Registry(),
      ready: async () => ({ ok: true })
    },
    async (app) => {
      await addServiceAuth(app, { module: text, authUrl })
      const policy = `default-src 'none'; script-src 'self'; connect-src ${authUrl}; require-trusted-types-for 'script'`
      for (const [path, more] of [
        ['/page', ''],
        ['/page/sandboxed', '; sandbox allow-scripts']
      ] as const) {
        app.get(path, (_request, reply) =>
          reply
            .type('text/html')
            .header('Content-Security-Policy', policy + more)
            .send(PAGE)
        )
      }
    }
  )
  t.teardown(() => app.close())
  return app
}

async function startedAuth(t: Test, onAnswered: (answered: { path: string }) => void = () => undefined) {
  const network = { url: 'http://network.example', world, instantShown: () => NOON }
  const auth = await startDemoAuth({ network, onAnswered })
  t.teardown(() => auth.close())
  const [ann, ben] = auth.people
  if (ann === undefined || ben === undefined) throw new Error('The demo auth service has fewer than two accounts.')
  return { auth, people: [ann, ben] as const }
}

/** Saves `/service-auth.js` in a CommonJS project, and requires it. */
async function required(t: Test, authUrl: string | undefined): Promise<ServiceAuthClass> {
  const app = await builtApp(t, authUrl)
  const directory = t.testdir({ 'package.json': '{}' })
  await writeFile(join(directory, 'service-auth.js'), (await app.inject('/service-auth.js')).body)
  const found = createRequire(join(directory, 'index.js'))('./service-auth.js')
  t.equal(found, (globalThis as { ServiceAuth?: unknown }).ServiceAuth)
  t.equal(found, found.ServiceAuth)
  return found
}

const SHARED_MS_MAX = 30_000

/** Waits until one tab reads what another has stored: Chromium carries it between their processes a moment later. */
async function untilShared(from: Page, to: Page): Promise<void> {
  const stored = 'JSON.stringify(Object.entries(localStorage).sort())'
  const written = await from.evaluate(stored)
  for (const until = Date.now() + SHARED_MS_MAX; (await to.evaluate(stored)) !== written; ) {
    if (Date.now() > until) throw new Error(`The other tab does not read ${written} after ${SHARED_MS_MAX} ms.`)
    await pause(5)
  }
}

function eventsOf(service: ServiceAuthInstance): unknown[][] {
  const events: unknown[][] = []
  service.on('login', (user) => events.push(['login', user]))
  service.on('logout', () => events.push(['logout']))
  service.on('error', (error) => events.push(['error', error]))
  return events
}

/** An API, an auth service and a browser. `asked` collects the calls of the auth service, `faults` the errors. */
async function visit(t: Test) {
  const asked: string[] = []
  const { auth, people } = await startedAuth(t, ({ path }) => asked.push(path.replace('/api/auth/', '')))
  const app = await builtApp(t, auth.url)
  const apiUrl = await app.listen({ host: '127.0.0.1', port: 0 })
  const browser: Browser = await chromium.launch({
    executablePath: browserPath ?? '',
    args: ['--no-sandbox', '--disable-gpu']
  })
  t.teardown(() => browser.close())
  const context = await browser.newContext()
  const faults: string[] = []
  const open = async ({ path = '/page', origin = apiUrl, clock = false } = {}): Promise<Page> => {
    const page = await context.newPage()
    page.setDefaultTimeout(WAIT_MS)
    page.on('pageerror', (error) => faults.push(error.message))
    page.on('console', (message) => {
      if (/policy|uncaught/i.test(message.text())) faults.push(message.text())
    })
    if (clock) await page.clock.install()
    await page.goto(origin + path)
    return page
  }
  return { auth, people, asked, faults, apiUrl, open }
}

/** Delays the requests of a page to some addresses; `next` waits for one and returns the function that releases it. */
async function hold(page: Page, address: string) {
  const requests: (() => void)[] = []
  let arrived = () => undefined as unknown
  await page.route(address, async (route, request: Request) => {
    if (request.method() === 'OPTIONS') return route.continue()
    await new Promise<void>((resolve) => {
      requests.push(resolve)
      arrived()
    })
    await route.continue()
  })
  return {
    waiting: () => requests.length,
    next: async (): Promise<() => void> => {
      const arrival = new Promise((resolve) => {
        arrived = () => resolve(undefined)
      })
      if (requests.length === 0) await arrival
      const release = requests.shift()
      if (release === undefined) throw new Error('A request was announced, but is missing.')
      return release
    }
  }
}
