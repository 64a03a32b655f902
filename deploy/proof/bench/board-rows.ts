import { join } from 'node:path'
import type { ClickHouse } from '@gamenet/engines'
import { openFilledTables } from './filled-tables.js'
import { type Conditions, scaled } from './measurement.js'

/*
 * Boards of 1,000 entries with 20 states each, made by the engine itself in the read tables: 1,000 boards are 20 million
 * states. In addition ten million changes in both orders; a fiftieth of them is void.
 */

const BOARDS = 1000
export const BOARD_ENTRIES = 1000
const STATES = 20
const BOARDS_A_TITLE = 20
const FEED_ROWS = 10_000_000
const PARTS = 10
const FIRST_SECOND = Date.UTC(2022, 0, 1) / 1000
/** Seconds between two states of an entry. */
const STATE_SECONDS = 5_000_000
/** Seconds between two changes. */
const CHANGE_SECONDS = 10

export type BoardRows = {
  readonly boards: number
  readonly states: number
  readonly changes: number
  /** Between the first and the last state of every entry, milliseconds since 1970. */
  readonly fromMs: number
  readonly toMs: number
}

/** The title of a board, boards counted from 0. */
export function titleOfBoard(board: number): string {
  return (FIRST_TITLE + Math.floor(board / BOARDS_A_TITLE)).toString(16)
}
const FIRST_TITLE = 0x4d53_07d0
const TITLE_SQL = `lower(hex(toUInt32(${FIRST_TITLE} + intDiv(board, ${BOARDS_A_TITLE}))))`

/** Opens tables of boards, making their rows unless an earlier measurement of this run has. The feed is left empty. */
export async function openBoardRows(conditions: Conditions): Promise<{ tables: ClickHouse } & BoardRows> {
  const { directory, scale, note } = conditions
  const boards = scaled(BOARDS, scale, PARTS)
  const changes = scaled(FEED_ROWS, scale, 100_000)
  const tables = await openFilledTables(join(directory, 'board-rows'), async (tables) => {
    note(`making ${boards * BOARD_ENTRIES * STATES} states of entries`)
    const step = Math.ceil(boards / PARTS)
    for (let first = 0; first < boards; first += step) {
      await tables.rebuild.execute(historySql(first, Math.min(step, boards - first)))
    }
    await tables.rebuild.execute(entriesSql(boards))
    await tables.rebuild.execute(descriptionsSql(boards))
  })
  const fromMs = (FIRST_SECOND + STATE_SECONDS) * 1000
  const toMs = (FIRST_SECOND + (STATES - 1) * STATE_SECONDS) * 1000
  return { tables, boards, states: boards * BOARD_ENTRIES * STATES, changes, fromMs, toMs }
}

/** Makes the changes in both orders. */
export async function makeChanges({ rebuild }: ClickHouse, changes: number): Promise<void> {
  const step = Math.ceil(changes / PARTS)
  for (const table of ['leaderboard_feed', 'leaderboard_change']) {
    for (let first = 0; first < changes; first += step) {
      await rebuild.execute(changesSql(table, first, Math.min(step, changes - first)))
    }
  }
}

/** Each entry improves 20 times; every tenth one leaves the board for a while. */
function historySql(first: number, boards: number): string {
  const perBoard = BOARD_ENTRIES * STATES
  return `
    INSERT INTO leaderboard_history__0 (title_id, leaderboard_id, player, occurrence, ts, content, player_key, is_gone, rating,
      time_ms, ord, step, details, epoch, partition, offset)
    SELECT ${TITLE_SQL}, board, concat('Player ', toString(cityHash64(board, entry) % 5000), '-', toString(entry)) AS name, 1,
      toDateTime64(${FIRST_SECOND} + nth * ${STATE_SECONDS} + cityHash64(number) % ${STATE_SECONDS}, 3, 'UTC'),
      cityHash64(number), lower(name), entry % 10 = 0 AND nth = 7, toString(2147483647 - time), time,
      toInt64(entry) * 4294967296, 1, '', 1, 0, number
    FROM (
      SELECT number, intDiv(number, ${perBoard}) AS board, intDiv(number % ${perBoard}, ${STATES}) AS entry,
        number % ${STATES} AS nth, toUInt32(60000 + entry * 20 + ${STATES} - nth) AS time
      FROM numbers(${first * perBoard}, ${boards * perBoard}))`
}

function entriesSql(boards: number): string {
  return `
    INSERT INTO leaderboard_entry__0 (title_id, leaderboard_id, player, occurrence, player_key, is_gone, rank, place, rating,
      time_ms, ord, step, details, ts, version)
    SELECT ${TITLE_SQL}, board, concat('Player ', toString(cityHash64(board, entry) % 5000), '-', toString(entry)) AS name, 1, lower(name), false,
      entry + 1, entry, toString(2147483647 - time), time, toInt64(entry) * 4294967296, 1, '',
      toDateTime64(${FIRST_SECOND}, 3, 'UTC'), 1
    FROM (
      SELECT intDiv(number, ${BOARD_ENTRIES}) AS board, number % ${BOARD_ENTRIES} AS entry,
        toUInt32(60000 + entry * 20) AS time
      FROM numbers(${boards * BOARD_ENTRIES}))`
}

function descriptionsSql(boards: number): string {
  return `
    INSERT INTO leaderboard__0 (title_id, leaderboard_id, ts, name, listed, position)
    SELECT ${TITLE_SQL}, board, toDateTime64(${FIRST_SECOND}, 3, 'UTC'), concat('Board ', toString(board)), true, board
    FROM (SELECT number AS board FROM numbers(${boards}))`
}

function changesSql(table: string, first: number, count: number): string {
  return `
    INSERT INTO ${table} (recorded_epoch, recorded_partition, recorded_offset, epoch, partition, offset, ts, title_id,
      leaderboard_id, is_change, change, player, player_key, occurrence, previous_rank, new_rank, previous_rating, new_rating,
      previous_time_ms, new_time_ms, is_time, version)
    SELECT 1, 0, number, 1, 0, number, toDateTime64(${FIRST_SECOND} + number * ${CHANGE_SECONDS}, 3, 'UTC'), ${TITLE_SQL},
      board, number % 50 != 0, 'updated', concat('Player ', toString(cityHash64(number) % 5000000)) AS name, lower(name), 1, 9,
      8, '2147421302', '2147421303', 62345, 62344, true, 1
    FROM (SELECT number, cityHash64(number) % ${BOARDS} AS board FROM numbers(${first}, ${count}))`
}
