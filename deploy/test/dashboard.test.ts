import { access, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Browser, chromium, type Page } from 'playwright-core'
import { type Test, test } from 'tap'
import { type Environment, gamenet, gamenetJson, openGamenet, plainWrites } from './service/gamenet.js'
import { startUpstream, type Upstream, type UpstreamTitle } from './service/upstream.js'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const BROWSERS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
/** Background services of the browser are not needed here. */
const BROWSER_ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync'
]
/** Reached only by a hang; longer than the page waits for an unavailable service, at most 75 s. */
const WAIT_MS = 100_000
/** Longer than the page waits between two requests. */
const POLL_MS = 6000
/** As long as the page waits before it asks for changed boards. */
const BOARDS_MS = 30_000

const evil: UpstreamTitle = {
  titleId: '4d530064',
  name: '<img src=x onerror=alert(1)>',
  subtitle: '',
  online: 41,
  lobbies: { players: 16, sessions: 3 }
}
const calm: UpstreamTitle = { titleId: '55530036', name: 'Calm Game', subtitle: '', online: 5, lobbies: null }

const browserPath = await firstThatExists(BROWSERS)
const isMissing = browserPath === undefined
if (isMissing) console.error(`NO BROWSER: the dashboard is not tested; none of ${BROWSERS.join(', ')} is installed.`)
const skip = isMissing && process.env.CI !== 'true' ? 'NO BROWSER is installed: the dashboard is not tested' : false

