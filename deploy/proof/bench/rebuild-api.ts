import { setTimeout as wait } from 'node:timers/promises'
import { Pool } from 'undici'
import type { Operations } from '../../src/operations/operation.js'
import { rebuild } from '../../src/operations/rebuild.js'
import { operationsAt } from '../../test/service/gamenet.js'
import { figure, type Measurement, quantile, scaled } from './measurement.js'
import {
  importTitleCounts,
  importTitlesAndNetwork,
  minuteNow,
  type QuietService,
  startQuietService,
  titleIds
} from './quiet-service.js'

const REQUESTS_PER_SECOND = 500
/** Every so many-th request asks what nobody has asked before. */
const NEW_EVERY = 20
/** Titles that many ask about. All of them at once would be new questions for a second of every minute. */
const KNOWN_TITLES = 20
const TICK_MS = 10
const WARMING_MS = 3000
const IDLE_MS = 10_000
const REBUILDING_MS = 10_000
const HELD_MS_MAX = 250
const TIMES_IDLE = 3
const DAY_MS = 86_400_000
const PROJECTION = 'title-count'

type Load = { readonly times: number[]; readonly failures: string[]; stop(): Promise<void> }

/** 500 requests a second at the embedded service, while a projection is rebuilt, swapped in and taken back. */
export const rebuildApi: Measurement = {
  name: 'rebuild-api',
  claim: 'during a rebuild answers take at most three times as long as before, and none fails or waits at a swap',
  async run({ directory, scale, note }) {
    const service = await startQuietService(directory)
    try {
      await importTitlesAndNetwork(service, directory)
      await importTitleCounts(service, directory, scaled(20_000, scale, 500))
      const operations = operationsAt(service.operatorUrl)
      const warming = startLoad(service)
      await wait(WARMING_MS)
      await warming.stop()
      note('asking while nothing else goes on')
      const idle = startLoad(service)
      await wait(IDLE_MS)
      await idle.stop()
      note('asking while a projection is rebuilt')
      const rebuilding = startLoad(service)
      const begun = performance.now()
      while (performance.now() - begun < REBUILDING_MS) {
        await operations.run(rebuild.start, { projection: PROJECTION })
        await untilFilled(operations)
        if (performance.now() - begun < REBUILDING_MS) await operations.run(rebuild.cancel, { projection: PROJECTION })
      }
      await rebuilding.stop()
      note('asking while it is swapped in and taken back')
      await operations.run(rebuild.verify, { projection: PROJECTION })
      const swapping = startLoad(service)
      await wait(1000)
      const swap = await operations.run(rebuild.swap, { projection: PROJECTION })
      await wait(1000)
      const rollback = await operations.run(rebuild.rollback, { projection: PROJECTION })
      await wait(1000)
      await swapping.stop()
      const failures = [...idle.failures, ...rebuilding.failures, ...swapping.failures]
      const requests = idle.times.length + rebuilding.times.length + swapping.times.length
      return [
        {
          what: 'an answer during a rebuild, p99',
          measured: quantile(rebuilding.times, 0.99),
          unit: 'ms',
          baseline: { what: 'idle', measured: quantile(idle.times, 0.99) },
          reach: { bound: 'at most', value: TIMES_IDLE, of: 'ratio' },
          detail: `median ${figure(quantile(rebuilding.times, 0.5))} ms, idle ${figure(quantile(idle.times, 0.5))} ms; new questions are one of ${NEW_EVERY}`
        },
        {
          what: 'answers held at a swap',
          measured: Math.max(swap.heldMs, rollback.heldMs),
          unit: 'ms',
          reach: { bound: 'at most', value: HELD_MS_MAX, of: 'measured' },
          detail: `the slowest answer around it ${figure(Math.max(...swapping.times))} ms`
        },
        {
          what: `requests that failed, of ${figure(requests)}`,
          measured: failures.length,
          unit: '',
          reach: { bound: 'at most', value: 0, of: 'measured' },
          detail: failures[0] ?? ''
        }
      ]
    } finally {
      await service.remove()
    }
  }
}

async function untilFilled(operations: Operations): Promise<void> {
  for (;;) {
    const [newest] = await operations.run(rebuild.list, {})
    if (newest?.state === 'filled') return
    if (newest?.state !== 'filling') throw new Error(`the rebuild is ${newest?.state}: ${newest?.reason}`)
    await wait(100)
  }
}

/** Asks at an even pace, whatever becomes of what was asked before. */
function startLoad({ apiUrl }: QuietService): Load {
  const pool = new Pool(apiUrl, { connections: 32 })
  const times: number[] = []
  const failures: string[] = []
  const underWay = new Set<Promise<void>>()
  const begun = performance.now()
  let requests = 0
  const askOne = async (path: string): Promise<void> => {
    const sentAt = performance.now()
    try {
      const { statusCode, body } = await pool.request({ method: 'GET', path })
      await body.dump({ limit: Number.MAX_SAFE_INTEGER })
      if (statusCode !== 200) failures.push(`${path}: ${statusCode}`)
    } catch (error) {
      failures.push(`${path}: ${String(error)}`)
    }
    times.push(performance.now() - sentAt)
  }
  const timer = setInterval(() => {
    const due = Math.floor(((performance.now() - begun) * REQUESTS_PER_SECOND) / 1000)
    for (; requests < due; requests += 1) {
      const one = askOne(pathOf(requests)).finally(() => underWay.delete(one))
      underWay.add(one)
    }
  }, TICK_MS)
  return {
    times,
    failures,
    async stop() {
      clearInterval(timer)
      await Promise.all(underWay)
      await pool.close()
    }
  }
}

let windows = 0

function pathOf(n: number): string {
  const popular = titleIds[n % KNOWN_TITLES]
  const known = ['/api/online-users', '/api/games', `/api/title/${popular}/online-users/history?hours=6`]
  if (n % NEW_EVERY > 0) return known[n % known.length] ?? ''
  windows += 1
  const toMs = minuteNow() - windows * 60_000
  const titleId = titleIds[windows % titleIds.length]
  return `/api/title/${titleId}/online-users/history?from=${iso(toMs - DAY_MS)}&to=${iso(toMs)}`
}

function iso(ms: number): string {
  return new Date(ms).toISOString().replace('.000', '')
}
