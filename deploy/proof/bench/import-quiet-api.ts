import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { randomness, writeTitleCounts } from './count-files.js'
import { figure, type Measurement, quantile, scaled } from './measurement.js'
import {
  importTitleCounts,
  importTitlesAndNetwork,
  minuteNow,
  type QuietService,
  startQuietService,
  titleIds
} from './quiet-service.js'

const MINUTES = 10_000
const BASE_MINUTES = 3 * 1440
const MINUTE_MS = 60_000
const IDLE_MS = 20_000
/** Interval of requests; each is sent when it is due, whether or not the earlier ones were answered. */
const EVERY_MS = 20
/** Period of the timer that measures the delay, and so the reading for an event loop that is never delayed. */
const LAG_RESOLUTION_MS = 10

/** Answers during an import of 2 M counts at full speed, against the same requests to the idle service. */
export const importQuietApi: Measurement = {
  name: 'import-quiet-api',
  claim: 'answers take at most three times as long (p99) while an import runs at full speed, and none fails',
  async run({ scale, directory, note }) {
    const service = await startQuietService(directory)
    try {
      await importTitlesAndNetwork(service, directory)
      await importTitleCounts(service, directory, scaled(BASE_MINUTES, scale, 300))
      const minutes = scaled(MINUTES, scale, 200)
      const file = join(directory, 'quiet.csv.gz')
      // Older than the windows of the queries, like an analyst's history.
      const firstMs = minuteNow() - (BASE_MINUTES + minutes) * MINUTE_MS
      await writeTitleCounts(file, 'csv.gz', { titleIds, firstMs, minutes })

      await askWhile(service, pause(Math.max(2000, 3000 * scale)))
      note('idle')
      await service.metric('nodejs_eventloop_lag_max_seconds')
      const idle = await askWhile(service, pause(Math.max(3000, IDLE_MS * scale)))
      const idleLag = await lagMs(service)
      note(`importing ${minutes * titleIds.length} events`)
      const begun = performance.now()
      const busy = await askWhile(service, service.importFile('title-count', file))
      const seconds = (performance.now() - begun) / 1000
      const busyLag = await lagMs(service)

      const rate = `import at ${Math.round((minutes * titleIds.length) / seconds).toLocaleString('en-US')} events/s`
      return [
        {
          what: 'answers during the import, p99',
          measured: quantile(busy.all, 0.99),
          unit: 'ms',
          baseline: { what: 'idle', measured: quantile(idle.all, 0.99) },
          target: { bound: 'at most', value: 3, of: 'ratio' },
          detail: `${busy.all.length} answers, p50 ${figure(quantile(busy.all, 0.5))} ms (idle ${figure(quantile(idle.all, 0.5))}), ${rate}`
        },
        ...QUERIES.map((query) => ({
          what: `${query}, p99`,
          measured: quantile(busy.by[query], 0.99),
          unit: 'ms',
          baseline: { what: 'idle', measured: quantile(idle.by[query], 0.99) }
        })),
        {
          what: 'answers that were errors',
          measured: busy.errors.length,
          unit: '',
          target: { bound: 'at most', value: 0, of: 'measured' },
          detail: [...new Set(busy.errors)].join('; ')
        },
        {
          what: 'event-loop delay of the service, maximum',
          measured: busyLag.max,
          unit: 'ms',
          target: { bound: 'at most', value: 50, of: 'measured' },
          detail: `p99 ${figure(busyLag.p99)} ms; idle: maximum ${figure(idleLag.max)} ms`
        }
      ]
    } finally {
      await service.remove()
    }
  }
}

const QUERIES = ['live counts', 'network over 30 days', 'one title, not asked before'] as const
type Query = (typeof QUERIES)[number]
type Answers = { all: number[]; by: Record<Query, number[]>; errors: string[] }

/** Sends one of the three queries every 20 ms until `work` is done; times are in ms since each was due. */
async function askWhile(service: QuietService, work: Promise<void>): Promise<Answers> {
  const answers: Answers = {
    all: [],
    by: { 'live counts': [], 'network over 30 days': [], 'one title, not asked before': [] },
    errors: []
  }
  const dispatcher = new Agent({ connections: 64, pipelining: 1 })
  const random = randomness(Date.now())
  let isDone = false
  let failure: unknown
  const working = work
    .catch((error: unknown) => {
      failure = error
    })
    .finally(() => {
      isDone = true
    })
  const requests: Promise<void>[] = []
  const begun = performance.now()
  for (let n = 0; !isDone; n += 1) {
    const dueAt = begun + n * EVERY_MS
    const early = dueAt - performance.now()
    if (early > 0) await pause(early)
    const query = QUERIES[n % QUERIES.length] ?? 'live counts'
    requests.push(ask(service.apiUrl + pathOf(query, random), dispatcher, query, dueAt, answers))
  }
  await Promise.all(requests)
  await working
  await dispatcher.close()
  if (failure !== undefined) throw failure
  return answers
}

async function ask(url: string, dispatcher: Agent, query: Query, dueAt: number, answers: Answers): Promise<void> {
  try {
    const { statusCode, body } = await request(url, { dispatcher })
    const text = await body.text()
    const ms = performance.now() - dueAt
    answers.all.push(ms)
    answers.by[query].push(ms)
    if (statusCode !== 200) answers.errors.push(`${statusCode} ${text}`)
  } catch (error) {
    answers.errors.push(String(error))
  }
}

/** The window of a title is 48 hours that end at one of the last 1,000 minutes: few are repeated. */
function pathOf(query: Query, random: () => number): string {
  if (query === 'live counts') return '/api/online-users'
  if (query === 'network over 30 days') return '/api/network-stats/online-24h?days=30'
  const titleId = titleIds[Math.floor(random() * titleIds.length)] ?? ''
  const toMs = minuteNow() - Math.floor(random() * 1000) * MINUTE_MS
  const fromMs = toMs - 48 * 60 * MINUTE_MS
  const window = `from=${new Date(fromMs).toISOString()}&to=${new Date(toMs).toISOString()}`
  return `/api/title/${titleId}/online-users/history?${window}`
}

async function lagMs(service: QuietService): Promise<{ max: number; p99: number }> {
  const text = await (await fetch(`${service.operatorUrl}/metrics`)).text()
  const of = (name: string): number => {
    const line = new RegExp(`^nodejs_eventloop_lag_${name}_seconds (\\S+)$`, 'm').exec(text)
    if (line === null) throw new Error(`/metrics has no event-loop delay ${name}`)
    return Math.max(0, Number(line[1]) * 1000 - LAG_RESOLUTION_MS)
  }
  return { max: of('max'), p99: of('p99') }
}
