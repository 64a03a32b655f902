import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { instantOf } from '@gamenet/schemas'
import { z } from 'zod'
import { createWorld, type World } from '../../demo/network/world.js'
import { type Environment, gamenet, ON_REQUEST, type Running, startGamenet } from '../../test/service/gamenet.js'
import { writeTitleCounts } from './count-files.js'

/*
 * The embedded service in its own process, started as an operator starts it. Its data changes only on request: upstream is
 * unreachable unless the measurement provides one, and its home page is not scraped on schedule.
 */

const MINUTE_MS = 60_000

export type QuietService = Running & {
  readonly apiUrl: string
  readonly pid: number
  /** Runs `gamenet import`, which ends when all rows are readable; throws if it fails or publishes no row. */
  importFile(topic: string, file: string): Promise<void>
  /** Returns the value of a metric in /metrics, summed over its labels. */
  metric(name: string): Promise<number>
  /** Stops it and deletes its data. */
  remove(): Promise<void>
}

const Imported = z.array(z.object({ published: z.int(), rejected: z.int() }))

/** Starts the service on a new, empty directory. */
export async function startQuietService(directory: string, environment: Environment = {}): Promise<QuietService> {
  const dataDirectory = await mkdtemp(join(directory, 'data-'))
  const service = await startGamenet({
    ...ON_REQUEST,
    DATA_DIR: dataDirectory,
    SCRAPE_REQUESTS_PER_SECOND: '1000',
    ...environment
  })
  const { apiUrl, process } = service
  if (apiUrl === null || process.pid === undefined) throw new Error('the service has no public address')
  return {
    ...service,
    apiUrl,
    pid: process.pid,
    async importFile(topic, file) {
      const done = await gamenet({ DATA_DIR: dataDirectory }, ['import', topic, file, '--json'])
      if (done.code !== 0) throw new Error(`the import of ${file} ended with ${done.code}: ${done.stderr}`)
      const [report] = Imported.parse(JSON.parse(done.stdout))
      if (report === undefined || report.published === 0) throw new Error(`no row of ${file} was published`)
    },
    metric: (name) => metricOf(service.operatorUrl, name),
    async remove() {
      await service.stop()
      await rm(dataDirectory, { recursive: true, force: true })
    }
  }
}

async function metricOf(operatorUrl: string, name: string): Promise<number> {
  const text = await (await fetch(`${operatorUrl}/metrics`)).text()
  const values = [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'gm'))].map((line) => Number(line[1]))
  if (values.length === 0) throw new Error(`/metrics has no ${name}`)
  return values.reduce((sum, value) => sum + value, 0)
}

/** The demo network's world: 200 titles. */
export const world: World = createWorld(1)

export const titleIds: readonly string[] = world.titles.map((title) => title.titleId)

/** Imports descriptions of the 200 titles, and per-minute network counts of the last 30 days. */
export async function importTitlesAndNetwork(service: QuietService, directory: string): Promise<void> {
  const nowMs = minuteNow()
  const titles = join(directory, 'titles.ndjson')
  const observedAt = instantOf(nowMs)
  const described = world.titles.map(({ titleId, name, publisher }) => ({ titleId, name, publisher, observedAt }))
  await writeFile(titles, described.map((line) => `${JSON.stringify(line)}\n`).join(''))
  await service.importFile('title', titles)
  const network = join(directory, 'network.csv')
  const minutes = 30 * 24 * 60
  const rows = Array.from({ length: minutes }, (_, i) => {
    const ms = nowMs - (minutes - i) * MINUTE_MS
    return `${instantOf(ms)},${4000 + Math.floor(2000 * Math.sin(ms / 13_750_987) + 100 * Math.sin(i))},${200 + (i % 90)}`
  })
  await writeFile(network, `observedAt,online,lobbies\n${rows.join('\n')}\n`)
  await service.importFile('network-count', network)
}

/** Entries of the board that {@link importBoard} imports. */
export const BOARD_ENTRIES = 1000
const BOARD = { titleId: titleIds[0] ?? '', leaderboardId: 1 }
export const BOARD_PATH = `/api/game/${BOARD.titleId}/leaderboards/${BOARD.leaderboardId}`

/** Imports one board of ranked times, all changed an hour ago. */
export async function importBoard(service: QuietService, directory: string): Promise<void> {
  const at = instantOf(minuteNow() - 60 * MINUTE_MS)
  const boards = join(directory, 'boards.ndjson')
  await writeFile(boards, `${JSON.stringify({ ...BOARD, name: 'The harbour, any car', observedAt: at })}\n`)
  await service.importFile('leaderboard', boards)
  const entries = join(directory, 'entries.ndjson')
  const rows = Array.from({ length: BOARD_ENTRIES }, (_, i) => {
    const timeMs = 61_000 + 37 * i
    const measure = { rank: i + 1, rating: String(2_147_483_647 - timeMs), timeMs }
    return { ...BOARD, playerName: `Player ${(i * 7919) % 99_991}`, changeType: 'new', ...measure, changedAt: at }
  })
  await writeFile(entries, rows.map((row) => `${JSON.stringify(row)}\n`).join(''))
  await service.importFile('leaderboard-entry', entries)
}

/** Imports per-minute counts of the 200 titles for the last `minutes` minutes. */
export async function importTitleCounts(service: QuietService, directory: string, minutes: number): Promise<void> {
  const file = join(directory, 'counts.csv.gz')
  await writeTitleCounts(file, 'csv.gz', { titleIds, firstMs: minuteNow() - minutes * MINUTE_MS, minutes })
  await service.importFile('title-count', file)
}

/** Returns the start of the current minute, milliseconds since 1970. */
export function minuteNow(): number {
  return Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS
}
