import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { request } from 'undici'
import { type HttpLoad, type Round, startHttpLoad } from './http-load.js'
import { type Conditions, figure, type Measurement, type Result, scaled } from './measurement.js'
import { processorMs } from './process-figures.js'
import {
  BOARD_ENTRIES,
  BOARD_PATH,
  importBoard,
  importTitleCounts,
  importTitlesAndNetwork,
  type QuietService,
  startQuietService
} from './quiet-service.js'

/** Queries to compare, and the data that they need. */
export type Repeated = {
  readonly queries: readonly { readonly what: string; readonly path: string }[]
  /** Answers below 1 KiB are not compressed. */
  readonly codings: readonly Coding[]
  prepare(service: QuietService, conditions: Conditions): Promise<void>
}

const QUERIES = [
  { what: 'online-users, 200 titles', path: '/api/online-users' },
  { what: 'online-24h, 30 days', path: '/api/network-stats/online-24h?days=30' },
  { what: `a board, ${BOARD_ENTRIES} entries`, path: BOARD_PATH }
] as const
const CODINGS = ['identity', 'gzip'] as const
/**
 * Many short ones: the speed of a shared machine changes within seconds, by a factor of two. The ratio of medians of 20 rounds of 250 ms
 * varied by a tenth, that of the sums of 100 rounds of 100 ms by a fiftieth.
 */
const ROUNDS = 100
const ROUNDS_MIN = 40
const ROUND_MS = 100
/** Until V8 has optimized both servers for a query. */
const WARM_UP_ROUNDS = 20
const MINUTE_MS = 60_000
/** For the request that recomputes an answer in a new minute, and for rounds that overrun. */
const MARGIN_MS = 500
const CONNECTIONS = 32

type Coding = (typeof CODINGS)[number]
type Ready = { readonly path: string; readonly barePath: string; readonly coding: Coding; readonly bytes: number }

/** Ready answers against a bare Fastify with the same bytes, in alternating rounds; a third process sends the requests. */
export const repeatedAnswer: Measurement = {
  name: 'repeated-answer',
  claim: 'a repeated answer is sent at 0.85 × the speed of a bare Fastify with the same bytes',
  run: (conditions) => compareRepeated(conditions, counts)
}

/** Repeats each query, against a bare Fastify. */
export function compareRepeated(conditions: Conditions, repeated: Repeated): Promise<Result[]> {
  return withServers(conditions, repeated, async (servers, { what, ready }) =>
    compare(conditions, servers, {
      what: `${what}, ${ready.coding}`,
      least: 0.85,
      bytes: ready.bytes,
      status: 200,
      ours: async () => ({ path: ready.path, headers: { 'Accept-Encoding': ready.coding } }),
      bare: { path: ready.barePath, headers: { 'Accept-Encoding': ready.coding } }
    })
  )
}

const counts: Repeated = {
  queries: QUERIES,
  codings: CODINGS,
  prepare: async (service, { directory, scale }) => {
    await importTitlesAndNetwork(service, directory)
    await importTitleCounts(service, directory, scaled(600, scale, 60))
    await importBoard(service, directory)
  }
}

/** 304 against a bare Fastify that compares an ETag. */
export const notModified: Measurement = {
  name: 'not-modified',
  claim: 'a 304 is sent at 0.85 × the speed of a bare Fastify that compares an ETag',
  run: (conditions) =>
    withServers(conditions, counts, async (servers, { what, ready, bareEtag }) =>
      compare(conditions, servers, {
        what: `304 of ${what}, ${ready.coding}`,
        least: 0.85,
        bytes: ready.bytes,
        status: 304,
        ours: async () => {
          const { etag } = await fetchBytes(servers.service.apiUrl + ready.path, ready.coding)
          return { path: ready.path, headers: { 'Accept-Encoding': ready.coding, 'If-None-Match': etag } }
        },
        bare: { path: ready.barePath, headers: { 'Accept-Encoding': ready.coding, 'If-None-Match': bareEtag } }
      })
    )
}

type Servers = {
  readonly service: QuietService
  readonly bare: ChildProcess
  readonly barePort: number
  readonly load: HttpLoad
}
type Case = { readonly what: string; readonly ready: Ready; readonly bareEtag: string }

