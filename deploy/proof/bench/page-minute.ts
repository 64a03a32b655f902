import { access } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { chromium } from 'playwright-core'
import { scrape } from '../../src/operate/scrape/operation.js'
import { operationsAt } from '../../test/service/gamenet.js'
import { startUpstream } from '../../test/service/upstream.js'
import { CannotMeasure, type Measurement, type Result } from './measurement.js'
import { startQuietService, world } from './quiet-service.js'

const BROWSER = '/usr/bin/chromium'
const SETTLE_MS = 15_000
const MINUTE_MS = 60_000

/** Requests and bytes of an open tab of the home page in the minute in which the counts of 200 titles change once. */
export const pageMinute: Measurement = {
  name: 'page-minute',
  claim: 'an open tab of the home page needs 4 requests and 20 kB a minute',
  run: ({ directory }) => openTab(directory)
}

async function openTab(directory: string): Promise<Result[]> {
  await access(BROWSER).catch(() => {
    throw new CannotMeasure(`the home page needs ${BROWSER}`)
  })
  const upstream = await startUpstream()
  const show = (online: number) =>
    upstream.show({
      registered: 20_000 + online,
      online: 1000 + online,
      titles: world.titles.map(({ titleId, name }, n) => ({
        ...{ titleId, name, subtitle: '', online: n + online },
        lobbies: { players: n, sessions: 1 }
      }))
    })
  show(0)
  const service = await startQuietService(directory, { UPSTREAM_URL: upstream.url })
  const browser = await chromium.launch({ executablePath: BROWSER, args: ['--no-sandbox', '--disable-gpu'] })
  try {
    const operations = operationsAt(service.operatorUrl)
    await operations.run(scrape, { source: 'network' })
    const page = await browser.newPage()
    const seen = { requests: 0, bytes: 0 }
    const network = await page.context().newCDPSession(page)
    await network.send('Network.enable')
    network.on('Network.requestWillBeSent', () => {
      seen.requests += 1
    })
    network.on('Network.dataReceived', ({ encodedDataLength }) => {
      seen.bytes += encodedDataLength
    })
    await page.goto(service.apiUrl)
    await pause(SETTLE_MS)
    Object.assign(seen, { requests: 0, bytes: 0 })
    const minute = pause(MINUTE_MS)
    show(1)
    await operations.run(scrape, { source: 'network' })
    await minute
    return [
      {
        what: 'requests of an open tab in a minute',
        measured: seen.requests,
        unit: 'requests',
        target: { bound: 'at most', value: 4, of: 'measured' }
      },
      {
        what: 'bytes of an open tab in a minute, as transferred',
        measured: seen.bytes / 1000,
        unit: 'kB',
        target: { bound: 'at most', value: 20, of: 'measured' },
        detail: `${world.titles.length} titles, all counts changed once`
      }
    ]
  } finally {
    await browser.close()
    await service.remove()
    await upstream.close()
  }
}