test('a visitor sees live counts next to the history, and zooms in', { skip }, async (t) => {
  const { browser, page, upstream, client, apiUrl, faults } = await visit(t)

  await t.test('old counts are marked as stale, and history is drawn with its gaps', async (t) => {
    await page.goto(apiUrl)
    await text(page, '#status', /^Stale: no count for \d+ min$/)
    await text(page, '#now-online', /^2,000$/)
    await text(page, '#chart-facts', /^Samples · 290 points · 1 gap · highest 2,000 at 20\d\d-/)
    t.ok(await linePixels(page, -5 * HOUR_MS), 'there is a line where counts are')
    t.ok(await linePixels(page, -2 * HOUR_MS), 'there is a line after the gap')
    t.equal(await linePixels(page, -3.5 * HOUR_MS), 0, 'there is none in the gap')
    t.equal(await linePixels(page, -12 * HOUR_MS), 0, 'there is none before the first count')
  })

  await t.test('a new sample appears without a reload', async (t) => {
    await page.evaluate('globalThis.isSamePage = true')
    upstream.show({ registered: 21_345, online: 87, titles: [evil, calm] })
    await scrape(client)
    await page.clock.fastForward(POLL_MS)
    await text(page, '#now-online', /^87$/)
    await text(page, '#now-lobbies', /^3$/)
    await text(page, '#now-registered', /^21,345$/)
    await text(page, '#now-titles', /^2$/)
    await text(page, '#status', /^Live$/)
    await text(page, '#chart-facts', /^Samples · 291 points/)
    t.same(await rows(page), [`${evil.name} 41 3`, 'Calm Game 5 0'])
    upstream.show({ registered: 21_346, online: 95, titles: [{ ...calm, online: 60 }, evil] })
    await scrape(client)
    await page.clock.fastForward(POLL_MS)
    await text(page, '#now-online', /^95$/)
    await text(page, '#titles tr:first-child .name', /^Calm Game$/)
    t.same(await rows(page), ['Calm Game 60 0', `${evil.name} 41 3`], 'the most played game leads')
    t.equal(await page.evaluate('globalThis.isSamePage'), true)
  })

  await t.test('a range selected by dragging is requested in finer resolution; a double-click goes back', async (t) => {
    await page.click('#ranges >> text=30 d')
    await text(page, '#chart-facts', /^Peak of every hour/)
    const responded = page.waitForResponse((response) => response.url().includes('online-24h?from='))
    const over = await page.locator('#chart .u-over').boundingBox()
    if (over === null) throw new Error('the chart has no area to drag over')
    const y = over.y + over.height / 2
    await page.mouse.move(over.x + over.width * 0.5, y)
    await page.mouse.down()
    await page.mouse.move(over.x + over.width * 0.6, y, { steps: 5 })
    await page.mouse.up()
    const answer = await responded
    t.equal(answer.headers()['x-resolution-seconds'], '300')
    await text(page, '#chart-facts', /^Peak of every 5 minutes · 7\d points · no gap/)
    const zoomed = new URLSearchParams(new URL(page.url()).hash.slice(1))
    t.equal(zoomed.get('range'), '30d')
    const spanMs = Date.parse(zoomed.get('to') ?? '') - Date.parse(zoomed.get('from') ?? '')
    t.ok(Math.abs(spanMs - 3 * 24 * HOUR_MS) < 3 * HOUR_MS, 'a tenth of 30 days is shown')

    const shared = await browser.newPage()
    shared.setDefaultTimeout(WAIT_MS)
    await shared.goto(page.url())
    await text(shared, '#chart-facts', /^Peak of every 5 minutes · 7\d points/)
    await shared.close()

    await page.mouse.dblclick(over.x + over.width / 2, y)
    await text(page, '#chart-facts', /^Peak of every hour/)
    t.equal(new URL(page.url()).hash, '#range=30d')
  })

  await t.test('keys select points, zoom, and undo', async (t) => {
    await page.focus('#chart')
    await page.keyboard.press('ArrowLeft')
    await text(page, '#readout', /^Peak of the hour from 20\d\d-\d\d-\d\d \d\d:00 UTC, Online [\d,]+, Lobbies /)
    await page.keyboard.press('+')
    await text(page, '#chart-facts', /^Peak of every 15 minutes/)
    await page.keyboard.press('Escape')
    await text(page, '#chart-facts', /^Peak of every hour/)
    t.equal(await page.evaluate('document.activeElement.id'), 'chart')
  })

  await t.test('games with any name are found, sorted, and opened', async (t) => {
    await page.fill('#filter', 'ONERROR')
    t.same(await rows(page), [`${evil.name} 41 3`])
    await page.fill('#filter', '')
    await page.click('button[data-sort=name]')
    t.same(await rows(page), [`${evil.name} 41 3`, 'Calm Game 60 0'])
    await page.click('button[data-sort=name]')
    t.same(await rows(page), ['Calm Game 60 0', `${evil.name} 41 3`])
    t.equal(await page.getAttribute('th[aria-sort]', 'aria-sort'), 'descending')
    await page.click(`#titles >> text=${evil.name}`)
    await text(page, '#chart-heading', /^<img src=x onerror=alert\(1\)>$/)
    await text(page, '#chart-facts', /^Peak of every 5 minutes · [12] points? · no gap · highest 41 /)
    t.equal(new URL(page.url()).hash, '#title=4d530064&range=48h')
    t.equal(await page.locator('#titles img, #top-games img, h2 img').count(), 2, 'only pictures of games are images')
    await page.click('#to-network')
    await text(page, '#chart-heading', /^Network$/)
  })

  await t.test('a board is shown now and at earlier instants, with its changes, and players are found by name', (t) =>
    looksAtBoards(t, page, client)
  )

  // A browser logs every refusal; two requests were refused.
  const others = faults.filter((fault) => !/status of 40[04]/.test(fault))
  t.same(others, [], 'no error on the console, no violation of the policy, no dialog')

  await t.test('an unknown game is reported, and the rest of the page continues to work', async (t) => {
    await page.goto(`${apiUrl}/#title=ffffffff`)
    await text(page, '#chart-message', /ffffffff/)
    t.equal(await page.locator('#chart canvas').count(), 0)
    await text(page, '#status', /^Live$|^Stale/)
    await page.click('#to-network')
    await page.waitForSelector('#chart canvas')
    t.equal(await page.isVisible('#chart-message'), false)
  })

  await t.test('a hidden page sends no requests', (t) => asksNothingWhileHidden(t, browser, apiUrl))

  await t.test('the page fits narrow phones and wide screens, light and dark', (t) => fits(t, browser, apiUrl))

  await t.test('axe finds nothing in /docs and the dashboard', (t) => isAccessible(t, browser, apiUrl))

  await t.test('an unreachable service is reported, and the page recovers without the user', async () => {
    await page.route('**/api/**', (route) => route.abort('connectionrefused'))
    // Longer than answers count as current without an event.
    await page.clock.fastForward(11 * MINUTE_MS)
    await text(page, '#status', /^The service does not answer\. Trying again in \d+ s\.$/)
    await text(page, '#now-online', /^95$/)
    await page.unroute('**/api/**')
    await page.clock.fastForward(2 * POLL_MS)
    await text(page, '#status', /^Live$|^Stale/)
  })
})

