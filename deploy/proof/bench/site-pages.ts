import { access } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { type Browser, chromium } from 'playwright-core'
import { request } from 'undici'
import { startHttpLoad } from './http-load.js'
import { CannotMeasure, type Measurement, type Result, scaled } from './measurement.js'
import {
  importBoard,
  importTitleCounts,
  importTitlesAndNetwork,
  type QuietService,
  startQuietService,
  titleIds
} from './quiet-service.js'

const BROWSER = '/usr/bin/chromium'
const ROUNDS = 10
const ROUND_MS = 500
const CONNECTIONS = 16
/** Time between two requests whose pages must be equal before the measurement. */
const COMPLETE_MS = 1500
/** Pages of games that nobody has asked for. */
const COLD_PAGES = 20
/** A phone: four times slower than this processor, with 150 ms and 1.6 Mbit/s. */
const PHONE = { slower: 4, latency: 150, bytesPerSecond: 200_000 } as const

/** Pages of the site: warm and cold on the server, and their first load in a browser like that of a phone. */
export const sitePages: Measurement = {
  name: 'site-pages',
  claim:
    'a page is sent 3,000 times a second, a new one in 200 ms; a phone shows it in 1.2 s, with 8 requests and no shift',
  run: async ({ directory, scale }) => {
    await access(BROWSER).catch(() => {
      throw new CannotMeasure(`the first load needs ${BROWSER}`)
    })
    const service = await startQuietService(directory)
    const browser = await chromium.launch({ executablePath: BROWSER, args: ['--no-sandbox', '--disable-gpu'] })
    try {
      await importTitlesAndNetwork(service, directory)
      await importTitleCounts(service, directory, scaled(30 * 1440, scale, 2 * 1440))
      await importBoard(service, directory)
      const game = await addressOf(service, `/games/${titleIds[0]}`)
      return [
        ...(await cold(service)),
        ...(await warm(service, ['/', game])),
        ...(await firstLoad(browser, service, '/', 'home')),
        ...(await firstLoad(browser, service, game, 'a game'))
      ]
    } finally {
      await browser.close()
      await service.remove()
    }
  }
}

/** Follows the redirect from an id. */
async function addressOf({ apiUrl }: QuietService, path: string): Promise<string> {
  const { headers, body } = await request(apiUrl + path)
  await body.dump()
  return String(headers.location)
}

async function cold(service: QuietService): Promise<Result[]> {
  const times: number[] = []
  for (const titleId of titleIds.slice(1, COLD_PAGES + 1)) {
    const path = await addressOf(service, `/games/${titleId}`)
    const begun = performance.now()
    const { statusCode, body } = await request(service.apiUrl + path, { headers: { 'accept-encoding': 'br' } })
    await body.dump()
    if (statusCode !== 200) throw new Error(`${path}: expected 200, got ${statusCode}`)
    times.push(performance.now() - begun)
  }
  const median = times.sort((a, b) => a - b)[COLD_PAGES / 2] ?? 0
  const target = { bound: 'at most', value: 200, of: 'measured' } as const
  return [{ what: 'an uncached page of a game, median', measured: median, unit: 'ms', target }]
}

async function warm(service: QuietService, paths: readonly string[]): Promise<Result[]> {
  const load = startHttpLoad()
  const port = Number(new URL(service.apiUrl).port)
  const results: Result[] = []
  for (const path of paths) {
    await untilComplete(service, path)
    const round = {
      port,
      path,
      headers: { 'Accept-Encoding': 'br' },
      connections: CONNECTIONS,
      ms: ROUND_MS,
      status: 200
    }
    const rates: number[] = []
    for (let n = 0; n < ROUNDS; n += 1) rates.push(await load.run(round))
    const median = rates.sort((a, b) => a - b)[ROUNDS / 2] ?? 0
    const target = { bound: 'at least', value: 3000, of: 'measured' } as const
    results.push({ what: `${path}, repeated`, measured: median, unit: '/s', target })
  }
  await load.stop()
  return results
}

/** A page whose parts were not all read in time is sent without them first. */
async function untilComplete(service: QuietService, path: string): Promise<void> {
  const textOf = async () => await (await request(service.apiUrl + path)).body.text()
  for (let before = ''; ; await pause(COMPLETE_MS)) {
    const text = await textOf()
    if (text === before) return
    before = text
  }
}

async function firstLoad(browser: Browser, { apiUrl }: QuietService, path: string, what: string): Promise<Result[]> {
  const context = await browser.newContext({ viewport: { width: 390, height: 844 } })
  const page = await context.newPage()
  const seen = { requests: 0, bytes: 0 }
  const phone = await context.newCDPSession(page)
  await phone.send('Network.enable')
  const { latency, bytesPerSecond, slower } = PHONE
  const speed = { downloadThroughput: bytesPerSecond, uploadThroughput: bytesPerSecond / 2 }
  await phone.send('Network.emulateNetworkConditions', { offline: false, latency, ...speed })
  await phone.send('Emulation.setCPUThrottlingRate', { rate: slower })
  phone.on('Network.requestWillBeSent', ({ request }) => {
    if (!/\/img\/|\/api\/stream/.test(request.url)) seen.requests += 1
  })
  phone.on('Network.loadingFinished', ({ encodedDataLength }) => {
    seen.bytes += encodedDataLength
  })
  await page.goto(apiUrl + path, { waitUntil: 'load' })
  const [largestMs, shift] =
    (await page.evaluate(`Promise.all(['largest-contentful-paint', 'layout-shift'].map((type) =>
    new Promise((done) => {
      let last = 0
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) last = entry.startTime && entry.value === undefined
          ? entry.startTime : last + entry.value
      }).observe({ type, buffered: true })
      setTimeout(() => done(last), 1000)
    })))`)) as [number, number]
  await context.close()
  const limit = (value: number) => ({ bound: 'at most', value, of: 'measured' }) as const
  return [
    { what: `${what} on a phone: largest content`, measured: largestMs, unit: 'ms', target: limit(1200) },
    { what: `${what}: layout shift`, measured: shift, unit: '', target: limit(0.01) },
    { what: `${what}: requests without icons`, measured: seen.requests, unit: 'requests', target: limit(8) },
    { what: `${what}: transferred`, measured: seen.bytes / 1000, unit: 'kB', target: limit(100) }
  ]
}
