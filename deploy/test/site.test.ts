import { access } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { until } from '@gamenet/engines/testing'
import { instantOf } from '@gamenet/schemas'
import axe from 'axe-core'
import * as cheerio from 'cheerio'
import { HtmlValidate } from 'html-validate'
import { type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { type Test, test } from 'tap'
import { type Environment, gamenet, gamenetJson, ON_REQUEST, openGamenet, plainWrites } from './service/gamenet.js'
import { startAuth } from './service/people-service.js'
import { startUpstream, type UpstreamTitle } from './service/upstream.js'

const BROWSER = '/usr/bin/chromium'
const hasBrowser = await access(BROWSER).then(
  () => true,
  () => false
)
if (!hasBrowser) console.error(`NO BROWSER: pages are not tested in one; ${BROWSER} is not installed.`)
const skip = !hasBrowser && process.env.CI !== 'true' ? 'NO BROWSER is installed: pages are not tested in one' : false

const EVIL = '<script>alert(1)</script>'
const ARABIC = 'لعبة كرة القدم'
const LONG = 'An uncommonly long name of a game, of sixty letters or more!'
const titles: readonly UpstreamTitle[] = [
  {
    titleId: '4d530064',
    name: 'Halo 2',
    subtitle: '',
    online: 41,
    lobbies: { players: 16, sessions: 3 },
    hasBoards: true
  },
  { titleId: '55530036', name: EVIL, subtitle: '', online: 30, lobbies: null },
  { titleId: '55530037', name: ARABIC, subtitle: '', online: 20, lobbies: null },
  { titleId: '55530038', name: LONG, subtitle: '', online: 10, lobbies: null },
  { titleId: '55530039', name: 'Twin', subtitle: '', online: 3, lobbies: null },
  { titleId: '5553003a', name: 'Twin', subtitle: '', online: 2, lobbies: null }
]
/** A board of last spring, which changed on three days. */
const IMPORTED = 'titleId,leaderboardId,playerName,changeType,rating,changedAt'
const PAST = `${IMPORTED}
4d530064,2,Cleo,new,100,2026-03-01T12:00:00Z
4d530064,2,Ben,new,200,2026-03-02T12:00:00Z
4d530064,2,Cleo,updated,300,2026-03-03T12:00:00Z
4d530064,2,Dan,new,200,2026-03-03T12:00:00Z
`
const players = ['Ann', 'compare', '😀 joker', EVIL, 'بلال']

/** A service that has visited a small network once. */
async function visited(t: Test) {
  const [upstream, auth] = [await startUpstream(), await startAuth(t)]
  t.teardown(() => upstream.close())
  upstream.show({ registered: 21_345, online: 106, titles })
  const entries = players.map((name, index) => ({ rank: index + 1, name, score: String(900 - index * 100) }))
  upstream.showGame('4d530064', {
    lobbies: [{ host: 'Ann', players: 7, most: 16 }],
    boards: [{ leaderboardId: 1, name: 'Ranked', entries }]
  })
  upstream.showPlayers([{ gamertag: 'Ann', username: 'ann', game: 'Halo 2' }])
  const service = await openGamenet(t, {
    DATA_DIR: join(t.testdir(), 'data'),
    ...ON_REQUEST,
    UPSTREAM_URL: upstream.url,
    AUTH_URL: auth.url,
    ...(await plainWrites(t))
  })
  const client: Environment = { OPERATOR_URL: service.operatorUrl }
  const run = async (command: readonly string[], input?: string) => {
    const done = await gamenet(client, [...command], input === undefined ? undefined : Buffer.from(input))
    if (done.code !== 0) throw new Error(`${command.join(' ')}: ${done.stderr}${done.stdout}`)
  }
  const scrape = async (...sources: readonly string[]) => {
    for (const source of sources) await run(['scrape', source])
    await gamenetJson(client, ['status', '--wait', '180'])
  }
  await scrape('network', 'games', 'matches', 'boards', 'players')
  await run(['import', 'leaderboard-entry', '-'], PAST)
  const json = async (path: string) => await (await fetch(service.apiUrl + path)).json()
  return { apiUrl: service.apiUrl, json, upstream, auth, run, scrape }
}
type Site = Awaited<ReturnType<typeof visited>>

test('the site of a service that has visited a small network', async (t) => {
  const site = await visited(t)
  await t.test('pages say what the API answers, with the right status for bad input; no link is broken', (t) =>
    pagesSay(t, site)
  )
  await t.test('pages in a browser: accessible in both themes, nothing refused, nothing logged', { skip }, (t) =>
    inBrowser(t, site)
  )
  await t.test('a network of 1,000 games, and a user who is erased', (t) => atLast(t, site))
})

/** Returns what a step gives that began and ended in one minute: an answer up to now has another tag in the next. */
async function withinAMinute<Given>(step: () => Promise<Given>): Promise<Given> {
  const minute = () => Math.floor(Date.now() / 60_000)
  for (;;) {
    const began = minute()
    const given = await step()
    if (minute() === began) return given
  }
}

const HTML = { headers: { accept: 'text/html' }, redirect: 'manual' } as const
const HALO = '/games/4d530064/halo-2'

async function pagesSay(t: Test, { apiUrl, json }: Site) {
  const open = async (path: string) => {
    const response = await fetch(apiUrl + path, HTML)
    return { response, $: cheerio.load(await response.text()) }
  }
  const said = ($: cheerio.CheerioAPI) => $('main').text().replace(/\s+/g, ' ')

  await t.test('the network and its games', async (t) => {
    const { $ } = await open('/')
    const online = (await json('/api/online-users')) as Record<string, { online: number }>
    const history = (await json('/api/network-stats/online-24h?days=1')) as { online_count: number }[]
    t.equal($('[data-live=network]').attr('value'), String(history.at(-1)?.online_count))
    const rows = $('#games tbody tr').toArray()
    t.same(
      rows.map((row) => [$(row).find('th').text(), $(row).find('data').first().attr('value')]),
      Object.entries(online)
        .sort(([, a], [, b]) => b.online - a.online)
        .map(([name, game]) => [name, String(game.online)])
    )
    t.equal($('script:not([src]):not([type="application/json"])').length, 0, 'nothing inline')
    t.equal($('[style]').length, 0)
    const { $: sorted } = await open('/games?sort=name')
    const names = sorted('tbody th')
      .toArray()
      .map((cell) => sorted(cell).text())
    t.same(
      names,
      [...names].sort((a, b) => a.localeCompare(b, 'en'))
    )
    t.match(said((await open('/games?q=halo')).$), /1 of 6/)
  })

  await t.test('a game, its board, players and users', async (t) => {
    const title = (await json('/api/title/4d530064')) as { online: number; rank: number; titles: number }
    const game = await open(HALO)
    t.equal(game.$('h1').text(), 'Halo 2')
    t.equal(game.$('.headline [data-live="title/4d530064"]').attr('value'), String(title.online))
    t.match(said(game.$), `#${title.rank} of ${title.titles}`)
    t.equal(game.$('title').text(), 'Halo 2: 41 playing now · Gamenet Stats')
    const { $: year } = await open(`${HALO}?range=1y`)
    const { from = 0, to = 0 } = year('figure.chart').data() as { from?: number; to?: number }
    t.equal(Math.floor((to - from) / 86_400_000), 365, 'a chart of one year spans one year')
    t.match(said(year), 'Data for 1 of 366 days.')
    const board = (await json('/api/game/4d530064/leaderboards/1')) as { entries: { name: string; rating: string }[] }
    const { $ } = await open(`${HALO}/boards/1`)
    t.same(
      $('#entries tbody tr')
        .toArray()
        .map((row) => [$(row).find('th').text(), $(row).find('td.number').eq(1).text()]),
      board.entries.map(({ name, rating }) => [name, rating])
    )
    t.equal($('#entries tbody tr').length, players.length)
    for (const name of players) {
      const player = await open(`/players/${encodeURIComponent(name)}`)
      t.equal(player.response.status, 200, name)
      t.equal(player.$('h1').text(), name)
      t.equal(player.$('.headline data').attr('value'), '1')
    }
    const user = await open('/users/ann')
    t.equal(user.$('h1').text(), 'ann')
    t.equal(user.$('meta[name=robots]').attr('content'), 'noindex')
    t.match(said((await open(`${HALO}/matches`)).$), /Ann\s*7\/16/)
    t.equal((await open('/games/55530036/script-alert-1-script')).$('h1').text(), EVIL)
    t.match(said((await open('/search?q=tw')).$), /Twin.*Twin/)
  })

  await t.test('an entry over time, and the entries that were set in a time', async (t) => {
    const changes = (await json('/api/player/Cleo/history')) as { leaderboardId: number; newRating: string }[]
    const { $ } = await open('/players/Cleo')
    const values = changes.filter(({ leaderboardId }) => leaderboardId === 2).map(({ newRating }) => newRating)
    t.same(values, ['300', '100'])
    t.match($('#entry svg.steps').attr('aria-label'), /from 100 to 300$/)
    t.same(
      $('#entry .ticks span')
        .toArray()
        .map((tick) => $(tick).text()),
      ['1 Mar 2026: 100', '3 Mar 2026: 300']
    )
    const { $: set } = await open(`${HALO}/boards/2?from=2026-03-02&to=2026-03-03`)
    t.same(
      set('[aria-label="Entries set in this time"] tbody td:first-of-type')
        .toArray()
        .map((name) => set(name).text()),
      ['Ben']
    )
    t.match(said((await open(`${HALO}/boards/2?from=2026-03-04&to=2026-03-05`)).$), 'No entry was set in this time.')
  })

  await t.test('other spellings lead to the one address', async (t) => {
    for (const path of ['/games/halo%202', '/games/4d530064', '/games/4D530064/halo-2', '/games/4d530064/wrong']) {
      const { response } = await open(path)
      t.equal(response.status, 308, path)
      t.equal(response.headers.get('location'), HALO)
    }
    const shared = await open('/games/Twin')
    t.equal(shared.response.status, 302)
    t.equal(shared.response.headers.get('location'), '/search?q=Twin')
  })

  await t.test('bad input gets a page with the right status', async (t) => {
    const cases = {
      '/games/nothing': 404,
      '/games/00000000/x': 404,
      [`${HALO}/boards/99`]: 404,
      [`${HALO}/boards/x`]: 400,
      [`${HALO}/boards/1?page=9`]: 404,
      [`${HALO}/boards/1?asOf=2099-01-01`]: 400,
      [`${HALO}/boards/1?asOf=2001-01-01`]: 404,
      [`${HALO}/boards/1?asOf=2001-13-01`]: 400,
      [`${HALO}?from=2026-01-01`]: 400,
      [`${HALO}?range=2h`]: 400,
      [`${HALO}?compare=nothing`]: 404,
      '/players/nobody': 404,
      '/players/%00': 400,
      '/players/Ann?page=202': 400,
      '/embed/players/nobody': 404,
      '/players/nobody/card.png': 404,
      '/users/nobody': 404,
      '/games?page=2': 404,
      [`/search?q=${'x'.repeat(501)}`]: 400,
      [`/search?q=${'x'.repeat(500)}`]: 200,
      '/achievements/nothing': 404,
      '/compare?games=nothing': 404,
      '/nothing': 404,
      '/img/nothing': 404
    }
    for (const [path, status] of Object.entries(cases)) {
      const { response, $ } = await open(path)
      t.equal(response.status, status, path)
      t.match(response.headers.get('content-type'), 'text/html', path)
      t.ok($('h1').text(), path)
    }
    const near = async (path: string) => (await open(path)).$('main .feed a').attr('href')
    t.equal(await near('/games/halo%20two'), HALO)
    t.equal(await near(`${HALO}/boards/99`), `${HALO}/boards/1`)
    t.equal(await near('/players/Anna'), '/players/Ann')
    t.match((await fetch(`${apiUrl}/nothing`)).headers.get('content-type'), 'application/json')
    t.match((await fetch(`${apiUrl}/api/nothing`, HTML)).headers.get('content-type'), 'application/json')
  })

  await t.test('a copy is confirmed without its body, and nothing but the encoding varies', async (t) => {
    for (const path of ['/games', HALO, '/games/4d530064/badge.svg', '/games/4d530064/card.png']) {
      const { first, again } = await withinAMinute(async () => {
        const { headers } = (await open(path)).response
        const tag = headers.get('etag') ?? ''
        return { first: headers, again: await fetch(apiUrl + path, { headers: { 'if-none-match': tag } }) }
      })
      t.match(first.get('etag'), /^"/, path)
      t.equal(first.get('vary'), 'Accept-Encoding')
      t.equal(again.status, 304, path)
    }
  })

  await t.test('a board as it was known says so, is not live, and keeps the instant in its addresses', async (t) => {
    const known = `asOf=2026-03-02T23:59:59Z&knownAt=${instantOf(Math.floor(Date.now() / 1000) * 1000)}`
    const { $ } = await open(`${HALO}/boards/2?${known}`)
    t.match(said($), /As of 2 Mar 2026.*As known at .*: entries and records\..*1Ben200/)
    t.equal($('[data-live-board]').length, 0)
    const kept = (href: string | undefined) => new URL(href ?? '', apiUrl).searchParams
    for (const href of [$('link[rel="canonical"]').attr('href'), $('a[href*="format=csv"]').attr('href')]) {
      const { asOf, knownAt } = Object.fromEntries(new URLSearchParams(known))
      t.match(Object.fromEntries(kept(href)), { asOf, knownAt })
    }
    t.ok(
      $('form a')
        .toArray()
        .some((each) => $(each).text() === 'Now')
    )
    const before = await open(`${HALO}/boards/2?knownAt=2020-01-01`)
    t.equal(before.response.status, 404, 'nothing was known')
  })

  await t.test('pictures, embeds and files for programs', async (t) => {
    t.match(await (await fetch(`${apiUrl}/games/4d530064/badge.svg`)).text(), /Halo 2.*41 playing/)
    const chart = async (path: string) => (await fetch(apiUrl + path)).text()
    t.match(await chart('/games/4d530064/boards/2/chart.svg'), /1 Mar 2026: 100<.*3 Mar 2026: 300 ·/s)
    t.match(await chart('/players/Cleo/chart.svg'), /d="M0 220H\d+V0H768".*1 Mar 2026: 100<.*3 Mar 2026: 300 ·/s)
    t.match(await chart('/players/Ben/chart.svg'), /Ben: Board 2<.*d="M0 220h1H768"/s)
    const card = Buffer.from(await (await fetch(`${apiUrl}/games/4d530064/card.png`)).arrayBuffer())
    t.same([card.readUInt32BE(16), card.readUInt32BE(20)], [1200, 630])
    const past = await open(`${HALO}/boards/2?asOf=2026-03-02T23:59:59Z`)
    t.match(past.$('title').text(), / on 2 Mar 2026 23:59 UTC · Halo 2/)
    const picture = past.$('meta[property="og:image"]').attr('content') ?? ''
    t.match(picture, '/games/4d530064/boards/2/card.png?asOf=2026-03-02T23:59:59Z')
    t.match(
      (await fetch(picture.startsWith('/') ? apiUrl + picture : picture)).headers.get('content-type'),
      'image/png'
    )
    const then = await open('/embed/boards/4d530064/2?asOf=2026-03-02T23:59:59Z')
    t.match(said(then.$), /on 2 Mar 2026 23:59 UTC.*1\. Ben\s+200.*2\. Cleo\s+100/)
    const embed = await fetch(`${apiUrl}/embed/games/4d530064?theme=dark`, HTML)
    t.match(embed.headers.get('content-security-policy'), 'frame-ancestors *')
    t.match((await fetch(`${apiUrl}/games`, HTML)).headers.get('content-security-policy'), "frame-ancestors 'none'")
    const oembed = (await json(`/oembed?url=${encodeURIComponent(apiUrl + HALO)}`)) as { html: string }
    t.match(oembed.html, '/embed/games/4d530064"')
    t.match(await (await fetch(`${apiUrl}/sitemap.xml`)).text(), `${HALO}/boards/1</loc>`)
    t.match(await (await fetch(`${apiUrl}/robots.txt`)).text(), 'Disallow: /*?*asOf=')
  })

  await t.test('every link from the home page works, and the HTML is valid', async (t) => {
    const validator = new HtmlValidate({
      extends: ['html-validate:standard'],
      rules: {
        'void-style': 'off',
        'no-inline-style': 'error',
        'require-sri': 'off',
        'no-trailing-whitespace': 'off',
        'attribute-boolean-style': 'off',
        'attribute-empty-style': 'off',
        'no-redundant-role': 'off',
        'long-title': 'off',
        'doctype-style': 'off',
        'prefer-native-element': 'off',
        'text-content': 'off',
        'wcag/h63': 'off',
        'tel-non-breaking': 'off',
        'no-implicit-button-type': 'error'
      }
    })
    const found = new Set(['/'])
    const kinds = new Set<string>()
    const validated = new Set<string>()
    for (const path of found) {
      // One address of each kind: the same page with other names and numbers says nothing new.
      const kind = path.replace(
        /[0-9a-f]{8}|\d+|(?<==)[^&]*|(?<=\/(?:players|users|achievements|img|docs)\/)[^/?]+/g,
        '*'
      )
      if (kinds.has(kind)) continue
      kinds.add(kind)
      const response = await fetch(apiUrl + path, { headers: { accept: 'text/html,*/*;q=0.1' } })
      t.ok(response.status < 400, `${path} is ${response.status}`)
      if (!(response.headers.get('content-type') ?? '').startsWith('text/html') || path.startsWith('/docs')) {
        await response.arrayBuffer()
        continue
      }
      const html = await response.text()
      // A query arranges a page of the same elements.
      const [kindOfPage = ''] = kind.split('?')
      const report = validated.has(kindOfPage) ? { results: [] } : await validator.validateString(html)
      validated.add(kindOfPage)
      t.same(
        report.results.flatMap(({ messages }) =>
          messages.map(({ ruleId, message, line, column }) => `${ruleId}: ${message} ${line}:${column}`)
        ),
        [],
        path
      )
      const $ = cheerio.load(html)
      for (const link of $('a[href], link[href], script[src], img[src]').toArray()) {
        const href = $(link).attr('href') ?? $(link).attr('src') ?? ''
        const [target = ''] = href.split('#')
        if (target.startsWith('/') && !/^\/(openapi|llms)/.test(target)) found.add(target)
      }
    }
    t.ok(kinds.size > 40, `${kinds.size} kinds of addresses`)
  })
}

async function inBrowser(t: Test, site: Site) {
  const { apiUrl } = site
  const browser = await chromium.launch({ executablePath: BROWSER, args: ['--no-sandbox', '--disable-gpu'] })
  t.teardown(() => browser.close())
  const paths = ['/', '/games', HALO, `${HALO}/boards/1`, '/players/Ann', '/users/ann', '/records', '/achievements']
  const page = await browser.newPage({ viewport: { width: 390, height: 844 } })
  page.setDefaultTimeout(100_000)
  const faults: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error') faults.push(message.text())
  })
  page.on('pageerror', (error) => faults.push(error.message))
  for (const path of [...paths, '/compare?games=4d530064,55530036', '/status', '/search?q=ann', '/me', '/nothing']) {
    await page.emulateMedia({ colorScheme: 'light' })
    await page.goto(apiUrl + path)
    await page.evaluate(axe.source)
    // The dark theme has other colours only.
    for (const [colorScheme, rules] of [
      ['light', '{}'],
      ['dark', `{ runOnly: ['color-contrast'] }`]
    ] as const) {
      await page.emulateMedia({ colorScheme })
      const violations = await page.evaluate(
        `axe.run(${rules}).then(({ violations }) => violations.map(({ id, nodes }) => id + ' ' + nodes[0].html))`
      )
      t.same(violations, [], `${path} in ${colorScheme}`)
    }
    const overflow = await page.evaluate('document.documentElement.scrollWidth - innerWidth')
    t.ok(Number(overflow) <= 0, `${path} fits`)
  }
  t.same(
    faults.filter((fault) => !fault.includes('404')),
    []
  )
  await page.close()
  const open = async (
    path: string,
    options: BrowserContextOptions = {},
    prepare?: (page: Page) => Promise<unknown>
  ) => {
    const context = await browser.newContext({ viewport: { width: 390, height: 844 }, ...options })
    t.teardown(() => context.close())
    const page = await context.newPage()
    page.setDefaultTimeout(100_000)
    page.on('pageerror', (error) => t.fail(error.message))
    await prepare?.(page)
    await page.goto(apiUrl + path)
    return page
  }
  await t.test('first load, on a slow and on a broken network, and without script', (t) => firstLoad(t, open))
  await t.test('watch list, notices and tray', (t) => lists(t, site, open))
  await t.test('a board is played from its first day, and an old address leads to its page', (t) => history(t, open))
  await t.test('chart, slider and filter by keyboard and by two fingers', (t) => byHand(t, open))
  await t.test('only embeds can be framed by other pages', (t) => framed(t, site, open))
  await t.test('a user signs in, edits the own profile and rates another', (t) => own(t, site, open))
}