async function looksAtBoards(t: Test, page: Page, client: Environment): Promise<void> {
  const board = { titleId: evil.titleId, leaderboardId: 7 }
  const evilName = '<b onclick=alert(2)>x</b>'
  const rtlName = '\u05d0\u05d1\u05d2 \u202eabc'
  const entry = (day: number, playerName: string, timeMs: number, changeType = 'new') => ({
    ...board,
    playerName,
    timeMs,
    changeType,
    changedAt: `2024-05-0${day}T12:00:00Z`
  })
  const entries = [
    entry(1, 'Ann', 62_345),
    entry(1, evilName, 61_000),
    entry(3, 'ann', 60_000),
    entry(4, rtlName, 90_000)
  ]
  await importLines(t, client, 'leaderboard', [
    { ...board, name: '<i>Best</i> laps', observedAt: '2024-05-01T12:00:00Z' }
  ])
  await importLines(t, client, 'leaderboard-entry', entries)

  await page.selectOption('#board-game', board.titleId)
  const listed = page.locator('#board-list li')
  while ((await listed.count()) === 0) await page.clock.fastForward(BOARDS_MS)
  await text(page, '#board-list li', /^<i>Best<\/i> laps$/)
  await page.focus('#board-list button')
  await page.keyboard.press('Enter')
  await text(page, '#board-facts', /^4 entries, now$/)
  t.equal(await page.evaluate('document.activeElement.id'), 'board-id', 'the board has the focus')
  t.same(await boardRows(page), ['1 ann 1:00.000', `2 ${evilName} 1:01.000`, '3 Ann 1:02.345', `4 ${rtlName} 1:30.000`])
  await text(page, '#board-changes li:first-child', /abc entered with 1:30\.000 \(rank 4\) 2024-05-04 12:00 UTC$/)
  t.equal(await page.locator('#board-changes li').count(), 4)
  await text(page, '#board-records li:first-child', /^1:00\.000 annfrom 2024-05-03 12:00 UTC until now$/)

  await page.click('#board-records li:nth-child(2) small button:last-child')
  await text(page, '#board-facts', /^3 entries, as of 2024-05-03 12:00 UTC$/)
  await page.fill('#board-as-of', '2024-05-02T00:00')
  await text(page, '#board-facts', /^2 entries, as of 2024-05-02 00:00 UTC$/)
  t.same(await boardRows(page), [`1 ${evilName} 1:01.000`, '2 Ann 1:02.345'])
  await page.fill('#board-as-of', '2024-04-01T00:00')
  await text(page, '#board-message', /was first seen at 2024-05-01T12:00:00.000Z/)
  t.equal(await page.isVisible('#board-table'), false)
  await page.click('#board-now')
  await text(page, '#board-facts', /^4 entries, now$/)
  await findsPlayersAndTimes(t, page, evilName)
  await looksAtMatches(t, page, client)
  t.equal(await page.locator('main b, main i').count(), 0, 'names are text')
}