/** Runs `measure` for each query and coding, with both servers sending the same bytes. */
async function withServers(
  conditions: Conditions,
  { queries, codings, prepare }: Repeated,
  measure: (servers: Servers, each: Case) => Promise<Result>
): Promise<Result[]> {
  const { directory } = conditions
  const service = await startQuietService(directory)
  const load = startHttpLoad()
  let bare: ChildProcess | undefined
  try {
    await prepare(service, conditions)
    const files = await mkdtemp(join(directory, 'bytes-'))
    const cases: Omit<Case, 'bareEtag'>[] = []
    const paths: string[] = []
    for (const { what, path } of queries) {
      for (const coding of codings) {
        const { bytes } = await fetchBytes(service.apiUrl + path, coding)
        const file = join(files, `${paths.length}${coding === 'gzip' ? '.gz' : ''}`)
        await writeFile(file, bytes)
        const barePath = `/${paths.length}`
        paths.push(file)
        cases.push({ what, ready: { path, barePath, coding, bytes: bytes.length } })
      }
    }
    bare = fork(fileURLToPath(new URL('./bare-server.js', import.meta.url)), paths)
    const [{ port }] = (await once(bare, 'message')) as [{ port: number }]
    const results: Result[] = []
    for (const each of cases) {
      const { headers, body } = await request(`http://127.0.0.1:${port}${each.ready.barePath}`)
      await body.arrayBuffer()
      const bareEtag = String(headers.etag)
      results.push(await measure({ service, bare, barePort: port, load }, { ...each, bareEtag }))
    }
    return results
  } finally {
    await load.stop()
    bare?.disconnect()
    await service.remove()
  }
}

async function fetchBytes(url: string, coding: Coding): Promise<{ bytes: Buffer; etag: string }> {
  const { statusCode, headers, body } = await request(url, { headers: { 'accept-encoding': coding } })
  const bytes = Buffer.from(await body.arrayBuffer())
  if (statusCode !== 200) throw new Error(`${url}: ${statusCode} ${bytes.toString()}`)
  const found = headers['content-encoding'] ?? 'identity'
  if (found !== coding) throw new Error(`${url}: expected the coding ${coding}, got ${String(found)}`)
  return { bytes, etag: String(headers.etag) }
}

type Comparison = {
  readonly what: string
  /** Size of the answer with a body. */
  readonly bytes: number
  readonly least: number
  readonly status: number
  /** Called before each round. */
  readonly ours: () => Promise<Pick<Round, 'path' | 'headers'>>
  readonly bare: Pick<Round, 'path' | 'headers'>
}

async function compare({ note, scale }: Conditions, servers: Servers, compared: Comparison): Promise<Result> {
  const { service, bare, barePort, load } = servers
  const { what, least, status } = compared
  const rounds = scaled(ROUNDS, scale, ROUNDS_MIN)
  const bounds = { connections: CONNECTIONS, status }
  const port = Number(new URL(service.apiUrl).port)
  const runOurs = async () => {
    await enterMinute()
    const round = { ...(await compared.ours()), ...bounds, port, ms: ROUND_MS }
    return await withCost(service.pid, () => load.run(round))
  }
  const theirs = { ...compared.bare, ...bounds, port: barePort, ms: ROUND_MS }
  const runBare = () => withCost(bare.pid ?? 0, () => load.run(theirs))
  for (let round = 0; round < WARM_UP_ROUNDS; round += 1) {
    await runOurs()
    await runBare()
  }
  const sums = { ours: { usedMs: 0, answers: 0 }, bare: { usedMs: 0, answers: 0 } }
  const add = (sum: { usedMs: number; answers: number }, { rate, usedMs }: { rate: number; usedMs: number }) => {
    sum.usedMs += usedMs
    sum.answers += (rate * ROUND_MS) / 1000
  }
  for (let round = 0; round < rounds; round += 1) {
    add(sums.ours, await runOurs())
    add(sums.bare, await runBare())
  }
  const rate = ({ answers }: { readonly answers: number }) => (answers * 1000) / (rounds * ROUND_MS)
  note(`${what}: ${figure(rate(sums.ours))}/s, bare ${figure(rate(sums.bare))}/s`)
  return {
    what,
    measured: rate(sums.ours),
    unit: '/s',
    baseline: { what: 'bare', measured: rate(sums.bare) },
    target: { bound: 'at least', value: least, of: 'ratio' },
    detail: `${figure(compared.bytes / 1024)} KiB, processor time per answer ${figure(perAnswer(sums.ours))} µs, bare ${figure(perAnswer(sums.bare))} µs; rates are means of ${rounds} rounds`
  }
}

/** Waits for the next minute if a round would not end in this one: with the minute, answers change their windows and ETags. */
async function enterMinute(): Promise<void> {
  const leftMs = MINUTE_MS - (Date.now() % MINUTE_MS)
  if (leftMs < ROUND_MS + MARGIN_MS) await pause(leftMs)
}

function perAnswer({ usedMs, answers }: { readonly usedMs: number; readonly answers: number }): number {
  return (usedMs * 1000) / answers
}

async function withCost(pid: number, run: () => Promise<number>): Promise<{ rate: number; usedMs: number }> {
  const before = await processorMs(pid)
  const rate = await run()
  return { rate, usedMs: (await processorMs(pid)) - before }
}
