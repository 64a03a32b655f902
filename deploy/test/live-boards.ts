import { instantOf, timeText } from '@gamenet/schemas'
import type { Test } from 'tap'
import {
  type Board,
  type BoardForm,
  type BoardRow,
  boardRowsAt,
  type GivenBoard,
  RAW_TIME_TOP
} from '../demo/network/boards.js'
import { chance, chanceBelow } from '../demo/network/chance.js'
import type { Fault } from '../demo/network/faults.js'
import type { CatalogueTitle } from '../demo/network/samples.js'
import { type DemoNetwork, type Shown, startDemoNetwork } from '../demo/network/server.js'
import { createWorld } from '../demo/network/world.js'
import { type BoardWorld, openBoardWorld } from './boards-model-world.js'
import { forEach, sameList } from './service/ask.js'
import type { Life, ScrapingProcess } from './service/scraped-world.js'

/*
 * The demo network's boards under all faults: an hour of scrapes by a clock that the test moves, in a network that
 * changes faster than its clock, so that each scrape finds changes. The journal has every page that the network sent
 * completely.
 */

/** A day and a half of the network passes in the hour. */
const SPEED = 36
const BOARDS_AN_INSTANT = 3
const HOUR_MS = 3_600_000
const START_MS = Date.UTC(2026, 2, 14, 20)
/** Streams of the test's random choices, separate from those of the network. */
const use = { instant: 1001, board: 1002, fault: 1003 } as const

/** A page of a board that the network sent: its time and its entries. */
type Page = { readonly atMs: number; readonly rows: readonly BoardRow[] }
type Journal = ReadonlyMap<Board, Page[]>

export type LiveBoards = {
  readonly seed: number
  readonly catalogue: readonly CatalogueTitle[]
  /** Boards of titles instead of the generated ones, by title id. */
  readonly boards?: Readonly<Record<string, readonly GivenBoard[]>>
  /** Number of scrapes of all boards in the hour. */
  readonly rounds: number
  /** Number of instants of the hour that are queried. */
  readonly instants: number
}

type Stage = {
  readonly options: LiveBoards
  readonly roundMs: number
  readonly world: BoardWorld
  readonly network: DemoNetwork
  readonly boards: readonly Board[]
  readonly journal: Journal
  /** Periods in which the clock moved while pages were read. */
  readonly moving: [fromMs: number, toMs: number][]
  /** While it is on, every eighth page moves the clock. */
  isMoving: boolean
  readonly faults: Map<Fault, number>
}

/** Scrapes constantly changing boards for an hour. */
export async function provesLiveBoards(t: Test, options: LiveBoards): Promise<void> {
  const stage = await openStage(t, options)
  await t.test('scrapes continue after failures, deaths and repeated runs', (t) => provesScrapes(t, stage))
  await t.test('every board is the demo network’s own', (t) => provesNow(t, stage))
  await t.test('as of any instant a board equals its last page before it', (t) => provesInstants(t, stage))
  await t.test('the changes, followed from the start, are those from page to page, each once', (t) =>
    provesChanges(t, stage)
  )
}

async function openStage(t: Test, options: LiveBoards): Promise<Stage> {
  const { seed, catalogue, boards: given = {}, rounds } = options
  const demo = createWorld(seed, { catalogue, boards: given })
  const journal = new Map<Board, Page[]>()
  const clock = { ms: START_MS }
  const faults = new Map<Fault, number>()
  let pages = 0
  const onShown = ({ path, leaderboardId, instant, status, fault }: Shown) => {
    pages += 1
    if (fault !== undefined) faults.set(fault, (faults.get(fault) ?? 0) + 1)
    const title = demo.titles.find(({ titleId }) => path === `/games/${titleId}`)
    const board = title && demo.boardsOf(title).find((each) => each.leaderboardId === leaderboardId)
    if (board !== undefined && fault === undefined && (status === 200 || status === 304)) {
      const page = { atMs: world.clock.ms, rows: boardRowsAt(seed, board, Date.parse(instant)) }
      journal.set(board, [...(journal.get(board) ?? []), page])
    }
    if (stage.isMoving && pages % 8 === 0) clock.ms += 1000
  }
  const network = await startDemoNetwork({ seed, world: demo, speed: SPEED, now: () => clock.ms, onShown })
  t.teardown(() => network.close())
  const world = await openBoardWorld(t, { clock, upstreamUrl: network.url })
  const boards = demo.titles.flatMap((title) => demo.boardsOf(title))
  const roundMs = HOUR_MS / rounds
  const stage: Stage = { options, roundMs, world, network, boards, journal, moving: [], isMoving: false, faults }
  return stage
}

