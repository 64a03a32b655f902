import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { changesOf, type EntryEvent, historyOf, boardOf as plainBoard, recordsOf } from '@gamenet/engines/testing'
import { shownInstant, timeText } from '@gamenet/schemas'
import type { Test } from 'tap'
import { z } from 'zod'
import type { TestService } from '../boards-service.js'
import { ask, forEach, sameList } from '../service/ask.js'
import { changeRow } from '../service/change-row.js'
import { gamenet, gamenetJson } from '../service/gamenet.js'
import { sharedFile } from '../service/recorded.js'

/*
 * Records of timed tracks, as boards: a board is a track of a campaign of a game. The answers are compared with the
 * running minimum by date, computed from the rows.
 */

const RecordRow = z.object({
  game: z.string(),
  campaign: z.string(),
  track: z.string(),
  player: z.string(),
  time_ms: z.int().optional(),
  date: z.string().optional()
})
type RecordRow = z.infer<typeof RecordRow>

const Reigns = z.object({
  name: z.string(),
  total: z.int(),
  records: z.array(
    z.object({
      playerName: z.string(),
      rating: z.string(),
      timeMs: z.int(),
      isTime: z.literal(true),
      setAt: z.string(),
      fromAt: z.string(),
      toAt: z.string().nullable()
    })
  )
})
const SetRecords = z.array(
  z.object({
    titleId: z.string(),
    leaderboardId: z.int(),
    leaderboardName: z.string(),
    playerName: z.string(),
    rating: z.string(),
    timeMs: z.int(),
    setAt: z.string(),
    previousPlayerName: z.string().nullable(),
    previousTimeMs: z.int().nullable(),
    isCurrent: z.boolean()
  })
)
const Entries = z.object({
  total: z.int(),
  entries: z.array(z.object({ rank: z.string(), name: z.string(), rating: z.string(), timeMs: z.int() }))
})
const Changes = z.array(
  z.object({
    id: z.string(),
    titleId: z.string(),
    leaderboardId: z.int(),
    leaderboardName: z.string(),
    playerName: z.string(),
    changeType: z.string(),
    previousRank: z.int().nullable(),
    newRank: z.int().nullable(),
    previousRating: z.string().nullable(),
    newRating: z.string().nullable(),
    previousTimeMs: z.int().nullable(),
    newTimeMs: z.int().nullable(),
    isTime: z.boolean(),
    changedAt: z.string()
  })
)

type Board = {
  readonly titleId: string
  readonly leaderboardId: number
  readonly name: string
  readonly events: EntryEvent[]
}

/** Figures of the recorded rows, to detect a shorter file. */
const RECORDED = { rows: 5696, taken: 4692, boards: 2012, slower: 29 }

/** Every row of the recorded times; undefined where they are absent. */
export async function recordedTimes(t: Test): Promise<RecordRow[] | undefined> {
  const path = await sharedFile('timed-records-2004-2020.jsonl.gz')
  if (path === undefined) {
    t.comment('NO ../shared/data: the recorded times were NOT tested; times of the same make are')
    return undefined
  }
  const lines = gunzipSync(await readFile(path))
    .toString()
    .trimEnd()
    .split('\n')
  return lines.map((line) => RecordRow.parse(JSON.parse(line)))
}

export async function provesRecordedTimes(t: Test, service: TestService, rows: readonly RecordRow[]): Promise<void> {
  const boards = await provesRecords(t, service, rows)
  t.equal(rows.length, RECORDED.rows)
  t.equal(boards.length, RECORDED.boards)
  t.equal(
    boards.reduce((sum, { events }) => sum + events.length, 0),
    RECORDED.taken
  )
  t.equal(slowerSteps(boards), RECORDED.slower, 'steps that get slower')
}

/** Similar times: late, tied, slower, duplicate, and without a date or a time. */
export async function provesGeneratedTimes(t: Test, service: TestService): Promise<void> {
  const boards = await provesRecords(t, service, generatedRows())
  t.ok(boards.length > 10, `${boards.length} boards`)
  t.ok(slowerSteps(boards) > 0, 'some steps get slower')
}