type Open = (path: string, options?: BrowserContextOptions, prepare?: (page: Page) => Promise<unknown>) => Promise<Page>

async function firstLoad(t: Test, open: Open) {
  for (const [path, bytesMax] of [
    ['/', 100_000],
    [HALO, 100_000],
    ['/records', 30_000]
  ] as const) {
    const seen = { requests: 0, bytes: 0 }
    const page = await open(path, {}, async (page) => {
      const network = await page.context().newCDPSession(page)
      await network.send('Network.enable')
      const slow = { latency: 150, downloadThroughput: 200_000, uploadThroughput: 90_000 }
      await network.send('Network.emulateNetworkConditions', { offline: false, ...slow })
      network.on('Network.requestWillBeSent', ({ request }) => {
        if (!/\/img\/|\/api\/stream/.test(request.url)) seen.requests += 1
      })
      network.on('Network.loadingFinished', ({ encodedDataLength }) => {
        seen.bytes += encodedDataLength
      })
    })
    t.ok(seen.requests <= 8, `${path}: ${seen.requests} requests`)
    t.ok(seen.bytes > 0 && seen.bytes <= bytesMax, `${path}: ${seen.bytes} bytes`)
    const shift = await page.evaluate(
      `new Promise((done) => new PerformanceObserver((list) => done(list.getEntries().reduce((sum, { value }) =>
        sum + value, 0))).observe({ type: 'layout-shift', buffered: true }) ?? setTimeout(() => done(0), 500))`
    )
    t.ok(Number(shift) < 0.01, `${path}: shift ${shift}`)
  }
  const plain = await open('/', { javaScriptEnabled: false })
  t.equal(await plain.locator('#games tbody tr').count(), titles.length)
  t.equal(await plain.locator('.plot svg.lines').isVisible(), true)
  const broken = await open('/', {}, (page) => page.route('**/api/**', (route) => route.abort()))
  await broken.locator('body.is-stale').waitFor()
  t.equal(await broken.locator('h1 [data-live=network]').textContent(), '106')
  t.match(await broken.locator('#away').textContent(), /^The service does not answer\. Last update: \S/)
}

