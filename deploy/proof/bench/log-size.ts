import { mkdtemp, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { deflateSync, inflateSync } from 'node:zlib'
import { openEmbeddedLog } from '@gamenet/engines/log'
import {
  encodeEvent,
  instantOf,
  type LogMessage,
  leaderboardEntryTopic,
  networkCountTopic,
  titleCountTopic,
  titleTopic
} from '@gamenet/schemas'
import { boardVisits } from './board-changes.js'
import { randomness } from './count-files.js'
import { type Conditions, type Measurement, type Result, scaled } from './measurement.js'

/*
 * Bytes per event on disk, and records a second, of the embedded log. Batches are those of ingest: a scrape of 200 titles, or
 * 10,000 rows of an import. The size is that of the file, with all pages of LMDB. The baseline is the same batches as JSON
 * lines, each deflated with a dictionary of one message.
 */

const EVENTS = 500_000
const TITLES = 200
const FIRST_MS = Date.UTC(2026, 0, 1)
const MINUTE_MS = 60_000
const SCRAPED = { source: '/scrape/network' }
const IMPORTED = { source: '/import/7d1f3ab0c2e94b6f8a5d0e1c9b374a62', importId: '7d1f3ab0c2e94b6f8a5d0e1c9b374a62' }
const BYTES_MAX = 40
const CHANGE_BYTES_MAX = 100
/** Batches of a workload that are written as JSON lines. */
const LINES_BATCHES = 20

/** The size of the embedded log's file after up to 500,000 events of each workload. */
export const logSize: Measurement = {
  name: 'log-size',
  claim: 'the embedded log stores an event in 40 bytes or less, a change of a board in 100',
  async run(conditions) {
    const results: Result[] = []
    for (const workload of workloads) results.push(await measure(workload, conditions))
    return results
  }
}

const random = randomness(20_260_101)
const upTo = (most: number): number => Math.floor(random() * (most + 1))
const titles = Array.from({ length: TITLES }, (_, i) => ({
  titleId: (0x4d53_0000 + upTo(0xffff)).toString(16),
  level: Math.ceil(4000 / (i + 1))
}))

function titleCounts(minute: number): LogMessage[] {
  const observedAt = instantOf(FIRST_MS + minute * MINUTE_MS)
  return titles.map(({ titleId, level }) => {
    const online = level + upTo(level)
    const event = { titleId, observedAt, online, sessions: upTo(online >> 3), lobbyPlayers: upTo(online >> 1) }
    return encodeEvent(titleCountTopic, event, SCRAPED)
  })
}

function titleDescriptions(hour: number): LogMessage[] {
  const observedAt = instantOf(FIRST_MS + hour * 60 * MINUTE_MS)
  return titles.map(({ titleId }, i) => {
    const name = `Game ${i}: ${titleId} of the ${['North', 'South', 'East', 'West'][upTo(3)]}`
    return encodeEvent(
      titleTopic,
      { titleId, observedAt, name, publisher: `Studio ${i % 23}`, image: `https://images.example/${titleId}/icon.png` },
      { source: '/scrape/games' }
    )
  })
}

function networkCounts(minute: number, count: number): LogMessage[] {
  return Array.from({ length: count }, (_, i) => {
    const observedAt = instantOf(FIRST_MS + (minute + i) * MINUTE_MS)
    const event = { observedAt, registered: 200_000 + minute + i, online: 3000 + upTo(2000), lobbies: 100 + upTo(200) }
    return encodeEvent(networkCountTopic, event, count === 1 ? SCRAPED : IMPORTED)
  })
}

type Workload = {
  readonly name: string
  readonly topic: string
  readonly events: number
  /** The claim holds only for batches of many events. */
  readonly isClaimed: boolean
  /** {@link BYTES_MAX} unless given. */
  readonly bytesMax?: number
  batchAt(n: number): LogMessage[]
}

const workloads: readonly Workload[] = [
  {
    name: 'title-count, scrapes of 200',
    topic: titleCountTopic.name,
    events: EVENTS,
    isClaimed: true,
    batchAt: titleCounts
  },
  {
    name: 'title-count, appends of 10,000',
    topic: titleCountTopic.name,
    events: EVENTS,
    isClaimed: true,
    batchAt: (n) => Array.from({ length: 50 }, (_, i) => titleCounts(n * 50 + i)).flat()
  },
  {
    name: 'network-count, appends of 10,000',
    topic: networkCountTopic.name,
    events: EVENTS,
    isClaimed: true,
    batchAt: (n) => networkCounts(n * 10_000, 10_000)
  },
  {
    name: 'title, scrapes of 200',
    topic: titleTopic.name,
    events: 100_000,
    isClaimed: true,
    batchAt: titleDescriptions
  },
  boardChanges('leaderboard-entry, whole boards of 1,000', { boards: 300, edits: 0 }, 200_000),
  boardChanges('leaderboard-entry, visits with 10 edits', { boards: 20, edits: 10 }, 100_000),
  boardChanges('leaderboard-entry, visits with 3 edits', { boards: 20, edits: 3 }, 60_000),
  {
    name: 'network-count, one at a time',
    topic: networkCountTopic.name,
    events: 5000,
    isClaimed: false,
    batchAt: (n) => networkCounts(n, 1)
  }
]

function boardChanges(name: string, options: { boards: number; edits: number }, events: number): Workload {
  const visits = boardVisits(options)
  // Whole boards compress better than edits, and have a workload of their own.
  if (options.edits > 0) for (let board = 0; board < options.boards; board += 1) visits.next()
  return {
    name,
    topic: leaderboardEntryTopic.name,
    events,
    isClaimed: true,
    bytesMax: CHANGE_BYTES_MAX,
    batchAt: () => visits.next()
  }
}

async function measure(workload: Workload, { scale, directory, note }: Conditions): Promise<Result> {
  const { name, topic, isClaimed, bytesMax = BYTES_MAX, batchAt } = workload
  const events = scaled(workload.events, scale, 1000)
  note(`${name}: ${events} events`)
  const path = await mkdtemp(join(directory, 'log-'))
  const log = openEmbeddedLog({ path })
  let appended = 0
  let appendMs = 0
  const first: LogMessage[][] = []
  for (let n = 0; appended < events; n += 1) {
    const messages = batchAt(n)
    if (n < LINES_BATCHES) first.push(messages)
    const start = performance.now()
    await log.append(topic, messages)
    appendMs += performance.now() - start
    appended += messages.length
  }
  const { size } = await stat(join(path, 'data.mdb'))
  const readMs = await readAll(log, topic, appended)
  await log.close()
  await rm(path, { recursive: true })
  const rate = (ms: number): string =>
    `${((appended / ms) * 1000).toLocaleString('en-US', { maximumFractionDigits: 0 })} /s`
  const lines = asJsonLines(first)
  return {
    what: name,
    measured: size / appended,
    unit: 'bytes per event',
    baseline: { what: 'JSON lines', measured: lines.bytes / lines.events },
    ...(isClaimed ? { target: { bound: 'at most', value: bytesMax, of: 'measured' } } : {}),
    detail: `appended at ${rate(appendMs)}, read at ${rate(readMs)}; JSON lines written at ${lines.written}, read at ${lines.read}`
  }
}

/** Writes and reads batches as deflated JSON lines; returns their size in bytes and both speeds. */
function asJsonLines(batches: readonly (readonly LogMessage[])[]) {
  const events = batches.reduce((sum, batch) => sum + batch.length, 0)
  const rateSince = (start: number): string =>
    `${((events / (performance.now() - start)) * 1000).toLocaleString('en-US', { maximumFractionDigits: 0 })} /s`
  const dictionary = Buffer.from(JSON.stringify(batches[0]?.[0]))
  const writing = performance.now()
  const packed = batches.map((batch) =>
    deflateSync(batch.map((message) => JSON.stringify(message)).join('\n'), { level: 6, dictionary })
  )
  const written = rateSince(writing)
  const reading = performance.now()
  for (const bytes of packed)
    for (const line of inflateSync(bytes, { dictionary }).toString().split('\n')) JSON.parse(line)
  return { events, written, read: rateSince(reading), bytes: packed.reduce((sum, { length }) => sum + length, 0) }
}

async function readAll(log: ReturnType<typeof openEmbeddedLog>, topic: string, records: number): Promise<number> {
  const reading = new AbortController()
  const start = performance.now()
  let read = 0
  await log.consume({
    topics: [topic],
    startAt: async () => 0,
    deliver: async (batch) => {
      read += batch.records.length
      if (read >= records) reading.abort()
    },
    signal: reading.signal
  })
  return performance.now() - start
}