function slowerSteps(boards: readonly Board[]): number {
  const slower = boards.flatMap(({ events }) => {
    const inTime = events.toSorted((a, b) => a.ms - b.ms || a.position - b.position)
    return inTime.filter(({ timeMs }, at) => at > 0 && (timeMs ?? 0) > (inTime[at - 1]?.timeMs ?? 0))
  })
  return slower.length
}

/** Unordered rows of 16 tracks, with all kinds of recorded rows. */
function generatedRows(): RecordRow[] {
  return Array.from({ length: 900 }, (_, n) => {
    const day = 1 + ((n * 7) % 28)
    const date = `20${String(4 + (n % 17)).padStart(2, '0')}-0${1 + (n % 9)}-${String(day).padStart(2, '0')}`
    const clock = ['06:06:37', '00:00:00', '23:59:59.283', '12:09:27+00:00', '01:38:39.62'][n % 5]
    const row = {
      game: n % 3 === 0 ? 'one' : 'two',
      campaign: n % 2 === 0 ? 'Race' : 'Stunt & "Drift"',
      track: `A-${(n * 13) % 8}`,
      player: `p_${(n * 31) % 17}`
    }
    if (n % 11 === 5) return n % 2 === 0 ? row : { ...row, time_ms: 30_000 + n }
    return { ...row, time_ms: 20_000 + ((n * 7919) % 40) * 250, date: `${date}${n % 4 === 0 ? 'T' : ' '}${clock}` }
  })
}

async function provesRecords(t: Test, service: TestService, rows: readonly RecordRow[]): Promise<Board[]> {
  const boards = boardsOf(rows)
  const entries = join(service.directory, 'entries.jsonl')
  const names = join(service.directory, 'boards.jsonl')
  await writeFile(entries, rows.map((row) => JSON.stringify(entryRow(row, boards))).join('\n'))
  await writeFile(
    names,
    [...boards.values()]
      .map(({ titleId, leaderboardId, name }) =>
        JSON.stringify({ titleId, leaderboardId, name, observedAt: '2003-01-01' })
      )
      .join('\n')
  )
  const command = ['import', 'leaderboard-entry', entries, '--columns', 'changedAt=date,timeMs=time_ms', '--json']
  const all = [...boards.values()]

  await t.test('the import accepts the rows with a date and a time, and reports all others', async (t) => {
    const done = await gamenet(service.environment, command)
    t.equal(done.code, 1, done.stderr)
    const [report] = z
      .array(
        z.object({
          rowsRead: z.int(),
          published: z.int(),
          rejected: z.int(),
          faults: z.array(z.object({ line: z.int(), reason: z.string() }))
        })
      )
      .parse(JSON.parse(done.stdout))
    const bad = rows.flatMap((row, at) => {
      if (row.time_ms !== undefined && row.date !== undefined) return []
      return {
        line: at + 1,
        reason: row.time_ms === undefined ? 'rating and timeMs are both missing' : 'changedAt is missing'
      }
    })
    t.same([report?.rowsRead, report?.published, report?.rejected], [rows.length, rows.length - bad.length, bad.length])
    sameList(t, report?.faults ?? [], bad.slice(0, 100), 'the first hundred are named by line')
    t.match(await gamenetJson(service.environment, ['import', 'leaderboard', names]), [{ published: all.length }])
    await service.caughtUp()
  })

  await t.test('the record of every board is the running minimum by date', (t) => provesProgressions(t, service, all))
  await t.test('every board has its entries’ newest times, now and as of instants', (t) =>
    provesBoards(t, service, all)
  )
  await t.test('the changes, followed from the start, are those of every entry, each once', (t) =>
    provesChanges(t, service, all)
  )
  await t.test('a second import changes no answer', async (t) => {
    const paths = all
      .slice(0, 20)
      .map(({ titleId, leaderboardId }) => `/api/game/${titleId}/leaderboards/${leaderboardId}`)
    const urls = paths.flatMap((path) => [path, `${path}/records`]).map((path) => `${service.running.apiUrl}${path}`)
    const before = await Promise.all(urls.map((url) => ask(url)))
    const again = await gamenet(service.environment, command)
    t.match(JSON.parse(again.stdout), [{ alreadyDone: true, published: 0 }])
    await service.caughtUp()
    for (const [at, url] of urls.entries()) {
      const after = await ask(url)
      t.equal(after.headers.get('etag'), before[at]?.headers.get('etag'), url)
      t.ok(after.text === before[at]?.text)
    }
  })
  return all
}