async function lists(t: Test, { upstream, scrape }: Site, open: Open) {
  // A tab that is hidden when the test says so, that polls when the test says so, and whose notices it reads.
  const page = await open(HALO, {}, (page) =>
    page.addInitScript(`
      Object.defineProperty(document, 'hidden', { get: () => window.isAway === true })
      window.notices = []
      window.Notification = class { static permission = 'granted'; constructor(_, { body }) { notices.push(body) } }
      const repeat = setInterval
      window.setInterval = (call, ms) => (ms === 60_000 ? ((window.poll = call), 0) : repeat(call, ms))`)
  )
  await page.getByRole('button', { name: 'Watch' }).click()
  await page.getByRole('button', { name: '+ Compare' }).click()
  await page.goto(`${new URL(page.url()).origin}${HALO}/boards/1`)
  await page.getByRole('button', { name: 'Watch' }).click()
  await page.goto(new URL('/', page.url()).href)
  await page.locator('#watched li').nth(1).waitFor()
  t.same(await page.locator('#watched li').allTextContents(), ['Halo 2 41', 'Ranked (Halo 2)'])
  const seen = async (text: string) => {
    await until(async () => String(await page.evaluate(`localStorage.getItem('watched')`)).includes(text))
  }
  await page.evaluate(`isAway = true; document.dispatchEvent(new Event('visibilitychange')); poll()`)
  await seen('900, Ann')
  upstream.show({ registered: 21_345, online: 106, titles: titles.map((title) => ({ ...title, online: 5041 })) })
  const entries = [{ rank: 1, name: 'Ben', score: '950' }]
  upstream.showGame('4d530064', { lobbies: [], boards: [{ leaderboardId: 1, name: 'Ranked', entries }] })
  await scrape('network', 'boards')
  await page.evaluate('poll()')
  await seen('950, Ben')
  t.same(await page.evaluate('notices'), ['Halo 2 has 5,041 players', 'The record on Ranked (Halo 2) fell: 950, Ben'])
  await page.getByRole('link', { name: 'Compare Halo 2' }).click()
  await page.waitForURL('**/compare?games=4d530064')
  await page.getByRole('button', { name: 'Clear' }).click()
  t.equal(await page.locator('#tray').count(), 0)
}

