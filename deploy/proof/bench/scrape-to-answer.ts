import { Client } from 'undici'
import { homePage } from '../../demo/network/pages.js'
import type { World } from '../../demo/network/world.js'
import { AUTHORIZED } from '../../test/service/gamenet.js'
import { startUpstream, type Upstream } from '../../test/service/upstream.js'
import { type Measurement, quantile, scaled } from './measurement.js'
import {
  importTitleCounts,
  importTitlesAndNetwork,
  type QuietService,
  startQuietService,
  world
} from './quiet-service.js'

const ROUNDS = 120
const POLL_MS = 4
/** Above every count of the world, so that it identifies a round in an answer. */
const FIRST_COUNT = 700_000_000
const STEP_MS = 60_000
const ANSWERED_WITHIN_MS = 30_000

/** Time from the request for the page of 200 titles to an answer of the public API with its counts. */
export const scrapeToAnswer: Measurement = {
  name: 'scrape-to-answer',
  claim: 'a scraped page is in the answer within 2 s (p99), embedded',
  async run({ scale, directory, note }) {
    const upstream = await startUpstream()
    const service = await startQuietService(directory, { UPSTREAM_URL: upstream.url })
    try {
      await importTitlesAndNetwork(service, directory)
      await importTitleCounts(service, directory, scaled(1440, scale, 60))
      const client = new Client(service.apiUrl)
      const rounds = scaled(ROUNDS, scale, 10)
      note(`${rounds} rounds, each a scrape of 200 titles, polled every ${POLL_MS} ms`)
      const waits: number[] = []
      for (let round = 0; round < rounds; round += 1) {
        waits.push(await scrapeUntilAnswered(service, client, upstream, round))
      }
      await client.close()
      const shares = `p50 ${quantile(waits, 0.5).toFixed(0)} ms, maximum ${Math.max(...waits).toFixed(0)} ms`
      return [
        {
          what: 'page requested → counts in the answer, p99',
          measured: quantile(waits, 0.99),
          unit: 'ms',
          target: { bound: 'at most', value: 2000, of: 'measured' },
          detail: `${shares}, ${rounds} rounds, resolution ${POLL_MS} ms`
        }
      ]
    } finally {
      await service.remove()
      await upstream.close()
    }
  }
}

/** Returns the milliseconds from the request for a page with this count to an answer with it. */
async function scrapeUntilAnswered(
  { operatorUrl }: QuietService,
  client: Client,
  upstream: Upstream,
  round: number
): Promise<number> {
  const count = FIRST_COUNT + round
  show(upstream, round + 1, count)
  const asked = new Promise<number>((resolve) => {
    upstream.beforeAnswer = async () => resolve(performance.now())
  })
  const scraped = fetch(`${operatorUrl}/scrape/network`, { method: 'POST', headers: AUTHORIZED })
  const answeredAt = await answerWith(client, `"online":${count},`)
  await (await scraped).arrayBuffer()
  return answeredAt - (await asked)
}

async function answerWith(client: Client, text: string): Promise<number> {
  const begun = performance.now()
  while (performance.now() - begun < ANSWERED_WITHIN_MS) {
    const { body } = await client.request({ method: 'GET', path: '/api/online-users' })
    if ((await body.text()).includes(text)) return performance.now()
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
  throw new Error(`${text} was not in the answer within ${ANSWERED_WITHIN_MS} ms`)
}

/** Shows the world at a minute, where the count of the first title identifies a round. */
function show(upstream: Upstream, minute: number, count: number): void {
  const counted: World = {
    ...world,
    networkAt(ms) {
      const state = world.networkAt(ms)
      return { ...state, titles: state.titles.map((each, i) => (i === 0 ? { ...each, online: count } : each)) }
    }
  }
  upstream.showText(homePage(counted, Date.UTC(2026, 0, 1) + minute * STEP_MS, upstream.url))
}