async function provesProgressions(t: Test, service: TestService, boards: readonly Board[]): Promise<void> {
  const wrong: unknown[] = []
  const reigns = await provesSetRecords(t, service, boards)
  // A request for each of thousands of boards takes a minute; their common answer was just compared.
  const some = boards.filter((_board, at) => at % (boards.length > 500 ? 8 : 1) === 0)
  await forEach(some, 8, async ({ titleId, leaderboardId, name, events }) => {
    const found = Reigns.parse(await service.get(`/api/game/${titleId}/leaderboards/${leaderboardId}/records`))
    const wanted = runningMinimum(events)
    const same = JSON.stringify(found.records) === JSON.stringify(wanted) && found.total === wanted.length
    if (!same || found.name !== name) wrong.push({ name, found, wanted })
  })
  t.same(wrong.slice(0, 2), [], `${some.length} of ${boards.length} boards, ${wrong.length} wrong`)
  const folded = boards.map(({ events }) => recordsOf(historyOf(events)).length)
  t.equal(
    folded.reduce((sum, count) => sum + count, 0),
    reigns,
    'the fold of design says the same'
  )
}

/**
 * Compares the records of all boards at once: without removals every reign is one that was set. Returns their number.
 */
async function provesSetRecords(t: Test, service: TestService, boards: readonly Board[]): Promise<number> {
  const found: z.infer<typeof SetRecords> = []
  for (let offset = 0; ; offset += 500) {
    const page = SetRecords.parse(await service.get(`/api/records/recent?limit=500&offset=${offset}`))
    found.push(...page)
    if (page.length < 500) break
  }
  t.same(
    found.map(({ setAt }) => Date.parse(setAt)),
    found.map(({ setAt }) => Date.parse(setAt)).sort((a, b) => b - a),
    'newest first'
  )
  const wanted = boards.flatMap(({ titleId, leaderboardId, name, events }) =>
    runningMinimum(events).map(({ playerName, rating, timeMs, setAt, toAt }, at, reigns) => ({
      titleId,
      leaderboardId,
      leaderboardName: name,
      playerName,
      rating,
      timeMs,
      setAt,
      previousPlayerName: reigns[at - 1]?.playerName ?? null,
      previousTimeMs: reigns[at - 1]?.timeMs ?? null,
      isCurrent: toAt === null
    }))
  )
  const inOrder = (rows: readonly object[]) => rows.map((row) => JSON.stringify(row)).sort()
  sameList(t, inOrder(found), inOrder(wanted), `${wanted.length} records of ${boards.length} boards`)
  return wanted.length
}

/** Returns the holders of the best time, by date and then by line; an equal time does not replace it. */
function runningMinimum(events: readonly EntryEvent[]): z.infer<typeof Reigns>['records'] {
  const reigns: z.infer<typeof Reigns>['records'] = []
  let best = Number.POSITIVE_INFINITY
  for (const { playerName, timeMs, ms } of events.toSorted((a, b) => a.ms - b.ms || a.position - b.position)) {
    if (timeMs === null || timeMs >= best) continue
    best = timeMs
    const at = shownInstant(ms)
    const last = reigns.at(-1)
    if (last !== undefined) last.toAt = at
    reigns.push({ playerName, rating: timeText(timeMs), timeMs, isTime: true, setAt: at, fromAt: at, toAt: null })
  }
  return reigns
}