async function history(t: Test, open: Open) {
  const page = await open(`${HALO}/boards/2`)
  await page.getByRole('button', { name: 'Play history' }).click()
  await page.waitForURL(/boards\/2\?asOf=2026-03-01T23:59:59Z$/)
  t.same(await page.locator('#entries tbody th').allTextContents(), ['Cleo'])
  await page.waitForURL(/boards\/2\?asOf=2026-03-02T23:59:59Z$/)
  await page.waitForURL(/boards\/2$/)
  t.same(await page.locator('#entries tbody td:nth-child(3)').allTextContents(), ['300', '200', '200'])
  await page.goto(`${new URL('/', page.url()).href}#title=4d530064&range=30d`)
  await page.waitForURL(`**${HALO}?range=30d`)
  t.equal(await page.locator('.choice [aria-current]').textContent(), '30 d')
}

async function byHand(t: Test, open: Open) {
  const page = await open(`${HALO}?range=30d`, { hasTouch: true, isMobile: true })
  await page.locator('.plot').press('ArrowLeft')
  t.match(await page.locator('.chart [aria-live]').textContent(), /, Halo 2 \d/)
  const { x = 0, y = 0, width = 0 } = (await page.locator('.plot').boundingBox()) ?? {}
  const touch = await page.context().newCDPSession(page)
  const touchAt = async (type: 'touchStart' | 'touchMove' | 'touchEnd', ...shares: readonly number[]) => {
    const touchPoints = shares.map((share, id) => ({ id, x: x + share * width, y: y + 40 }))
    await touch.send('Input.dispatchTouchEvent', { type, touchPoints })
  }
  await touchAt('touchStart', 0.4, 0.6)
  await touchAt('touchMove', 0.3, 0.7)
  await touchAt('touchEnd')
  await page.waitForURL(/range=30d&from=.*&to=/)
  const shown = new URL(page.url()).searchParams
  const days = (Date.parse(shown.get('to') ?? '') - Date.parse(shown.get('from') ?? '')) / 86_400_000
  t.ok(days > 14 && days < 16, `spread to twice the width, 30 days became ${days}`)
  await page.goto(`${new URL(page.url()).origin}${HALO}/boards/2`)
  await page.getByRole('slider').press('ArrowLeft')
  await page.waitForURL(/boards\/2\?asOf=2026-03-03T23:59:59Z$/)
  await page.goto(`${new URL(page.url()).origin}/games`)
  await page.getByLabel('Filter by name or publisher').pressSequentially('tw')
  t.same(await page.locator('tbody tr:visible th').allTextContents(), ['Twin', 'Twin [5553003a]'])
  t.match(page.url(), /\/games$/, 'nothing was asked for')
}

