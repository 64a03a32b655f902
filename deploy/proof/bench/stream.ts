import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { instantOf } from '@gamenet/schemas'
import { figure, type Measurement, quantile, type Result, scaled } from './measurement.js'
import { processorMs, residentBytes } from './process-figures.js'
import { importTitleCounts, minuteNow, type QuietService, startQuietService, titleIds } from './quiet-service.js'
import type { ListenReply, ListenRequest } from './stream-listeners.js'

const LISTENERS = 10_000
const PROCESSES = 2
const IDLE_MS = 25_000
const EVENTS = 5
const MINUTES_OF_COUNTS = 1000
const PATH = '/api/stream?kinds=count'

/** Idle listeners, the fan-out of an event, reconnection behind a few events, and the speed of catch-up. */
export const stream: Measurement = {
  name: 'stream',
  claim: 'an event reaches 10,000 listeners within 250 ms, which cost 20 KiB each',
  async run({ scale, directory, note }) {
    const service = await startQuietService(directory)
    const clients = Array.from({ length: PROCESSES }, () =>
      fork(fileURLToPath(new URL('./stream-listeners.js', import.meta.url)))
    )
    try {
      const measured = { service, clients, directory, listeners: scaled(LISTENERS, scale, 100), note }
      return [
        ...(await idleAndFanOut(measured)),
        await reconnection(measured),
        await catchUp(measured, scaled(MINUTES_OF_COUNTS, scale, 50))
      ]
    } finally {
      for (const client of clients) client.kill('SIGKILL')
      await service.remove()
    }
  }
}

type Measured = {
  readonly service: QuietService
  readonly clients: readonly ChildProcess[]
  readonly directory: string
  readonly listeners: number
  note(sentence: string): void
}

async function idleAndFanOut(measured: Measured): Promise<Result[]> {
  const { service, listeners, note } = measured
  // The first events and a few listeners: what the stream needs once is not what a listener needs.
  await importCounts(measured, 0, 1)
  await openListeners(measured, `${PATH}&after=start`, 50)
  const alone: number[] = []
  for (let n = 1; n <= EVENTS; n += 1) alone.push(await costOf(service, () => importCounts(measured, n, 1)))
  await pause(2000)
  const quietMs = await costOf(service, () => pause(IDLE_MS))
  const before = await residentBytes(service.pid)
  await openListeners(measured, PATH, listeners)
  await pause(2000)
  const bytes = ((await residentBytes(service.pid)) - before) / listeners
  const idleMs = await costOf(service, () => pause(IDLE_MS))
  note(`${listeners} listeners, ${figure(bytes / 1024)} KiB each`)
  const costs: number[] = []
  const spreads: number[] = []
  for (let n = 1; n <= EVENTS; n += 1) {
    const received = askAll(measured, { type: 'await', events: 1 })
    costs.push(await costOf(service, () => importCounts(measured, 100 + n, 1)))
    const instants = (await received).flatMap(({ receivedMs }) => receivedMs)
    const first = Math.min(...instants)
    spreads.push(...instants.map((ms) => ms - first))
  }
  const each = (Math.max(0, Math.min(...costs) - Math.min(...alone)) * 1000) / listeners
  await askAll(measured, { type: 'close' })
  return [
    {
      what: 'memory of an idle listener',
      measured: bytes / 1024,
      unit: 'KiB',
      reach: { bound: 'at most', value: 20, of: 'measured' }
    },
    {
      what: `processor of ${listeners} idle listeners`,
      measured: (100 * Math.max(0, idleMs - quietMs)) / IDLE_MS,
      unit: '% of a core',
      reach: { bound: 'at most', value: 1, of: 'measured' },
      detail: `on top of ${figure((100 * quietMs) / IDLE_MS)} % without them`
    },
    {
      what: `an event to ${listeners} listeners, from the first to the last, p99`,
      measured: quantile(spreads, 0.99),
      unit: 'ms',
      reach: { bound: 'at most', value: 250, of: 'measured' }
    },
    {
      what: 'processor time of a listener and event',
      measured: each,
      unit: 'µs',
      reach: { bound: 'at most', value: 16, of: 'measured' },
      detail: `an import of one count alone ${figure(Math.min(...alone))} ms; the least of ${EVENTS}`
    }
  ]
}

/** All listeners come back at once, some events behind. */
async function reconnection(measured: Measured): Promise<Result> {
  const [{ cursor } = { cursor: '' }] = await openListeners(measured, PATH, PROCESSES)
  await askAll(measured, { type: 'close' })
  await importCounts(measured, 200, 100)
  const begun = performance.now()
  const ms = await costOf(measured.service, () =>
    openListeners(measured, `${PATH}&after=${cursor}`, measured.listeners)
  )
  await askAll(measured, { type: 'close' })
  return {
    what: `${measured.listeners} listeners reconnect 100 events behind`,
    measured: (performance.now() - begun) / 1000,
    unit: 's',
    reach: { bound: 'at most', value: 15, of: 'measured' },
    detail: `${figure((ms * 1000) / measured.listeners)} µs each`
  }
}

async function catchUp(measured: Measured, minutes: number): Promise<Result> {
  const { service, directory, clients } = measured
  await importTitleCounts(service, directory, minutes)
  const events = minutes * titleIds.length
  const begun = performance.now()
  await openListeners(measured, '/api/stream?kinds=title-count&after=start', PROCESSES, events)
  const seconds = (performance.now() - begun) / 1000
  return {
    what: `catch-up from the start, ${clients.length} listeners`,
    measured: (events * clients.length) / seconds,
    unit: 'events/s',
    reach: { bound: 'at least', value: 100_000, of: 'measured' }
  }
}

async function importCounts({ service, directory }: Measured, minute: number, rows: number): Promise<void> {
  const file = join(directory, `stream-${minute}.ndjson`)
  const lines = Array.from({ length: rows }, (_, n) =>
    JSON.stringify({ observedAt: instantOf(minuteNow() - 86_400_000 + (minute * 200 + n) * 1000), online: n })
  )
  await writeFile(file, lines.map((line) => `${line}\n`).join(''))
  await service.importFile('network-count', file)
}

function openListeners(measured: Measured, path: string, count: number, events = 0): Promise<ListenReply[]> {
  const port = Number(new URL(measured.service.apiUrl).port)
  return askAll(measured, { type: 'open', port, path, count: Math.ceil(count / measured.clients.length), events })
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

async function costOf(service: QuietService, work: () => Promise<unknown>): Promise<number> {
  const before = await processorMs(service.pid)
  await work()
  return (await processorMs(service.pid)) - before
}
