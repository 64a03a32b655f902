import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { openChdb, openPglite } from '@gamenet/engines'
import { openEmbeddedLog } from '@gamenet/engines/log'
import { freePort } from '@gamenet/engines/testing'
import type { Operations } from '../../src/operate/operation.js'
import { scrape } from '../../src/operate/scrape/operation.js'
import { caughtUp } from '../../src/operate/status/caught-up.js'
import type { Running } from '../../test/service/gamenet.js'
import { operationsAt } from '../../test/service/gamenet.js'
import { differences } from './compare.js'
import { inTime } from './in-time.js'
import { startLoad } from './load.js'
import { killRepeatedly, type OneProcessNeeds, startOnce, stopCleanly } from './one-process.js'
import type { Outcome, Surroundings } from './surroundings.js'

const CAUGHT_UP_MS_MAX = 300_000
const SCRAPES_MAX = 5
const RESTING_LOOKS = 5
const LOOK_MS = 200

/** Scrape periods of one or two seconds under full load, so that some work is always running. */
export const scrapedOften = (calm = 1) => ({
  SCRAPE_NETWORK_SECONDS: `${calm}`,
  SCRAPE_GAMES_SECONDS: `${2 * calm}`,
  SCRAPE_MATCHES_SECONDS: `${calm}`,
  SCRAPE_BOARDS_SECONDS: `${calm}`,
  SCRAPE_PLAYERS_SECONDS: `${calm}`,
  SCRAPE_REQUESTS_PER_SECOND: '1000'
})

/** Runs the whole service in one process on embedded engines; returns every difference found at the end. */
export async function tortureEmbedded({
  directory,
  facts,
  kills,
  rebuilt,
  calm,
  auth,
  upstream,
  note
}: Surroundings): Promise<Outcome> {
  const data = join(directory, 'data')
  const [port, operatorPort] = await Promise.all([freePort(), freePort()])
  const urls = { apiUrl: `http://127.0.0.1:${port}`, operatorUrl: `http://127.0.0.1:${operatorPort}` }
  const { operatorUrl } = urls
  const load = await startLoad({
    facts,
    auth,
    operatorUrl,
    apiUrls: [urls.apiUrl],
    projectorUrls: [operatorUrl],
    rebuilt,
    calm
  })
  const needs: OneProcessNeeds = {
    facts,
    load,
    kills,
    environment: {
      ...scrapedOften(calm),
      DATA_DIR: data,
      PORT: `${port}`,
      OPERATOR_PORT: `${operatorPort}`,
      UPSTREAM_URL: upstream.url,
      AUTH_URL: auth.url
    },
    note,
    written: (text) => appendFileSync(join(directory, 'service.log'), text)
  }
  try {
    const { startsMs } = await killRepeatedly(needs)
    // The start succeeds after any kill.
    const last = await startOnce(needs)
    try {
      await load.rebuilt()
      await load.drain()
      upstream.freeze()
      await inTime('the final scrapes', scrapeToEnd(last))
      await stopCleanly(last)
    } finally {
      needs.written(last.stderr())
      await last.kill()
    }
    const compared = await inTime('comparing', comparedWhenStopped(data, facts))
    return { differences: [...load.wrong, ...compared], startsMs }
  } finally {
    await load.stop()
  }
}

/** Scrapes everything in its final state, and waits until it is readable. */
export async function scrapeToEnd({ operatorUrl }: Pick<Running, 'operatorUrl'>): Promise<void> {
  const operations = operationsAt(operatorUrl)
  // Boards cannot be compared while messages wait in the spool, nor while the tables lag.
  while (Number(await metric(operatorUrl, 'gamenet_spool_messages')) > 0) await pause(LOOK_MS)
  await waitUntilCaughtUp(operations)
  for (let run = 1; ; run += 1) {
    const runs = await operations.run(scrape, { source: 'all' })
    if (runs.every(({ outcome }) => outcome === 'succeeded')) break
    if (run === SCRAPES_MAX) throw new Error(`The final scrape failed ${run} times: ${JSON.stringify(runs)}`)
  }
  await untilCaughtUp({ operatorUrl })
}

/** Waits until the outbox is relayed and the tables have caught up with the log. */
export async function untilCaughtUp({ operatorUrl }: Pick<Running, 'operatorUrl'>): Promise<void> {
  await untilRelayRests(operatorUrl)
  await waitUntilCaughtUp(operationsAt(operatorUrl))
}

async function waitUntilCaughtUp(operations: Operations): Promise<void> {
  const { caughtUp: isCaughtUp, behind } = await operations.run(caughtUp, { seconds: CAUGHT_UP_MS_MAX / 1000 })
  if (!isCaughtUp) throw new Error(`Not all events are readable within ${CAUGHT_UP_MS_MAX} ms: ${behind.join('; ')}`)
}

/** Resolves when the count of relayed events stays equal for a second: the outbox is then empty. */
async function untilRelayRests(operatorUrl: string): Promise<void> {
  let before = ''
  for (let same = 0; same < RESTING_LOOKS; ) {
    const now = await metric(operatorUrl, 'gamenet_outbox_relayed_total')
    same = now === before ? same + 1 : 0
    before = now
    await pause(LOOK_MS)
  }
}

/** Returns the value of a metric; '' if the process does not report it. */
async function metric(operatorUrl: string, name: string): Promise<string> {
  const metrics = await (await fetch(`${operatorUrl}/metrics`)).text()
  return new RegExp(`^${name} (.*)$`, 'm').exec(metrics)?.[1] ?? ''
}

/** Returns every difference in the data of a stopped service. */
export async function comparedWhenStopped(data: string, facts: Surroundings['facts']): Promise<string[]> {
  const writes = await openPglite({ dir: join(data, 'writes') })
  const log = openEmbeddedLog({ path: join(data, 'log'), epoch: 1 })
  const tables = await openChdb({ path: join(data, 'tables') })
  try {
    return await differences({ tables: [tables], writes, reader: log, directory: data }, { facts, canBePartial: false })
  } finally {
    await tables.close()
    await log.close()
    await writes.close()
  }
}