async function provesScrapes(t: Test, stage: Stage): Promise<void> {
  const { world, network, roundMs } = stage
  const two = [world.ingest(), world.ingest()] as const
  const [seen] = await two[0].ingest.runNow('network')
  t.equal(seen?.outcome, 'succeeded', seen?.reason ?? '')
  let deaths = 0
  for (let round = 0; round < stage.options.rounds; round += 1) {
    const fault = round % 2 === 1 ? FAULTS[Math.floor(round / 2) % FAULTS.length] : undefined
    if (fault !== undefined) network.orderFault({ path: pathOf(round, stage), fault, count: 2 })
    // A round without an append kills no process: then the next rounds try.
    const isDeadly = round % 8 === 4 || (round > 4 && deaths === 0)
    if (isDeadly && (await livesNoLongerThanAnAppend(world))) deaths += 1
    const beganMs = world.clock.ms
    stage.isMoving = round % 4 === 2
    const processes: readonly ScrapingProcess[] = round % 4 < 2 ? [two[round % 2 === 0 ? 0 : 1]] : two
    const runs = (await Promise.all(processes.map(({ ingest }) => ingest.runNow('boards')))).flat()
    stage.isMoving = false
    for (const run of runs) {
      // A board that has just left the list has no page.
      const faults = (run.reason ?? '').split('; ').filter((each) => !/: status 404/.test(each))
      if (faults.join('') !== '' && fault === undefined) t.fail(`round ${round}: ${run.outcome}, ${run.reason}`)
    }
    if (fault !== undefined) network.orderFault({ path: pathOf(round, stage), fault, count: 0 })
    if (world.clock.ms > beganMs) stage.moving.push([beganMs, world.clock.ms])
    world.clock.ms = START_MS + (round + 1) * roundMs
  }
  world.clock.ms -= roundMs
  await two[0].ingest.runNow('boards')
  t.ok(deaths > 0, `${deaths} processes died after an append`)
  t.ok(stage.moving.length > 0, `the clock moved in ${stage.moving.length} scrapes`)
  t.same([...stage.faults.keys()].sort(), FAULTS.toSorted(), JSON.stringify([...stage.faults]))
  await world.caughtUp()
}

/** Pages that are truncated in a tag, end early, or are missing, in every second round; attempts follow one another. */
const FAULTS: readonly Fault[] = ['broken', 'truncated', '500', 'reset']

function pathOf(round: number, { boards, options }: Stage): string {
  return `/games/${boards[chanceBelow(boards.length, options.seed, use.fault, round)]?.title.titleId}`
}

/** A process that dies after it has appended changes, before its lease is updated; then its leases expire. */
async function livesNoLongerThanAnAppend(world: BoardWorld): Promise<boolean> {
  let isDead = false
  const life: Life = {
    async call(name, work) {
      if (isDead) throw new Error('this process is dead')
      const answer = await work()
      if (name === 'append leaderboard-entry') isDead = true
      if (isDead) throw new Error('this process just died')
      return answer
    }
  }
  const { ingest } = world.ingest({ life })
  await ingest.runNow('boards')
  await ingest.stop()
  await world.passTime()
  return isDead
}

