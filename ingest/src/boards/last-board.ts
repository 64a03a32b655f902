import { boardKey, type ReadTables } from '@gamenet/schemas'
import type { KnownEntry } from './diff-board.js'

/** The state of a whole board in the tables. */
export type BoardState = {
  /** Rises with every event of the board in the tables. */
  readonly version: string
  /** Instant of its newest change, milliseconds since 1970. */
  readonly newestMs: number
}

export type BoardId = { readonly titleId: string; readonly leaderboardId: number }

/** The states of boards. */
export const BOARD_STATES = `
  SELECT e.title_id AS titleId, e.leaderboard_id AS leaderboardId, max(e.version) AS version,
    toUnixTimestamp64Milli(max(e.ts)) AS newestMs
  FROM {leaderboard_entry: Identifier} AS e
  WHERE (e.title_id, e.leaderboard_id)
    IN (SELECT arrayJoin(arrayZip({titleIds: Array(String)}, {leaderboardIds: Array(UInt32)})))
  GROUP BY e.title_id, e.leaderboard_id`

/** The entries that are on a board. */
export const LAST_BOARD = `
  SELECT e.player AS playerName, e.occurrence AS occurrence, e.rating AS rating, e.time_ms AS timeMs,
    toFloat64(e.ord) AS order, toFloat64(e.step) AS step, e.details AS details
  FROM {leaderboard_entry: Identifier} AS e FINAL
  WHERE e.title_id = {titleId: String} AND e.leaderboard_id = {leaderboardId: UInt32} AND NOT e.is_gone`

/** Reads the states of the boards that the tables contain, by {@link boardKey}. */
export async function boardStates(
  tables: ReadTables,
  boards: readonly BoardId[],
  signal: AbortSignal
): Promise<Map<string, BoardState>> {
  if (boards.length === 0) return new Map()
  const rows = await tables.rows(
    BOARD_STATES,
    {
      titleIds: boards.map(({ titleId }) => titleId),
      leaderboardIds: boards.map(({ leaderboardId }) => leaderboardId)
    },
    { signal }
  )
  return new Map(
    rows.map((row) => [
      boardKey({ titleId: String(row.titleId), leaderboardId: Number(row.leaderboardId) }),
      { version: String(row.version), newestMs: Number(row.newestMs) }
    ])
  )
}

/** Reads the entries of a board from the tables, without those that left. */
export async function lastBoard(
  tables: ReadTables,
  { titleId, leaderboardId }: BoardId,
  signal: AbortSignal
): Promise<KnownEntry[]> {
  const rows = await tables.rows(LAST_BOARD, { titleId, leaderboardId }, { signal })
  return (rows as StoredEntry[]).map(({ details, ...entry }) =>
    details === '' ? entry : { ...entry, details: JSON.parse(details) }
  )
}

/** Rows are not validated one by one: a board has up to 100,000, and the statement defines their types. */
type StoredEntry = Omit<KnownEntry, 'details'> & { readonly details: string }