async function findsPlayersAndTimes(t: Test, page: Page, evilName: string): Promise<void> {
  await page.fill('#player', 'AN')
  await page.waitForSelector('#player-names option[value=Ann], #player-names option[value=ann]', { state: 'attached' })
  t.equal(await page.locator('#player-names option').count(), 1, 'one spelling of the name')
  await page.fill('#player', 'ANN')
  await page.press('#player', 'Enter')
  await text(page, '#player-facts', /^Ann, ann: on 2 boards$/)
  t.same(await page.locator('#player-boards td').allTextContents(), [
    '1 of 4',
    '1:00.000',
    'leads',
    '3 of 4',
    '1:02.345',
    '1.345 s'
  ])
  await page.click(`#board-entries button >> text=${evilName}`)
  await text(page, '#player-facts', /^<b onclick=alert\(2\)>x<\/b>: on 1 board$/)
  await page.fill('#player', 'nobody')
  await page.press('#player', 'Enter')
  await text(page, '#player-message', /^No board has an entry of nobody\.$/)
  t.equal(await page.isVisible('#player-table'), false)

  await page.fill('#time', '1:00.950')
  await page.press('#time', 'Tab')
  await text(page, '#time-facts', /^1 entry at 1:00\.950, give or take 100 ms$/)
  await text(page, '#time-found tr', /^<b onclick=alert\(2\)>x<\/b>.* · <i>Best<\/i> lapsrank 21:01\.000$/)
  await page.fill('#time', 'soon')
  await page.click('#time-find')
  await text(page, '#time-message', /time must be .*"soon"/)
}

async function looksAtMatches(t: Test, page: Page, client: Environment): Promise<void> {
  const longName = 'W'.repeat(200)
  const piled = `z${'\u0336\u0489'.repeat(20)}`
  const matches = [
    { hostName: piled, currentPlayers: 2, maxPlayers: 0 },
    { hostName: longName, currentPlayers: 7, maxPlayers: 16 }
  ]
  await text(page, '#matches-message', /^No match is open in the newest list\.$/)
  t.equal(await page.isVisible('#matches-foot'), false)
  const observedAt = new Date(Date.now() - MINUTE_MS).toISOString()
  await importLines(t, client, 'match-list', [{ titleId: evil.titleId, observedAt, matches }])
  await page.clock.fastForward(POLL_MS)
  await text(page, '#matches-facts', /^2 open lobbies, /)
  t.same(await page.locator('#matches-lobbies tr').allTextContents(), [`${longName}7 of 16`, `${piled}2`])
  await text(page, '#match-stats', /^Matches in 24 hours2In 30 days2/)
  for (const width of [390, 1280]) {
    await page.setViewportSize({ width, height: 1000 })
    // The chart follows the window with a delay; a name without line breaks keeps the page wide permanently.
    t.equal(await evaluateUntil(page, 'document.documentElement.scrollWidth', width), width, 'the page holds the names')
  }
}

async function importLines(t: Test, client: Environment, topic: string, lines: readonly object[]): Promise<void> {
  const file = join(t.testdir(), `${topic}.ndjson`)
  await writeFile(file, lines.map((line) => JSON.stringify(line)).join('\n'))
  await gamenetJson(client, ['import', topic, file])
}

/** Returns the entries of the shown board as text. */
async function boardRows(page: Page): Promise<string[]> {
  const found = await page.locator('#board-entries tr').all()
  return await Promise.all(found.map(async (row) => (await row.locator('th, td').allTextContents()).join(' ')))
}

async function asksNothingWhileHidden(t: Test, browser: Browser, apiUrl: string): Promise<void> {
  const page = await browser.newPage()
  page.setDefaultTimeout(WAIT_MS)
  await page.clock.install()
  let requests = 0
  page.on('request', () => {
    requests += 1
  })
  const isStream = (request: { url(): string }) => request.url().includes('api/stream')
  await page.route(/api\/stream/, (route) => route.fulfill({ status: 502 }), { times: 1 })
  const refused = page.waitForRequest(isStream)
  await page.goto(apiUrl)
  await (await refused).response()
  await text(page, '#now-online', /^95$/)
  const begun = page.waitForRequest(isStream)
  await page.clock.fastForward(2 * MINUTE_MS)
  t.ok(await begun, 'a stream that was refused is opened again')
  await text(page, '#now-online', /^95$/)
  const hide = (isHidden: boolean) =>
    page.evaluate(`Object.defineProperty(document, 'hidden', { configurable: true, get: () => ${isHidden} })
      document.dispatchEvent(new Event('visibilitychange'))`)
  // The requests before the start of the stream are repeated once.
  for (let before = -1; before !== requests; ) {
    before = requests
    await page.clock.fastForward(MINUTE_MS)
    await text(page, '#status', /^Live$|^Stale/)
  }
  requests = 0
  await page.clock.fastForward(5 * MINUTE_MS)
  await text(page, '#status', /^Live$|^Stale/)
  t.equal(requests, 0, 'what has not changed is not requested again')
  const ended = page.waitForEvent('requestfailed', isStream)
  await hide(true)
  t.ok(await ended, 'it disconnects')
  requests = 0
  await page.clock.fastForward(10 * MINUTE_MS)
  t.equal(requests, 0)
  const back = page.waitForRequest(isStream)
  await hide(false)
  t.ok(await back, 'it asks at once when it is looked at again')
  await page.close()
}