async function provesNow(t: Test, { options, world, boards, network, journal }: Stage): Promise<void> {
  const wrong: unknown[] = []
  const worldMs = network.instantShown()
  let total = 0
  await forEach(boards, 4, async (board) => {
    const isListed = network.world.boardsAt(board.title, worldMs).includes(board)
    const pages = journal.get(board)
    const { status, body } = await world.ask(pathOfBoard(board))
    // A board that no list had in this hour is unknown.
    if (pages === undefined) return void (status !== 404 && wrong.push({ board, status }))
    if (isListed) {
      const own = boardRowsAt(options.seed, board, worldMs)
      if (JSON.stringify(own) !== JSON.stringify(pages.at(-1)?.rows)) wrong.push({ board, not: 'the last page' })
    }
    const wanted = entriesOf(board, pages.at(-1)?.rows ?? [])
    total += wanted.length
    const isSame = JSON.stringify(body.entries) === JSON.stringify(wanted)
    if (!isSame || body.listed !== isListed || body.name !== board.name || body.total !== wanted.length) {
      wrong.push({ board: board.name, body, isListed, wanted })
    }
  })
  t.same(wrong.slice(0, 1), [], `${boards.length} boards with ${total} entries, ${wrong.length} wrong`)
  const shown = [...journal.values()]
  t.ok(shown.some((pages) => pages.some(({ rows }, at) => at > 0 && rows.length === 0 && pages[at - 1]?.rows.length)))
  t.ok(
    shown.some((pages) => pages.at(-1)?.rows.some(({ rank }, at, rows) => rows[at - 1]?.rank === rank)),
    'ties'
  )
  t.ok(shown.some((pages) => hasDoubledName(pages.at(-1)?.rows ?? [])))
}

async function provesInstants(t: Test, { options, roundMs, world, boards, journal, moving }: Stage): Promise<void> {
  const { seed } = options
  const wrong: unknown[] = []
  const seen = boards.filter((board) => journal.has(board))
  const instants = Array.from({ length: options.instants }, (_, n) => {
    const ms = START_MS + chanceBelow(HOUR_MS - roundMs, seed, use.instant, n)
    // While the clock moves, a page can be of another instant than that of the request.
    const [, toMs = ms] = moving.find(([fromMs, toMs]) => fromMs <= ms && ms < toMs) ?? []
    // Some instants are at a scrape, and a millisecond before.
    return chance(seed, use.instant, n, 1) < 0.3 ? Math.floor(toMs / roundMs) * roundMs - (n % 2) : toMs
  }).filter((ms) => ms >= START_MS && !moving.some(([fromMs, toMs]) => fromMs <= ms && ms < toMs))
  let requests = 0
  await forEach(instants, 4, async (ms) => {
    for (let n = 0; n < BOARDS_AN_INSTANT; n += 1) {
      const board = seen[chanceBelow(seen.length, seed, use.board, ms % 2 ** 31, n)]
      const page = board && journal.get(board)?.findLast(({ atMs }) => atMs <= ms)
      if (board === undefined || page === undefined) continue
      requests += 1
      const { body } = await world.ask(`${pathOfBoard(board)}?asOf=${instantOf(ms)}`)
      const wanted = entriesOf(board, page.rows)
      if (JSON.stringify(body.entries) !== JSON.stringify(wanted)) {
        wrong.push({ board: board.name, ms: instantOf(ms), body, wanted })
      }
    }
  })
  t.ok(
    instants.length > options.instants * 0.8 && requests > options.instants,
    `${requests} boards at ${instants.length} instants`
  )
  t.same(wrong.slice(0, 1), [], `${wrong.length} wrong`)
}

