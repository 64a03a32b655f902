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

const QUESTIONS = 2000
const FLOODS = 5
const CALM_MS = 3000
const AFTER_MS = 3000
const QUEUE_EVERY_MS = 25
/** What the engine lets wait for a reader. */
const QUEUE_MAX = 1024
const MIB = 1024 * 1024

/** 2,000 new queries at once on as many connections, five times. */
export const flood: Measurement = {
  name: 'flood',
  claim: '2,000 new questions at once: a bounded queue, 503 beyond it, flat memory, ready answers unharmed',
  async run({ scale, directory, note }) {
    const service = await startQuietService(directory)
    try {
      await importTitlesAndNetwork(service, directory)
      await importTitleCounts(service, directory, scaled(3000, scale, 200))
      const calm = await withReadyAnswers(service, () => pause(CALM_MS))
      // One flood before, so that what is read once (code, marks, connections) is not taken for growth.
      await floodOnce(service, 0, scaled(QUESTIONS, scale, 200))
      await pause(AFTER_MS)
      const before = await residentBytes(service.pid)
      const watch = watchResident(service.pid, 20)
      const floods: Flood[] = []
      const rest: number[] = []
      const busy = await withReadyAnswers(service, async () => {
        for (let n = 1; n <= FLOODS; n += 1) {
          floods.push(await floodOnce(service, n, scaled(QUESTIONS, scale, 200)))
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
  /** Status → answers; of a 503 without Retry-After and of a broken connection, in words. */
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
      reach: { bound: 'at most', value: 0, of: 'measured' },
      detail: `${FLOODS} floods: ${sum('200')} × 200, ${sum('503')} × 503, each over in ${figure(
        quantile(
          floods.map((each) => each.seconds),
          0.5
        )
      )} s${others.length === 0 ? '' : `; ${[...new Set(others)].join('; ')}`}`
    },
    {
      what: 'statements that waited, most',
      measured: Math.max(...floods.map((each) => each.queueMost)),
      unit: '',
      reach: { bound: 'at most', value: QUEUE_MAX, of: 'measured' }
    },
    {
      what: 'memory grown from the first flood to the last',
      measured: growth / MIB,
      unit: 'MiB',
      reach: { bound: 'at most', value: 64, of: 'measured' },
      detail: `before ${figure(before / MIB)}, most ${figure(peak / MIB)}, after ${figure(after / MIB)} MiB`
    },
    {
      what: 'a ready answer meanwhile, p99',
      measured: quantile(busy, 0.99),
      unit: 'ms',
      baseline: { what: 'without a flood', measured: quantile(calm, 0.99) },
      detail: `${busy.length} answers, p50 ${figure(quantile(busy, 0.5))} ms, most ${figure(Math.max(...busy))} ms; without a flood p50 ${figure(quantile(calm, 0.5))} ms`
    }
  ]
}

/** Asks different windows of different titles, each on a connection of its own. */
async function floodOnce(service: QuietService, flood: number, questions: number): Promise<Flood> {
  const dispatcher = new Agent({ connections: null, pipelining: 1 })
  const statuses: Record<string, number> = {}
  const count = (key: string) => {
    statuses[key] = (statuses[key] ?? 0) + 1
  }
  const begun = performance.now()
  const watch = watchQueue(service)
  await Promise.all(
    Array.from({ length: questions }, async (_, i) => {
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

/** Times (ms) of an answer that lies ready, asked by a thread of its own while `work` goes on. */
async function withReadyAnswers(service: QuietService, work: () => Promise<void>): Promise<number[]> {
  const asker = new Worker(new URL('./ready-asker.js', import.meta.url), { workerData: service.apiUrl })
  const received = once(asker, 'message')
  await work()
  asker.postMessage('stop')
  const [times] = (await received) as [number[]]
  return times
}