async function fits(t: Test, browser: Browser, apiUrl: string): Promise<void> {
  const backgrounds = new Set<unknown>()
  const schemes = [
    { colorScheme: 'light', widths: [360, 768, 1920] },
    { colorScheme: 'dark', widths: [1920, 768, 360] }
  ] as const
  for (const { colorScheme, widths } of schemes) {
    const [width] = widths
    const page = await browser.newPage({ colorScheme, viewport: { width, height: 800 } })
    page.setDefaultTimeout(WAIT_MS)
    await page.goto(apiUrl)
    await page.waitForSelector('#chart canvas')
    for (const width of widths) {
      await page.setViewportSize({ width, height: 800 })
      // The chart follows the window a moment later.
      const found = await evaluateUntil(page, 'document.documentElement.scrollWidth', width)
      t.equal(found, width, `${width} ${colorScheme}`)
    }
    backgrounds.add(await page.evaluate('getComputedStyle(document.body).backgroundColor'))
    await page.close()
  }
  t.equal(backgrounds.size, 2)
}

/** Every rule of axe-core, in both colour schemes. The policies of the pages forbid its script, so the browser ignores them here. */
async function isAccessible(t: Test, browser: Browser, apiUrl: string): Promise<void> {
  const axe = fileURLToPath(import.meta.resolve('axe-core/axe.min.js'))
  for (const path of ['/docs', '/']) {
    for (const colorScheme of ['light', 'dark'] as const) {
      const page = await browser.newPage({ colorScheme, bypassCSP: true })
      page.setDefaultTimeout(WAIT_MS)
      await page.goto(apiUrl + path)
      if (path === '/') await page.waitForSelector('#chart canvas')
      await page.addScriptTag({ path: axe })
      const found = await page.evaluate(`axe.run().then(({ violations }) =>
        violations.map(({ id, nodes }) => id + ': ' + nodes.slice(0, 3).map(({ html }) => html).join(' ')))`)
      t.same(found, [], `${path}, ${colorScheme}`)
      await page.close()
    }
  }
}

/**
 * A service with imported history, and a page before its first request: 60 days of hourly counts, samples by the minute
 * from 6 hours to 10 minutes ago, with a gap from 4 to 3 hours ago.
 */
async function visit(t: Test): Promise<{
  browser: Browser
  page: Page
  faults: string[]
  upstream: Upstream
  client: Environment
  apiUrl: string
}> {
  const directory = t.testdir()
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const environment = {
    DATA_DIR: join(directory, 'data'),
    UPSTREAM_URL: upstream.url,
    SCRAPE_NETWORK_SECONDS: '0',
    SCRAPE_GAMES_SECONDS: '0',
    ...(await plainWrites(t))
  }
  const service = await openGamenet(t, environment)
  const client = { OPERATOR_URL: service.operatorUrl }
  const file = join(directory, 'history.csv')
  await writeFile(file, history(Date.now()))
  await gamenetJson(client, ['import', 'network-count', file])
  const browser = await chromium.launch({ executablePath: browserPath ?? '', args: BROWSER_ARGUMENTS })
  t.teardown(() => browser.close())
  const page = await browser.newPage({ viewport: { width: 1280, height: 1000 } })
  page.setDefaultTimeout(WAIT_MS)
  await page.clock.install()
  const faults = await watch(page)
  return { browser, page, faults, upstream, client, apiUrl: service.apiUrl }
}