async function provesChanges(t: Test, { world, journal }: Stage): Promise<void> {
  const found: string[] = []
  for (let url: string | undefined = '/api/leaderboard-changes?limit=500&after=start'; url !== undefined; ) {
    const { body, next } = await world.ask(url)
    if (body.length === 0) break
    for (const change of body) {
      const { titleId, leaderboardId, playerName, changeType, previousRank, newRank } = change
      const { previousRating, newRating } = change
      found.push(
        JSON.stringify([
          titleId,
          leaderboardId,
          playerName,
          changeType,
          previousRank,
          newRank,
          previousRating,
          newRating
        ])
      )
    }
    url = next
  }
  const wanted = [...journal].flatMap(([board, pages]) =>
    pages.flatMap(({ rows }, at) => changesBetween(pages[at - 1]?.rows ?? [], rows).map((of) => changeLine(board, of)))
  )
  sameList(t, found.sort(), wanted.sort(), `${wanted.length} changes`)
  const counts = ['new', 'updated', 'removed'].map((type) => wanted.filter((line) => line.includes(`"${type}"`)).length)
  t.ok(Math.min(...counts) > 5, `${counts[0]} came, ${counts[1]} changed, ${counts[2]} went`)
}

type PageChange = { readonly before: BoardRow | undefined; readonly after: BoardRow | undefined }

/** Returns entries that are new, gone or have another rating; the n-th of a name is compared with the former n-th. */
function changesBetween(before: readonly BoardRow[], after: readonly BoardRow[]): PageChange[] {
  const [then, now] = [numbered(before), numbered(after)]
  const keys = [...new Set([...then.keys(), ...now.keys()])]
  return keys
    .map((key) => ({ before: then.get(key), after: now.get(key) }))
    .filter(({ before, after }) => before?.cells.at(-1) !== after?.cells.at(-1))
}

function changeLine({ title, leaderboardId }: Board, { before, after }: PageChange): string {
  const type = before === undefined ? 'new' : after === undefined ? 'removed' : 'updated'
  return JSON.stringify([
    title.titleId,
    leaderboardId,
    (after ?? before)?.playerName,
    type,
    before?.rank ?? null,
    after?.rank ?? null,
    before?.cells.at(-1) ?? null,
    after?.cells.at(-1) ?? null
  ])
}

function numbered(rows: readonly BoardRow[]): Map<string, BoardRow> {
  const byKey = new Map<string, BoardRow>()
  for (const row of rows) {
    let number = 1
    while (byKey.has(`${number}/${row.playerName}`)) number += 1
    byKey.set(`${number}/${row.playerName}`, row)
  }
  return byKey
}

function hasDoubledName(rows: readonly BoardRow[]): boolean {
  return new Set(rows.map(({ playerName }) => playerName.toLowerCase())).size < rows.length
}

function pathOfBoard({ title, leaderboardId }: Board): string {
  return `/api/game/${title.titleId}/leaderboards/${leaderboardId}`
}

/** The entries of a page as the API shows them. */
function entriesOf(board: Board, rows: readonly BoardRow[]): object[] {
  return rows.map(({ rank, playerName, cells }) => {
    const rating = cells.at(-1) ?? ''
    const timeMs = millisecondsShown(board.form, rating)
    const details = detailNames(board.form).map((name, at) => [name, cells[at]] as const)
    return {
      rank: String(rank),
      name: playerName,
      rating,
      timeMs: timeMs ?? 0,
      timeFormatted: timeMs === undefined ? '' : timeText(timeMs),
      isTime: timeMs !== undefined,
      ...(details.length === 0 ? {} : { details: Object.fromEntries(details) })
    }
  })
}

function millisecondsShown(form: BoardForm, rating: string): number | undefined {
  if (form === 'raw-time') return RAW_TIME_TOP - Number(rating)
  if (form === 'score' || form === 'career') return undefined
  const [minutes, seconds] = rating.split(':')
  return Number(minutes) * 60_000 + Math.round(Number(seconds) * 1000)
}

function detailNames(form: BoardForm): readonly string[] {
  if (form === 'lap') return ['date', 'location', 'circuit', 'car']
  return form === 'career' ? ['firsts', 'seconds', 'thirds', 'races', 'kudosRank'] : []
}
