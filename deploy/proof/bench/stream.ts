import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { instantOf } from '@gamenet/schemas'
import { type Conditions, figure, type Measurement, quantile, type Result, scaled } from './measurement.js'
import { mainThreadMs, residentBytes } from './process-figures.js'
import { minuteNow, type QuietService, startQuietService } from './quiet-service.js'
import type { ListenReply, ListenRequest } from './stream-listeners.js'

const LISTENERS = 10_000
const PROCESSES = 2
/** The interval of signs of life. */
const IDLE_MS = 40_000
const EVENTS = 5
const PATH = '/api/stream?kinds=count'
const LATENCIES = 40
const WATCHED = `/api/network-stats/online-24h?from=${instantOf(minuteNow() - 2 * 86_400_000)}&to=${instantOf(minuteNow())}`
const DELAY = 'nodejs_eventloop_lag_max_seconds'
/** Period of the timer with which Node measures the delay. */
const TIMER_MS = 10

/** Idle listeners, the fan-out of an event, and the time until it is received. */
export const stream: Measurement = {
  name: 'stream',
  claim: 'an event reaches 10,000 listeners, of 20 KiB each, within 250 ms',
  async run(conditions) {
    const clients = Array.from({ length: PROCESSES }, () =>
      fork(fileURLToPath(new URL('./stream-listeners.js', import.meta.url)))
    )
    const service = await startQuietService(conditions.directory)
    const measured = { ...conditions, clients, listeners: scaled(LISTENERS, conditions.scale, 100), service }
    try {
      return [...(await idleAndFanOut(measured)), ...(await latency(measured))]
    } finally {
      for (const client of clients) client.kill('SIGKILL')
      await service.remove()
    }
  }
}

type Measured = Conditions & {
  readonly service: QuietService
  readonly clients: readonly ChildProcess[]
  readonly listeners: number
}

async function idleAndFanOut(measured: Measured): Promise<Result[]> {
  const { service, listeners, note } = measured
  // A first event and 50 listeners, so that one-time costs of the stream are not attributed to listeners.
  await importCount(measured, 0)
  await openListeners(measured, `${PATH}&after=start`, 50)
  const alone: number[] = []
  for (let n = 1; n <= EVENTS; n += 1) alone.push(await costOf(service, () => importCount(measured, n)))
  await pause(2000)
  const quietMs = await costOf(service, () => pause(IDLE_MS))
  const before = await residentBytes(service.pid)
  await openListeners(measured, PATH, listeners)
  await pause(2000)
  const bytes = ((await residentBytes(service.pid)) - before) / listeners
  const idleMs = await costOf(service, () => pause(IDLE_MS))
  note(`${listeners} listeners, ${figure(bytes / 1024)} KiB each`)
  const costs: number[] = []
  // Each read resets the maximum.
  await service.metric(DELAY)
  const spreads: number[] = []
  for (let n = 1; n <= EVENTS; n += 1) {
    const received = askAll(measured, { type: 'await', events: 1 })
    const written = async () => {
      await importCount(measured, 100 + n)
      await received
    }
    costs.push(await costOf(service, written))
    const instants = (await received).flatMap(({ receivedMs }) => receivedMs)
    const first = Math.min(...instants)
    spreads.push(...instants.map((ms) => ms - first))
  }
  const delayMs = 1000 * (await service.metric(DELAY)) - TIMER_MS
  const each = (Math.max(0, quantile(costs, 0.5) - quantile(alone, 0.5)) * 1000) / listeners
  await askAll(measured, { type: 'close' })
  return [
    {
      what: 'memory of an idle listener',
      measured: bytes / 1024,
      unit: 'KiB',
      target: { bound: 'at most', value: 20, of: 'measured' }
    },
    {
      what: `processor of ${listeners} idle listeners`,
      measured: (100 * Math.max(0, idleMs - quietMs)) / IDLE_MS,
      unit: '% of a core',
      target: { bound: 'at most', value: 1, of: 'measured' },
      detail: `of the main thread, on top of ${figure((100 * quietMs) / IDLE_MS)} % without them`
    },
    {
      what: `an event to ${listeners} listeners, from the first to the last, p99`,
      measured: quantile(spreads, 0.99),
      unit: 'ms',
      target: { bound: 'at most', value: 250, of: 'measured' }
    },
    {
      what: 'processor time of a listener and event',
      measured: each,
      unit: 'µs',
      target: { bound: 'at most', value: 16, of: 'measured' },
      detail: `of the main thread; an import of one count alone ${figure(quantile(alone, 0.5))} ms; medians of ${EVENTS}`
    },
    {
      what: 'event-loop delay meanwhile, maximum',
      measured: delayMs,
      unit: 'ms',
      target: { bound: 'at most', value: 50, of: 'measured' }
    }
  ]
}

/** Time from the last answer without an event to the receipt of the event. */
async function latency(measured: Measured): Promise<Result[]> {
  const { service } = measured
  await openListeners(measured, PATH, PROCESSES)
  const latencies: number[] = []
  for (let n = 1; n <= LATENCIES; n += 1) {
    const received = askAll(measured, { type: 'await', events: 1 })
    const state = { isImported: false }
    const unread = lastUnread(service.apiUrl, state)
    await importCount(measured, 300 + n)
    state.isImported = true
    const readableMs = await unread
    latencies.push(
      ...(await received).flatMap(({ receivedMs }) => receivedMs.map((ms) => Math.max(0, ms - readableMs)))
    )
  }
  await askAll(measured, { type: 'close' })
  return [
    {
      what: 'readable → received, p99',
      measured: quantile(latencies, 0.99),
      unit: 'ms',
      target: { bound: 'at most', value: 100, of: 'measured' },
      detail: `p50 ${figure(quantile(latencies, 0.5))} ms`
    }
  ]
}

/** Repeats a query until its answer changes; returns the instant of the last unchanged answer. */
async function lastUnread(apiUrl: string, state: { readonly isImported: boolean }): Promise<number> {
  const tagOf = async (): Promise<string | null> => {
    const answer = await fetch(apiUrl + WATCHED)
    await answer.arrayBuffer()
    return answer.headers.get('etag')
  }
  const before = await tagOf()
  for (let unreadMs = Date.now(); ; ) {
    if ((await tagOf()) !== before) return unreadMs
    if (state.isImported) return unreadMs
    unreadMs = Date.now()
    await pause(2)
  }
}

/** Publishes one event, whose instant is `n` × 200 s from yesterday on. */
async function importCount({ service, directory }: Measured, n: number): Promise<void> {
  const file = join(directory, `stream-${n}.ndjson`)
  const observedAt = instantOf(minuteNow() - 86_400_000 + n * 200_000)
  await writeFile(file, `${JSON.stringify({ observedAt, online: 0 })}\n`)
  await service.importFile('network-count', file)
}

function openListeners(measured: Measured, path: string, count: number): Promise<ListenReply[]> {
  const port = Number(new URL(measured.service.apiUrl).port)
  return askAll(measured, { type: 'open', port, path, count: Math.ceil(count / measured.clients.length) })
}

async function askAll({ clients }: Measured, request: ListenRequest): Promise<ListenReply[]> {
  return await Promise.all(
    clients.map(async (client) => {
      client.send(request)
      const [reply] = (await once(client, 'message')) as [ListenReply]
      return reply
    })
  )
}

/** Returns the processor time of the service's main thread during the work, ms. */
async function costOf({ pid }: QuietService, work: () => Promise<unknown>): Promise<number> {
  const before = await mainThreadMs(pid)
  await work()
  return (await mainThreadMs(pid)) - before
}