function history(nowMs: number): string {
  const lines = ['observedAt,online']
  const minute = Math.floor(nowMs / MINUTE_MS) * MINUTE_MS
  const hour = Math.floor(nowMs / HOUR_MS) * HOUR_MS
  for (let ago = 60 * 24; ago > 25; ago -= 1)
    lines.push(`${new Date(hour - ago * HOUR_MS).toISOString()},${1000 + (ago % 24)}`)
  for (let ago = 360; ago > 10; ago -= 1) {
    if (ago > 240 || ago <= 180) lines.push(`${new Date(minute - ago * MINUTE_MS).toISOString()},2000`)
  }
  return `${lines.join('\n')}\n`
}

/** Collects errors, violations of the policy and dialogs of a page. Pictures of games are answered. */
async function watch(page: Page): Promise<string[]> {
  const faults: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error') faults.push(message.text())
  })
  page.on('pageerror', (error) => faults.push(error.message))
  page.on('dialog', async (dialog) => {
    faults.push(`dialog: ${dialog.message()}`)
    await dialog.dismiss()
  })
  await page.addInitScript(`document.addEventListener('securitypolicyviolation', (event) => {
    console.error('policy violated: ' + event.violatedDirective + ' ' + event.blockedURI)
  })`)
  const picture = '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"/>'
  await page.route('**/img/**', (route) => route.fulfill({ contentType: 'image/svg+xml', body: picture }))
  return faults
}

async function scrape(client: Environment): Promise<void> {
  const done = await gamenet(client, ['scrape', 'network'])
  if (done.code !== 0) throw new Error(`the scrape failed: ${done.stderr}${done.stdout}`)
  await gamenetJson(client, ['status', '--wait', '180'])
}

/** Waits until an element has a text; reports the actual one. */
async function text(page: Page, selector: string, wanted: RegExp): Promise<void> {
  const place = page.locator(selector)
  try {
    await place.filter({ hasText: wanted }).waitFor({ timeout: WAIT_MS })
  } catch {
    throw new Error(`${selector} is "${await place.textContent()}", expected ${wanted}`)
  }
}

/**
 * Returns the value of an expression when it is `wanted` or the time is up. Polled from here: Playwright's own polling
 * in the page evaluates text, which our policy forbids.
 */
async function evaluateUntil(page: Page, expression: string, wanted: unknown): Promise<unknown> {
  const begun = performance.now()
  for (;;) {
    const found = await page.evaluate(expression)
    if (found === wanted || performance.now() - begun > WAIT_MS) return found
    await page.waitForTimeout(20)
  }
}

/** The rows of the games' table as plain text. */
async function rows(page: Page): Promise<string[]> {
  const found = await page.locator('#titles tr').all()
  return await Promise.all(
    found.map(async (row) => {
      const parts = [row.locator('.name'), row.locator('td').nth(0), row.locator('td').nth(1)]
      return (await Promise.all(parts.map((part) => part.textContent()))).join(' ')
    })
  )
}

/**
 * Returns the number of dots with the first line's colour in the chart of 24 hours at an instant, in milliseconds from
 * now.
 */
async function linePixels(page: Page, fromNowMs: number): Promise<number> {
  return Number(
    await page.evaluate(`(() => {
      const canvas = document.querySelector('#chart canvas')
      const area = document.querySelector('#chart .u-over').getBoundingClientRect()
      const scale = canvas.width / canvas.getBoundingClientRect().width
      const share = 1 + ${fromNowMs} / ${24 * HOUR_MS}
      const x = Math.round((area.left - canvas.getBoundingClientRect().left + share * area.width) * scale)
      const { data } = canvas.getContext('2d').getImageData(x, 0, 1, canvas.height)
      let dots = 0
      for (let at = 0; at < data.length; at += 4) {
        if (data[at] < 90 && data[at + 2] > 150 && data[at + 3] > 150) dots += 1
      }
      return dots
    })()`)
  )
}

async function firstThatExists(paths: readonly string[]): Promise<string | undefined> {
  for (const path of paths) {
    const isThere = await access(path).then(
      () => true,
      () => false
    )
    if (isThere) return path
  }
  return undefined
}