async function framed(t: Test, { apiUrl }: Site, open: Open) {
  const other = createServer((_request, response) =>
    response
      .setHeader('content-type', 'text/html')
      .end(`<iframe src="${apiUrl}/embed/games/4d530064"></iframe><iframe src="${apiUrl}${HALO}"></iframe>`)
  )
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
  t.teardown(() => other.close())
  const page = await open('/icon.svg')
  await page.goto(`http://127.0.0.1:${(other.address() as AddressInfo).port}/`)
  const [, embed, refused] = page.frames()
  t.equal(await embed?.locator('h1').textContent(), 'Halo 2')
  t.match(refused?.url(), /^chrome-error:/)
}

async function own(t: Test, { auth, json, run, scrape }: Site, open: Open) {
  const [person, other] = auth.people
  if (person === undefined || other === undefined) throw new Error('the demo has no people')
  const page = await open('/me')
  const signIn = async ({ email, password, username }: typeof person) => {
    await page.getByLabel('Email').fill(email)
    await page.getByLabel('Password').fill(password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('link', { name: username }).waitFor()
  }
  await signIn(person)
  await page.getByLabel('Gamertag').fill(person.gamertag ?? '')
  await page.getByLabel('About you').fill('Evenings, mostly.')
  await page.getByLabel('Colour of your letter').fill('120')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Saved.').waitFor()
  const entry = `4d530064,3,${person.gamertag},new,100,2026-03-01T12:00:00Z`
  await run(['import', 'leaderboard-entry', '-'], `${IMPORTED}\n${entry}\n`)
  await scrape()
  t.match(await json(`/api/profile/${person.username}`), { profile: { bio: 'Evenings, mostly.' } })
  await page.getByRole('link', { name: person.username }).click()
  await page.getByRole('link', { name: 'Edit your profile' }).click()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await signIn(other)
  await page.goto(new URL(`/users/${person.username}`, page.url()).href)
  await page.getByLabel('Stars').fill('4')
  await page.getByLabel('Comment').fill('Fair play')
  await page.getByRole('button', { name: 'Rate' }).click()
  await page.getByText(': Fair play').waitFor()
  t.same(await page.context().cookies(), [], 'the session is in no cookie')
}

async function atLast(t: Test, { apiUrl, auth, upstream, scrape, run }: Site) {
  const many = Array.from({ length: 1000 }, (_, n) => ({
    ...{ titleId: (0x56000000 + n).toString(16), name: `Game number ${n}`, subtitle: '', online: 1000 - n },
    lobbies: null
  }))
  upstream.show({ registered: 21_345, online: 106, titles: many })
  await scrape('network')
  const said = async (path: string) => {
    const response = await fetch(apiUrl + path, HTML)
    return { status: response.status, $: cheerio.load(await response.text()) }
  }
  const { $ } = await said('/games?page=10')
  t.match($('.pager').text().replace(/\s+/g, ' '), 'Page 10 of 10')
  t.same($('tbody tr').last().find('th').text(), 'Game number 999')
  t.equal((await said('/')).$('#games tbody tr').length, 25)
  t.equal((await said('/games?q=number+432')).$('tbody tr').length, 1)

  t.equal((await said('/users/ann')).status, 200)
  t.match((await said('/search?q=ann')).$('a[href="/users/ann"]').length, 1)
  // Signed in above, with a verified gamertag that a board has.
  const [person] = auth.people
  const gamertag = `/players/${encodeURIComponent(person?.gamertag ?? '')}`
  const link = `a[href="/users/${person?.username}"]`
  if (hasBrowser) t.equal((await said(gamertag)).$(link).length, 1)
  await run(['erase', person?.username ?? '', ...(hasBrowser ? [] : ['--anyway'])])
  t.equal((await said(`/users/${person?.username}`)).status, 404)
  const player = await said(gamertag)
  t.equal(player.status, hasBrowser ? 200 : 404, 'entries of boards are the network’s, not the user’s')
  t.equal(player.$(link).length, 0)
  t.notMatch(await (await fetch(`${apiUrl}/sitemap.xml`)).text(), /\/users\//)
  await run(['erase', 'ann'])
  t.equal((await said('/users/ann')).status, 404)
  t.equal((await said('/users/ann/games')).status, 404)
  t.equal((await said('/search?q=ann')).$('a[href="/users/ann"]').length, 0)

  upstream.showText('This page has moved.')
  await run(['scrape', 'network']).catch(() => undefined)
  await scrape()
  t.match((await said('/')).$('.head.is-stale .note').text(), /^The network’s page has not answered since .+\.$/)
}
