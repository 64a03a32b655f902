import type { ClickHouse } from '@gamenet/engines'
import { Chance } from '../simulate/chance.js'
import { requireSame, type ServedApi, serveTables } from './api-on-tables.js'
import { BOARD_ENTRIES, type BoardRows, makeChanges, openBoardRows, titleOfBoard } from './board-rows.js'
import { type Conditions, figure, type Measurement, quantile, type Result, scaled } from './measurement.js'

const QUERIES = 60
const WARM = 5
const PAGE = 500
const TARGET_MS = 30
const SQL_RATIO = 1.5
/** Allows for rows that the engine has cached for only one of the two pages. */
const DEPTH_RATIO = 1.5

/** Boards and changes over HTTP, each query new, against bare SQL on the same engine. */
export const boards: Measurement = {
  name: 'boards',
  claim:
    'a board of 1,000, now or as of any instant in 20 M states, takes at most 1.5 × the bare SQL; a page of changes takes the same at any depth',
  async run(conditions) {
    const { tables, ...rows } = await openBoardRows(conditions)
    const api = await serveTables(tables)
    try {
      return [...(await boardsOf(conditions, rows, api)), ...(await changesOf(conditions, tables, rows, api))]
    } finally {
      await api.close()
      await tables.close()
    }
  }
}

const COLUMNS = ['rank', 'name', 'rating']
const entriesOf = (text: string): readonly object[] => JSON.parse(text).entries

/** The cheapest statement for the current board. */
const NOW_SQL = `
  SELECT e.rank AS rank, e.player AS name, e.rating AS rating, e.time_ms AS timeMs
  FROM leaderboard_entry__0 AS e FINAL
  WHERE e.title_id = {titleId: String} AND e.leaderboard_id = {board: UInt32} AND NOT e.is_gone
  ORDER BY e.place`

/** The board as of an instant in one statement; valid only if all entries were scraped. */
const AS_OF_SQL = `
  SELECT s.player AS name, s.rating AS rating, sum(s.step) OVER (ORDER BY s.ord ROWS UNBOUNDED PRECEDING) AS rank
  FROM (
    SELECT h.player AS player, argMax((h.rating, h.ord, h.step, h.is_gone), (h.ts, h.epoch, h.offset)) AS l,
      l.1 AS rating, l.2 AS ord, l.3 AS step
    FROM leaderboard_history__0 AS h
    WHERE h.title_id = {titleId: String} AND h.leaderboard_id = {board: UInt32}
      AND h.ts <= fromUnixTimestamp64Milli({at: Int64}, 'UTC')
    GROUP BY h.player HAVING l.4 = 0) AS s
  ORDER BY s.ord`

async function boardsOf({ scale }: Conditions, rows: BoardRows, api: ServedApi) {
  const chance = new Chance(5)
  const times = { now: [] as number[], nowSql: [] as number[], asOf: [] as number[], asOfSql: [] as number[] }
  for (let n = -WARM; n < scaled(QUERIES, scale, 10); n += 1) {
    const board = chance.below(rows.boards)
    const titleId = titleOfBoard(board)
    const at = Math.floor(rows.fromMs + chance.number() * (rows.toMs - rows.fromMs))
    const path = `/api/game/${titleId}/leaderboards/${board}`
    const measured = {
      nowSql: await api.sql(NOW_SQL, { titleId, board }),
      now: await api.get(`${path}?offset=0&limit=${BOARD_ENTRIES + n + WARM}`),
      asOfSql: await api.sql(AS_OF_SQL, { titleId, board, at }),
      asOf: await api.get(`${path}?asOf=${new Date(at).toISOString()}`)
    }
    requireSame(entriesOf, measured.now, measured.nowSql, COLUMNS)
    requireSame(entriesOf, measured.asOf, measured.asOfSql, COLUMNS)
    if (n < 0) continue
    for (const kind of ['now', 'nowSql', 'asOf', 'asOfSql'] as const) times[kind].push(measured[kind].ms)
  }
  return [
    ...ofBoard('a board of 1,000 now', times.now, times.nowSql, rows),
    ...ofBoard('a board of 1,000 as of an instant', times.asOf, times.asOfSql, rows)
  ]
}

