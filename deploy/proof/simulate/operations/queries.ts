import { recordedChanges, recordedRetractions, recordedTitleCounts, recordingEvents } from '@gamenet/api/internals'
import { BOARD_STATES, KNOWN_LISTS, LAST_BOARD, TITLES_WITH_BOARDS } from '@gamenet/ingest/internals'
import type { ReadTable, Row } from '../tables/replacing-table.js'

/* The queries of the API and of ingest, which their packages export as values. */

type Seen = { table(name: string): ReadTable; final(name: string): Row[] }
type Parameters = Readonly<Record<string, unknown>>
type Query = (seen: Seen, parameters: Parameters) => Row[]

/** No filter: all changes. */
export const ALL_CHANGES = {
  titleId: null,
  leaderboardId: null,
  playerKey: null,
  changeType: null,
  sinceMs: null,
  untilMs: null
}

/** The queries as plain functions, by their SQL. */
export const queries: ReadonlyMap<string, Query> = new Map([
  [recordedChanges(ALL_CHANGES).sql, recorded],
  [recordedTitleCounts.sql, titleCounts],
  [recordedRetractions.sql, undos],
  [recordingEvents.sql, recordings],
  [BOARD_STATES, boardStates],
  [LAST_BOARD, lastBoard],
  [KNOWN_LISTS, knownLists],
  [TITLES_WITH_BOARDS, titles]
])

function boardStates(seen: Seen, { titleIds, leaderboardIds }: Parameters): Row[] {
  const [titles_, boards] = [titleIds as string[], leaderboardIds as number[]]
  return titles_.flatMap((titleId, n) => {
    const leaderboardId = boards[n]
    const rows = seen
      .table('leaderboard_entry')
      .rows.filter((row) => row.title_id === titleId && row.leaderboard_id === leaderboardId)
    if (rows.length === 0) return []
    const version = String(Math.max(...rows.map((row) => Number(row.version))))
    return [{ titleId, leaderboardId, version, newestMs: String(Math.max(...rows.map(({ ts }) => Number(ts)))) }]
  })
}

function lastBoard(seen: Seen, { titleId, leaderboardId }: Parameters): Row[] {
  return seen
    .final('leaderboard_entry')
    .filter((row) => row.title_id === titleId && row.leaderboard_id === leaderboardId && row.is_gone !== true)
    .map(({ player: playerName, occurrence, rating, time_ms: timeMs, ord: order, step, details }) => {
      return { playerName, occurrence, rating, timeMs, order, step, details }
    })
}

function knownLists(seen: Seen, { titleIds }: Parameters): Row[] {
  const newest = new Map<string, Row>()
  for (const row of seen.table('leaderboard').rows) {
    if (!(titleIds as string[]).includes(String(row.title_id))) continue
    const key = `${row.title_id}/${row.leaderboard_id}`
    const before = newest.get(key)
    const isNewer =
      before === undefined ||
      Number(row.ts) > Number(before.ts) ||
      (row.ts === before.ts && Number(row.position) >= Number(before.position))
    if (isNewer) newest.set(key, row)
  }
  return [...newest.values()].map(({ title_id, leaderboard_id, name, listed, ts }) => {
    return { titleId: title_id, leaderboardId: leaderboard_id, name, listed, observedAtMs: String(ts) }
  })
}

/** Every simulated title has boards, and none departs. */
function titles(seen: Seen): Row[] {
  const ids = seen.table('event_title').rows.map(({ title_id }) => String(title_id))
  return [...new Set(ids)].sort().map((titleId) => ({ titleId, isDeparted: 0 }))
}

function recorded(seen: Seen, parameters: Parameters): Row[] {
  const start = ['recordedOffset', 'epoch', 'partition', 'offset'].map((name) => Number(parameters[name]))
  const placeOf = (row: Row) => [row.recorded_offset, row.epoch, row.partition, row.offset].map(Number)
  return seen
    .final('leaderboard_feed')
    .filter(
      (row) =>
        row.recorded_epoch === parameters.recordedEpoch &&
        row.recorded_partition === parameters.recordedPartition &&
        Number(row.recorded_offset) < Number(parameters.endOffset) &&
        compare(placeOf(row), start) >= 0 &&
        row.is_change === true
    )
    .sort((a, b) => compare(placeOf(a), placeOf(b)))
    .slice(0, Number(parameters.limit))
    .map(changeOf)
}

/** The rows of a part of an event table; an unmerged duplicate is returned twice. */
function eventsIn(seen: Seen, table: string, parameters: Parameters): Row[] {
  const { recordedEpoch, recordedPartition, firstOffset, endOffset } = parameters
  return seen
    .table(table)
    .rows.filter(
      ({ epoch, partition, offset }) =>
        epoch === recordedEpoch &&
        partition === recordedPartition &&
        Number(offset) >= Number(firstOffset) &&
        Number(offset) < Number(endOffset)
    )
    .sort((a, b) => Number(a.offset) - Number(b.offset))
}

const eventOf = ({ offset, observed_at: atMs, recorded_at: knownMs }: Row) => ({ offset, atMs, knownMs })

function titleCounts(seen: Seen, parameters: Parameters): Row[] {
  return eventsIn(seen, 'event_title_count', parameters)
    .slice(0, Number(parameters.limit))
    .map((row) => ({
      ...eventOf(row),
      ...{ titleId: row.title_id, online: row.online, sessions: row.sessions ?? null },
      lobbyPlayers: row.lobby_players ?? null
    }))
}

function undos(seen: Seen, parameters: Parameters): Row[] {
  return eventsIn(seen, 'event_import_retraction', parameters)
    .filter(({ topic }) => (parameters.topics as string[]).includes(String(topic)))
    .slice(0, Number(parameters.limit))
    .map((row) => ({ ...eventOf(row), retractedImportId: row.retracted_import_id, topic: row.topic }))
}

function recordings(seen: Seen, { epoch, partition, offsets }: Parameters): Row[] {
  return seen
    .table('event_leaderboard_entry')
    .rows.filter(
      (row) => row.epoch === epoch && row.partition === partition && (offsets as number[]).includes(Number(row.offset))
    )
    .map(eventOf)
}

function compare(a: readonly number[], b: readonly number[]): number {
  for (const [n, value] of a.entries()) if (value !== b[n]) return value - (b[n] ?? 0)
  return 0
}

function changeOf(row: Row): Row {
  return {
    ...{ recordedOffset: row.recorded_offset, epoch: row.epoch, partition: row.partition, offset: row.offset },
    ...{ atMs: row.ts, titleId: row.title_id, leaderboardId: row.leaderboard_id, changeType: row.change },
    ...{ playerName: row.player, previousRank: row.previous_rank, newRank: row.new_rank },
    ...{ previousRating: row.previous_rating, newRating: row.new_rating, previousTimeMs: row.previous_time_ms },
    ...{ newTimeMs: row.new_time_ms, isTime: row.is_time }
  }
}
