import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { type ClickHouse, openChdb } from '@gamenet/engines'
import { diffBoard, publish } from '@gamenet/ingest'
import { migrate } from '@gamenet/projector'
import { instantOf, leaderboardEntryTopic, leaderboardTopic } from '@gamenet/schemas'
import { Registry } from 'prom-client'
import { type LogChoice, type OpenLog, openLog } from '../../src/stores/log.js'
import { serveTables } from './api-on-tables.js'
import { randomness } from './count-files.js'
import { figure, type Measurement, scaled } from './measurement.js'
import { projectorOn } from './projector-on.js'

/*
 * New boards, from parsed pages to answers of the API: diffed, published with one append per board, read and validated in
 * the loader's thread, stored, projected, and folded in a worker thread.
 */

const BOARDS = 1000
const ENTRIES = 1000
const BOARDS_A_TITLE = 20
const PLAYERS = 200_000
const FIRST_MS = Date.UTC(2026, 0, 1)
const LEAST = 30_000
const SCRAPED = { source: '/scrape/boards' }

type Page = Parameters<typeof diffBoard>[0]['page']
type Stage = { readonly stage: string; readonly seconds: number }

/** Loads 1,000 new boards of 1,000 entries. */
export const boardsLoad: Measurement = {
  name: 'boards-load',
  claim: '1,000 new boards of 1,000 entries are readable at 30,000 entries a second, from parsed pages on',
  async run({ scale, directory, note }) {
    const boards = scaled(BOARDS, scale, 20)
    const choice: LogChoice = { engine: 'lmdb', path: await mkdtemp(join(directory, 'log-')), epoch: 1 }
    const log = await openLog(choice, 'bench')
    const tables = await openChdb({ path: await mkdtemp(join(directory, 'chdb-')) })
    const registry = new Registry()
    const projector = projectorOn(tables, choice, registry)
    try {
      await migrate(tables.control)
      projector.start()
      await projector.caughtUp()
      const pages = Array.from({ length: boards }, (_, board) => pageOf(board))
      note(`${boards} pages of ${ENTRIES} entries`)
      const begun = performance.now()
      const processor = process.cpuUsage()
      await publishBoards(log, pages)
      const published = (performance.now() - begun) / 1000
      await projector.caughtUp()
      const seconds = (performance.now() - begun) / 1000
      const { user, system } = process.cpuUsage(processor)
      await requireReadable(tables, boards)
      const entries = boards * ENTRIES
      note((await stagesOf(registry)).map(({ stage, seconds: s }) => `${stage} ${figure(s)} s`).join(', '))
      return [
        {
          what: `entries a second, ${boards} pages to readable`,
          measured: entries / seconds,
          unit: '/s',
          target: { bound: 'at least', value: LEAST, of: 'measured' },
          detail: `${figure(seconds)} s, including ${figure(published)} s of publishing; processor time ${figure((user + system) / entries)} µs per entry`
        }
      ]
    } finally {
      await projector.stop()
      await log.close()
      await tables.close()
    }
  }
}

/** Publishes as visits do: a title's list of boards before its first board, and the entries of each board in one append. */
async function publishBoards(log: OpenLog, pages: readonly Page[]): Promise<void> {
  for (const [board, page] of pages.entries()) {
    const titleId = titleOf(board)
    const changedAt = instantOf(FIRST_MS + board * 613)
    if (board % BOARDS_A_TITLE === 0) {
      const listed = Array.from({ length: BOARDS_A_TITLE }, (_, n) => board + n).map((leaderboardId) => ({
        titleId,
        leaderboardId,
        name: `Board ${leaderboardId}`,
        observedAt: changedAt
      }))
      await publish(log, leaderboardTopic, listed, SCRAPED)
    }
    const events = diffBoard({ titleId, leaderboardId: board, changedAt, last: [], page })
    await publish(log, leaderboardEntryTopic, events, SCRAPED)
  }
}

/** Requires that the API shows the first, middle and last board completely, and that each table has one row per entry. */
async function requireReadable(tables: ClickHouse, boards: number): Promise<void> {
  const api = await serveTables(tables)
  try {
    for (const board of [0, Math.floor(boards / 2), boards - 1]) {
      const { entries } = JSON.parse((await api.get(`/api/game/${titleOf(board)}/leaderboards/${board}`)).text)
      const shown = JSON.stringify(
        entries.map(({ rank, name }: { rank: string; name: string }) => [Number(rank), name])
      )
      const expected = JSON.stringify(pageOf(board).map(({ rank, playerName }) => [rank, playerName]))
      if (shown !== expected) throw new Error(`board ${board} reads ${shown.slice(0, 200)}`)
    }
    for (const table of [
      'leaderboard_entry',
      'player_entry',
      'timed_entry',
      'leaderboard_feed',
      'leaderboard_change'
    ]) {
      const [row] = await tables.control.rows(`SELECT count() AS rows FROM {table: Identifier} FINAL`, { table })
      if (Number(row?.rows) !== boards * ENTRIES) throw new Error(`${table} has ${row?.rows} rows`)
    }
  } finally {
    await api.close()
  }
}

/** Seconds spent on inserts of events and on each projection; they overlap. */
async function stagesOf(registry: Registry): Promise<Stage[]> {
  const text = await registry.metrics()
  const inserts = /^gamenet_insert_seconds_sum (\S+)$/m.exec(text)?.[1]
  const steps = [...text.matchAll(/^gamenet_projection_step_seconds_sum\{projection="([^"]*)"\} (\S+)$/gm)]
  return [
    { stage: 'inserts of events', seconds: Number(inserts ?? 0) },
    ...steps.map(([, stage = '', seconds]) => ({ stage, seconds: Number(seconds) }))
  ]
}

function titleOf(board: number): string {
  return (0x4d53_0064 + Math.floor(board / BOARDS_A_TITLE)).toString(16)
}

/** Returns a page of random times, best first. */
function pageOf(board: number): Page {
  const random = randomness(board + 1)
  const names = new Set<string>()
  while (names.size < ENTRIES) names.add(`Player ${Math.floor(random() * PLAYERS)}`)
  let timeMs = 30_000 + Math.floor(random() * 60_000)
  return [...names].map((playerName, place) => {
    timeMs += 1 + Math.floor(random() * 90)
    return { playerName, occurrence: 1, rank: place + 1, rating: String(2_147_483_647 - timeMs), timeMs }
  })
}
