import { join } from 'node:path'
import type { ClickHouse } from '@gamenet/engines'
import { openFilledTables } from './filled-tables.js'
import { type Conditions, scaled } from './measurement.js'

/*
 * 20,000 boards with 1,000 times each, made by the engine itself as the projections leave them: 200 titles, 400,009 players
 * (a prime, so that a board's walk over them meets nobody twice), each on some fifty boards. Times lie between half a minute
 * and eleven minutes, about 32 to the millisecond.
 */

const BOARDS = 20_000
const BOARDS_A_TITLE = 100
const ENTRIES_A_BOARD = 1000
const PLAYERS = 400_009
const BOARDS_AN_INSERT = 2000

export type SearchRows = {
  readonly rows: number
  readonly titleIds: readonly string[]
  /** Names of the players from 0 on. */
  playerName(index: number): string
  readonly players: number
}

/** Opens tables that hold the rows, making them unless an earlier measurement of this run has. */
export async function openSearchRows(conditions: Conditions): Promise<{ tables: ClickHouse } & SearchRows> {
  const { directory, scale, note } = conditions
  const boards = scaled(BOARDS, scale, 200)
  const tables = await openFilledTables(join(directory, 'search-rows'), async (tables) => {
    note(`making ${boards * ENTRIES_A_BOARD} entries`)
    for (let first = 0; first < boards; first += BOARDS_AN_INSERT) {
      await fill(tables, first, Math.min(BOARDS_AN_INSERT, boards - first))
    }
  })
  return {
    tables,
    rows: boards * ENTRIES_A_BOARD,
    titleIds: Array.from({ length: Math.ceil(boards / BOARDS_A_TITLE) }, (_, n) => titleIdOf(n)),
    players: PLAYERS,
    playerName: (index) => `Player ${index.toString(16).padStart(6, '0')}`
  }
}

function titleIdOf(n: number): string {
  return (0x4d53_0000 + n).toString(16)
}

async function fill({ rebuild }: ClickHouse, first: number, count: number): Promise<void> {
  await rebuild.execute(`
    INSERT INTO leaderboard__0 (title_id, leaderboard_id, ts, name, listed, position)
    SELECT ${TITLE}, ${BOARD}, toDateTime64('2026-01-01 00:00:00', 3, 'UTC'), concat('Track ', toString(board)), true, 1
    FROM (SELECT number + ${first} AS board FROM numbers(${count}))`)
  await rebuild.execute(`
    INSERT INTO leaderboard_entry__0 (title_id, leaderboard_id, player, occurrence, player_key, is_gone, rank, place, rating,
      time_ms, ord, step, ts, version)
    SELECT ${TITLE}, ${BOARD}, name, 1, lower(name), false, place + 1, place, rating, time_ms, place * 4294967296, 1,
      toDateTime64('2026-01-02 00:00:00', 3, 'UTC'), 1
    FROM (
      SELECT board, place, concat('Player ', leftPad(lower(hex(toUInt32(player))), 6, '0')) AS name, time_ms,
        concat(toString(intDiv(time_ms, 60000)), ':', leftPad(toString(intDiv(time_ms, 1000) % 60), 2, '0'), '.', leftPad(toString(time_ms % 1000), 3, '0')) AS rating
      FROM (
        SELECT intDiv(number, ${ENTRIES_A_BOARD}) + ${first} AS board, number % ${ENTRIES_A_BOARD} AS place,
          (cityHash64(board, 'first') + place * (1 + cityHash64(board, 'stride') % ${PLAYERS - 1})) % ${PLAYERS} AS player,
          30000 + cityHash64(board, 'base') % 300000 AS base,
          toUInt32(base + intDiv(place * base, ${ENTRIES_A_BOARD})) AS time_ms
        FROM numbers(${count * ENTRIES_A_BOARD})
      )
    )`)
  const own = `
    FROM leaderboard_entry__0 AS e
    WHERE (e.title_id, e.leaderboard_id) IN (
      SELECT ${TITLE}, ${BOARD} FROM (SELECT number + ${first} AS board FROM numbers(${count}))
    )`
  await rebuild.execute(`
    INSERT INTO player_entry__0 (player_key, title_id, leaderboard_id, player, occurrence, is_gone, rank, place, rating, time_ms,
      ts, version)
    SELECT e.player_key, e.title_id, e.leaderboard_id, e.player, e.occurrence, e.is_gone, e.rank, e.place, e.rating,
      e.time_ms, e.ts, e.version ${own}`)
  await rebuild.execute(`
    INSERT INTO entry_time__0 (time_ms, title_id, leaderboard_id, player, occurrence, is_live, version)
    SELECT assumeNotNull(e.time_ms), e.title_id, e.leaderboard_id, e.player, e.occurrence, true, 1 ${own}`)
  await rebuild.execute(`INSERT INTO player__0 (player_key, player) SELECT DISTINCT e.player_key, e.player ${own}`)
}

const TITLE = `lower(hex(toUInt32(${0x4d53_0000} + intDiv(board, ${BOARDS_A_TITLE}))))`
const BOARD = `toUInt32(board % ${BOARDS_A_TITLE} + 1)`