async function provesBoards(t: Test, service: TestService, boards: readonly Board[]): Promise<void> {
  const wrong: unknown[] = []
  let requests = 0
  const compare = async ({ titleId, leaderboardId, events }: Board, asOfMs?: number) => {
    const asOf = asOfMs === undefined ? '' : `?asOf=${shownInstant(asOfMs)}`
    const path = `/api/game/${titleId}/leaderboards/${leaderboardId}${asOf}`
    const found = Entries.parse(await service.get(path))
    const wanted = plainBoard(historyOf(events), asOfMs).map(({ rank, event }) => ({
      rank: String(rank),
      name: event.playerName,
      rating: event.rating,
      timeMs: event.timeMs ?? 0
    }))
    requests += 1
    if (JSON.stringify(found.entries) !== JSON.stringify(wanted)) wrong.push({ path, found: found.entries, wanted })
    if (found.total !== wanted.length) wrong.push({ path, total: found.total, wanted: wanted.length })
  }
  const some = boards.filter((_board, at) => at % (boards.length > 500 ? 8 : 1) === 0)
  await forEach(some, 8, (board) => compare(board))
  const instants = some.flatMap((board, at) => {
    const event = board.events[at % board.events.length]
    return event === undefined || at % 7 !== 0 ? [] : [[board, event.ms] as const, [board, event.ms - 1] as const]
  })
  // Before its first sight, that of its name in 2003, a board is unknown.
  await forEach(instants, 8, ([board, ms]) => compare(board, ms))
  t.same(wrong.slice(0, 2), [], `${requests} boards were asked for, ${wrong.length} answers were wrong`)
}

async function provesChanges(t: Test, service: TestService, boards: readonly Board[]): Promise<void> {
  const found: z.infer<typeof Changes> = []
  for (let path = '/api/leaderboard-changes?limit=500&after=start'; ; ) {
    const answer = await ask(`${service.running.apiUrl}${path}`)
    t.equal(answer.status, 200)
    const page = Changes.parse(answer.body)
    if (page.length === 0) break
    found.push(...page)
    path = /<([^>]+)>; rel="next"/.exec(answer.headers.get('link') ?? '')?.[1]?.replace(/^https?:\/\/[^/]+/, '') ?? ''
  }
  t.equal(new Set(found.map(({ id }) => id)).size, found.length, 'no change twice')
  const wanted = boards.flatMap(({ titleId, leaderboardId, name, events }) =>
    changesOf(historyOf(events)).map((change) => ({
      titleId,
      leaderboardId,
      leaderboardName: name,
      ...changeRow(change)
    }))
  )
  const inOrder = (rows: readonly object[]) => rows.map((row) => JSON.stringify(Object.entries(row).sort())).sort()
  sameList(t, inOrder(found.map(({ id: _, ...change }) => change)), inOrder(wanted), `${wanted.length} changes`)
}

/** The boards of all rows, numbered within their game by their first row; events are the rows with a date and a time. */
function boardsOf(rows: readonly RecordRow[]): Map<string, Board> {
  const boards = new Map<string, Board>()
  const titles = new Map<string, { readonly titleId: string; boards: number }>()
  for (const [position, row] of rows.entries()) {
    const { game, campaign, track, player, time_ms: timeMs, date } = row
    const title = titles.get(game) ?? { titleId: (0xfe000000 + titles.size).toString(16), boards: 0 }
    titles.set(game, title)
    const known = boards.get(boardName(row))
    if (known === undefined) title.boards += 1
    const board = known ?? {
      titleId: title.titleId,
      leaderboardId: title.boards,
      // As on pages: a dozen of the recorded names end in a blank.
      name: `${campaign} - ${track}`.replace(/\s+/g, ' ').trim(),
      events: []
    }
    boards.set(boardName(row), board)
    if (timeMs === undefined || date === undefined) continue
    board.events.push({
      playerName: player,
      occurrence: 1,
      ms: Date.parse(/[Z+]/.test(date) ? date : `${date.replace(' ', 'T')}Z`),
      position,
      isGone: false,
      rating: timeText(timeMs),
      timeMs,
      statedRank: null,
      order: null,
      step: null
    })
  }
  return boards
}

function boardName({ game, campaign, track }: RecordRow): string {
  return JSON.stringify([game, campaign, track])
}

function entryRow(row: RecordRow, boards: ReadonlyMap<string, Board>): object {
  const board = boards.get(boardName(row))
  const { player, time_ms, date } = row
  const { titleId, leaderboardId } = board ?? {}
  return { titleId, leaderboardId, playerName: player, changeType: 'updated', time_ms, date }
}
