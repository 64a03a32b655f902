import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { request } from 'undici'
import { type HttpLoad, startHttpLoad } from './http-load.js'
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
/** Of the speed of a bare Fastify. */
const LEAST = 0.85

type Coding = (typeof CODINGS)[number]

/** Ready answers against a bare Fastify with the same bytes, in alternating rounds; a third process sends the requests. */
export const repeatedAnswer: Measurement = {
  name: 'repeated-answer',
  claim: 'a repeated answer is sent at 0.85 × the speed of a bare Fastify with the same bytes',
  async run(conditions) {
    const { directory, scale } = conditions
    const service = await startQuietService(directory)
    const load = startHttpLoad()
    let bare: ChildProcess | undefined
    try {
      await importTitlesAndNetwork(service, directory)
      await importTitleCounts(service, directory, scaled(600, scale, 60))
      await importBoard(service, directory)
      const files = await mkdtemp(join(directory, 'bytes-'))
      const cases: Case[] = []
      const paths: string[] = []
      for (const { what, path } of QUERIES) {
        for (const coding of CODINGS) {
          const bytes = await fetchBytes(service.apiUrl + path, coding)
          const file = join(files, `${paths.length}${coding === 'gzip' ? '.gz' : ''}`)
          await writeFile(file, bytes)
          cases.push({ what, path, barePath: `/${paths.length}`, coding, bytes: bytes.length })
          paths.push(file)
        }
      }
      bare = fork(fileURLToPath(new URL('./bare-server.js', import.meta.url)), paths)
      const [{ port }] = (await once(bare, 'message')) as [{ port: number }]
      const results: Result[] = []
      for (const each of cases) results.push(await compare(conditions, { service, bare, barePort: port, load }, each))
      return results
    } finally {
      await load.stop()
      bare?.disconnect()
      await service.remove()
    }
  }
}

type Servers = {
  readonly service: QuietService
  readonly bare: ChildProcess
  readonly barePort: number
  readonly load: HttpLoad
}
type Case = {
  readonly what: string
  readonly path: string
  readonly barePath: string
  readonly coding: Coding
  /** Size of the answer. */
  readonly bytes: number
}

async function fetchBytes(url: string, coding: Coding): Promise<Buffer> {
  const { statusCode, headers, body } = await request(url, { headers: { 'accept-encoding': coding } })
  const bytes = Buffer.from(await body.arrayBuffer())
  if (statusCode !== 200) throw new Error(`${url}: ${statusCode} ${bytes.toString()}`)
  const found = headers['content-encoding'] ?? 'identity'
  if (found !== coding) throw new Error(`${url}: expected the coding ${coding}, got ${String(found)}`)
  return bytes
}

/** Compares one answer in one coding, in rounds that alternate between the servers. */
async function compare({ scale }: Conditions, servers: Servers, each: Case): Promise<Result> {
  const { service, bare, barePort, load } = servers
  const what = `${each.what}, ${each.coding}`
  const rounds = scaled(ROUNDS, scale, ROUNDS_MIN)
  const common = { connections: CONNECTIONS, headers: { 'Accept-Encoding': each.coding }, ms: ROUND_MS }
  const port = Number(new URL(service.apiUrl).port)
  const runOurs = async () => {
    await enterMinute()
    return await withCost(service.pid, () => load.run({ ...common, path: each.path, port }))
  }
  const theirs = { ...common, path: each.barePath, port: barePort }
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
  return {
    what,
    measured: rate(sums.ours),
    unit: '/s',
    baseline: { what: 'bare', measured: rate(sums.bare) },
    target: { bound: 'at least', value: LEAST, of: 'ratio' },
    detail: `${figure(each.bytes / 1024)} KiB, processor time per answer ${figure(perAnswer(sums.ours))} µs, bare ${figure(perAnswer(sums.bare))} µs; rates are means of ${rounds} rounds`
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
