import type { ClickHouse } from '@gamenet/engines'
import { boardOf, type EntryEvent, historyOf, type RankedEntry } from '@gamenet/engines/testing'
import { nameKey } from '@gamenet/schemas'

/** The rank of a player on a board, valid from an instant on. */
export type Stand = {
  readonly board: string
  readonly title: string
  readonly rank: number
  readonly at: number
  readonly entries: number
  /** Another player has the same rank. */
  readonly isShared: boolean
}

/** Cache: boards with the same number of events are not computed again. */
const known = new Map<string, { readonly events: number; readonly stands: ReadonlyMap<string, readonly Stand[]> }>()

/** Returns the ranks of all players on all boards, by player, computed from the events, instant by instant. */
export async function standsByPlayer(tables: ClickHouse): Promise<Map<string, Stand[]>> {
  const rows = await tables.readers.rows(
    `SELECT e.title_id AS title, e.leaderboard_id AS id, e.player AS player, e.occurrence AS occurrence,
       toUnixTimestamp64Milli(e.observed_at) AS ms, e.position AS position, e.change AS change, e.rating AS rating,
       e.time_ms AS time_ms
     FROM event_leaderboard_entry AS e FINAL ORDER BY e.position`,
    {}
  )
  const boards = new Map<string, EntryEvent[]>()
  for (const row of rows) {
    const board = `${row.title}/${row.id}`
    boards.set(board, [...(boards.get(board) ?? []), eventOf(row)])
  }
  const byPlayer = new Map<string, Stand[]>()
  for (const [board, events] of boards) {
    const before = known.get(board)
    const stands = before?.events === events.length ? before.stands : standsOf(board, historyOf(events))
    known.set(board, { events: events.length, stands })
    for (const [player, of] of stands) byPlayer.set(player, [...(byPlayer.get(player) ?? []), ...of])
  }
  return byPlayer
}

function eventOf(row: Record<string, unknown>): EntryEvent {
  return {
    playerName: String(row.player),
    occurrence: Number(row.occurrence),
    ms: Number(row.ms),
    position: Number(row.position),
    isGone: row.change === 'removed',
    rating: String(row.rating),
    timeMs: row.time_ms === null ? null : Number(row.time_ms),
    statedRank: null,
    order: null,
    step: null
  }
}

function standsOf(board: string, history: readonly EntryEvent[]): Map<string, Stand[]> {
  const [title = ''] = board.split('/')
  const stands = new Map<string, Stand[]>()
  for (const at of new Set(history.map(({ ms }) => ms))) {
    const shown = boardOf(history, at)
    for (const { rank, event } of shown) {
      const player = nameKey(event.playerName)
      const stand = { board, title, rank, at, entries: shown.length, isShared: isShared(shown, rank, player) }
      const of = stands.get(player) ?? []
      const last = of.at(-1)
      const isSame = last?.rank === rank && last.entries === stand.entries && last.isShared === stand.isShared
      if (!isSame) stands.set(player, [...of, stand])
    }
  }
  return stands
}

function isShared(shown: readonly RankedEntry[], rank: number, player: string): boolean {
  return shown.some((each) => each.rank === rank && nameKey(each.event.playerName) !== player)
}
