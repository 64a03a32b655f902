import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openEmbeddedLog } from '@gamenet/engines'
import {
  encodeEvent,
  instantOf,
  type LogMessage,
  networkCountTopic,
  titleCountTopic,
  titleTopic
} from '@gamenet/schemas'

/*
 * Bytes an event on disk, and records a second, of the embedded log: 500,000 events in the batches in which they come,
 * one scrape of 200 titles or 10,000 rows of an import. The size is that of the file, with all pages of LMDB.
 */

const EVENTS = 500_000
const TITLES = 200
const FIRST_MS = Date.UTC(2026, 0, 1)
const MINUTE_MS = 60_000
const SCRAPED = { source: '/scrape/network' }
const IMPORTED = { source: '/import/7d1f3ab0c2e94b6f8a5d0e1c9b374a62', importId: '7d1f3ab0c2e94b6f8a5d0e1c9b374a62' }

/** A seeded generator (mulberry32), so that two runs write the same bytes. */
function randomness(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
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

type Workload = { name: string; topic: string; events: number; batchAt(n: number): LogMessage[] }

const workloads: Workload[] = [
  { name: 'title-count, a scrape of 200', topic: titleCountTopic.name, events: EVENTS, batchAt: titleCounts },
  {
    name: 'title-count, appends of 10,000',
    topic: titleCountTopic.name,
    events: EVENTS,
    batchAt: (n) => Array.from({ length: 50 }, (_, i) => titleCounts(n * 50 + i)).flat()
  },
  {
    name: 'network-count, appends of 10,000',
    topic: networkCountTopic.name,
    events: EVENTS,
    batchAt: (n) => networkCounts(n * 10_000, 10_000)
  },
  { name: 'title, a scrape of 200', topic: titleTopic.name, events: 100_000, batchAt: titleDescriptions },
  {
    name: 'network-count, one at a time',
    topic: networkCountTopic.name,
    events: 5000,
    batchAt: (n) => networkCounts(n, 1)
  }
]

async function measure({ name, topic, events, batchAt }: Workload): Promise<void> {
  const path = await mkdtemp(join(tmpdir(), 'gamenet-log-size-'))
  const log = openEmbeddedLog({ path })
  let appended = 0
  let appendMs = 0
  for (let n = 0; appended < events; n += 1) {
    const messages = batchAt(n)
    const start = performance.now()
    await log.append(topic, messages)
    appendMs += performance.now() - start
    appended += messages.length
  }
  const { size } = await stat(join(path, 'data.mdb'))
  const readMs = await readAll(log, topic, appended)
  await log.close()
  await rm(path, { recursive: true })
  const rate = (ms: number): string => `${Math.round(appended / ms)} k/s`
  console.log(
    [
      name.padEnd(34),
      `${(size / appended).toFixed(1)} bytes an event`.padStart(22),
      `append ${rate(appendMs)}`.padStart(16),
      `read ${rate(readMs)}`.padStart(16)
    ].join('')
  )
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

for (const workload of workloads) await measure(workload)
