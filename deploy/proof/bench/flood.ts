import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { errorCode } from '@gamenet/schemas'
import { Agent, request } from 'undici'
import { figure, type Measurement, quantile, type Result, scaled } from './measurement.js'
import { residentBytes, watchResident } from './process-figures.js'
import {
  importTitleCounts,
  importTitlesAndNetwork,
  type QuietService,
  startQuietService,
  titleIds
} from './quiet-service.js'

const QUERIES = 2000
const FLOODS = 5
const CALM_MS = 3000
const AFTER_MS = 3000
const QUEUE_EVERY_MS = 25
/** Limit of the engine for statements that wait for a reader. */
const QUEUE_MAX = 1024
const MIB = 1024 * 1024

/** 2,000 new queries at once on as many connections, five times. */
export const flood: Measurement = {
  name: 'flood',
  claim: '2,000 new queries at once: a bounded queue, 503 beyond it, constant memory, ready answers unaffected',
  async run({ scale, directory, note }) {
    const service = await startQuietService(directory)
    try {
      await importTitlesAndNetwork(service, directory)
      await importTitleCounts(service, directory, scaled(3000, scale, 200))
      const calm = await withReadyAnswers(service, () => pause(CALM_MS))
      // A first flood, so that what is loaded once (code, marks, connections) does not count as growth.
      await floodOnce(service, 0, scaled(QUERIES, scale, 200))
      await pause(AFTER_MS)
      const before = await residentBytes(service.pid)
      const watch = watchResident(service.pid, 20)
      const floods: Flood[] = []
      const rest: number[] = []
      const busy = await withReadyAnswers(service, async () => {
        for (let n = 1; n <= FLOODS; n += 1) {
          floods.push(await floodOnce(service, n, scaled(QUERIES, scale, 200)))
          rest.push(await residentBytes(service.pid))
          note(`flood ${n}: ${JSON.stringify(floods.at(-1)?.statuses)}`)
        }
      })
      const peak = await watch.stop()
      await pause(AFTER_MS)
      return resultsOf({ floods, calm, busy, before, peak, rest, after: await residentBytes(service.pid) })
    } finally {
      await service.remove()
    }
  }
}

type Flood = {
  /** Number of answers by status, by `503 without Retry-After`, and by error code for broken connections. */
  readonly statuses: Readonly<Record<string, number>>
  readonly seconds: number
  readonly queueMost: number
}

function resultsOf(seen: {
  floods: readonly Flood[]
  calm: readonly number[]
  busy: readonly number[]
  before: number
  peak: number
  rest: readonly number[]
  after: number
}): Result[] {
  const { floods, calm, busy, before, peak, rest, after } = seen
  const sum = (status: string) => floods.reduce((total, each) => total + (each.statuses[status] ?? 0), 0)
  const all = floods.reduce((total, { statuses }) => total + Object.values(statuses).reduce((a, b) => a + b, 0), 0)
  const others = floods.flatMap(({ statuses }) => Object.keys(statuses)).filter((key) => key !== '200' && key !== '503')
  const growth = (rest.at(-1) ?? 0) - (rest[0] ?? 0)
  return [
    {
      what: 'answers other than 200, and 503 with Retry-After',
      measured: all - sum('200') - sum('503'),
      unit: '',
      target: { bound: 'at most', value: 0, of: 'measured' },
      detail: `${FLOODS} floods: ${sum('200')} × 200, ${sum('503')} × 503, median duration ${figure(
        quantile(
          floods.map((each) => each.seconds),
          0.5
        )
      )} s${others.length === 0 ? '' : `; ${[...new Set(others)].join('; ')}`}`
    },
    {
      what: 'waiting statements, maximum',
      measured: Math.max(...floods.map((each) => each.queueMost)),
      unit: '',
      target: { bound: 'at most', value: QUEUE_MAX, of: 'measured' }
    },
    {
      what: 'memory grown from the first flood to the last',
      measured: growth / MIB,
      unit: 'MiB',
      target: { bound: 'at most', value: 64, of: 'measured' },
      detail: `before ${figure(before / MIB)}, maximum ${figure(peak / MIB)}, after ${figure(after / MIB)} MiB`
    },
    {
      what: 'a ready answer meanwhile, p99',
      measured: quantile(busy, 0.99),
      unit: 'ms',
      baseline: { what: 'without a flood', measured: quantile(calm, 0.99) },
      detail: `${busy.length} answers, p50 ${figure(quantile(busy, 0.5))} ms, maximum ${figure(Math.max(...busy))} ms; without a flood p50 ${figure(quantile(calm, 0.5))} ms`
    }
  ]
}

/** Queries different windows of different titles, each on its own connection. */
async function floodOnce(service: QuietService, flood: number, queries: number): Promise<Flood> {
  const dispatcher = new Agent({ connections: null, pipelining: 1 })
  const statuses: Record<string, number> = {}
  const count = (key: string) => {
    statuses[key] = (statuses[key] ?? 0) + 1
  }
  const begun = performance.now()
  const watch = watchQueue(service)
  await Promise.all(
    Array.from({ length: queries }, async (_, i) => {
      const titleId = titleIds[i % titleIds.length] ?? ''
      const hours = 24 + flood * 50 + Math.floor(i / titleIds.length)
      try {
        const { statusCode, headers, body } = await request(
          `${service.apiUrl}/api/title/${titleId}/online-users/history?hours=${hours}`,
          { dispatcher }
        )
        await body.arrayBuffer()
        count(statusCode === 503 && headers['retry-after'] === undefined ? '503 without Retry-After' : `${statusCode}`)
      } catch (error) {
        count(errorCode(error))
      }
    })
  )
  const seconds = (performance.now() - begun) / 1000
  const queueMost = await watch.stop()
  await dispatcher.close()
  return { statuses, seconds, queueMost }
}

function watchQueue(service: QuietService): { stop(): Promise<number> } {
  let isStopping = false
  const watching = (async () => {
    let most = 0
    while (!isStopping) {
      most = Math.max(most, await service.metric('gamenet_engine_waiting_statements'))
      await pause(QUEUE_EVERY_MS)
    }
    return most
  })()
  return {
    stop: () => {
      isStopping = true
      return watching
    }
  }
}

/** Returns the times (ms) of a ready answer, requested by a separate thread during `work`. */
async function withReadyAnswers(service: QuietService, work: () => Promise<void>): Promise<number[]> {
  const client = new Worker(new URL('./ready-client.js', import.meta.url), { workerData: service.apiUrl })
  const received = once(client, 'message')
  await work()
  client.postMessage('stop')
  const [times] = (await received) as [number[]]
  return times
}