function ofBoard(what: string, api: readonly number[], sql: readonly number[], { states }: BoardRows): Result[] {
  const measured = quantile(api, 0.5)
  const detail = `${api.length} queries; p99 ${figure(quantile(api, 0.99))} ms, ${figure(states)} states`
  return [
    {
      what: `${what}, median`,
      measured,
      unit: 'ms',
      baseline: { what: 'bare SQL', measured: quantile(sql, 0.5) },
      target: { bound: 'at most', value: SQL_RATIO, of: 'ratio' },
      detail
    },
    { what, measured, unit: 'ms', target: { bound: 'at most', value: TARGET_MS, of: 'measured' } }
  ]
}

async function changesOf(
  { scale, note }: Conditions,
  tables: ClickHouse,
  { changes }: BoardRows,
  api: ServedApi
): Promise<Result[]> {
  const path = `/api/leaderboard-changes?after=start&limit=${PAGE}`
  await tables.control.execute('TRUNCATE TABLE leaderboard_feed__0')
  await tables.control.execute('TRUNCATE TABLE leaderboard_change__0')
  await tables.control.execute(`DELETE FROM checkpoint WHERE name LIKE '%:leaderboard-entry'`)
  // The feed is still empty, so the cursor of its end points at `depth` of the changes that are inserted below.
  const queries = scaled(QUERIES, scale, 10)
  const depth = changes - (queries + 2 * WARM) * PAGE * 2
  await setCheckpoints(tables, depth)
  const deep = pathOf((await api.get(path)).link)
  note(`generating ${changes} changes in two orders`)
  await makeChanges(tables, changes)
  await setCheckpoints(tables, changes)
  await tables.control.execute(
    `INSERT INTO data_change (version, projection, key, from_ms, to_ms) VALUES (1, 'leaderboard-entry', '*', 0, 4291747200000)`
  )
  await api.refresh()
  const atStart = await walked(api, path, queries)
  const atDepth = await walked(api, deep, queries)
  const fromStart = quantile(atStart, 0.5)
  const detail = (times: readonly number[]) =>
    `${times.length} pages of ${PAGE}; p99 ${figure(quantile(times, 0.99))} ms`
  return [
    { what: 'a page of changes by cursor, from the start', measured: fromStart, unit: 'ms', detail: detail(atStart) },
    {
      what: `the same, ${figure(depth)} changes in`,
      measured: quantile(atDepth, 0.5),
      unit: 'ms',
      baseline: { what: 'from the start', measured: fromStart },
      target: { bound: 'at most', value: DEPTH_RATIO, of: 'ratio' },
      detail: detail(atDepth)
    }
  ]
}

/** Follows the feed page by page; returns the time of each page in ms. */
async function walked(api: ServedApi, first: string, queries: number): Promise<number[]> {
  const times: number[] = []
  let path = first
  for (let n = -WARM; n < queries; n += 1) {
    const { text, link, ms } = await api.get(path)
    if (JSON.parse(text).length !== PAGE) throw new Error(`${path} gave ${JSON.parse(text).length} changes`)
    path = pathOf(link)
    if (n >= 0) times.push(ms)
  }
  return times
}

async function setCheckpoints({ control }: ClickHouse, next: number): Promise<void> {
  await control.execute(
    `INSERT INTO checkpoint (name, epoch, partition, next)
     VALUES ('project:leaderboard-entry', 1, 0, ${next}), ('load:leaderboard-entry', 1, 0, ${next})`
  )
}

function pathOf(link: string): string {
  const path = /^<(.*)>; rel="next"$/.exec(link)?.[1]
  if (path === undefined) throw new Error(`expected a link to the next page, got "${link}"`)
  return path
}
