import { boardKey } from '@gamenet/schemas'
import type { ColumnTypes } from '../rows/row-writer.js'
import { type FoldedBoard, foldBoard, type RankedChange } from './board-fold.js'
import type { Reached } from './board-goals.js'
import { compareStates, type Entry, type Position, type State } from './board-history.js'
import type { Reign } from './board-records.js'
import type { AnswerRow, FoldFunction, WriteRow } from './fold.js'

/** A row of a state: instant, position, gone, rating, time, rank, order, step, details, ascending. */
type StateRow = readonly [
  ms: number,
  epoch: number,
  partition: number,
  offset: number,
  isGone: boolean,
  rating: string,
  timeMs: number | null,
  statedRank: number | null,
  order: number | null,
  step: number | null,
  details: string,
  isAscending: boolean
]

type BoardRow = {
  readonly title_id: string
  readonly leaderboard_id: number
  readonly since_ms: number
  readonly players: readonly string[]
  readonly occurrences: readonly number[]
  readonly player_keys: readonly string[]
  readonly states: readonly (readonly StateRow[])[]
  readonly first_ms: readonly number[]
}

type RecordRow = {
  readonly players: readonly string[]
  readonly occurrences: readonly number[]
  readonly ratings: readonly string[]
  readonly times_ms: readonly (number | null)[]
  readonly set_at: readonly number[]
  readonly from_at: readonly number[]
  readonly to_at: readonly (number | null)[]
  readonly version: string
}

type GoalsRow = {
  readonly player_keys: readonly string[]
  readonly goals: readonly number[]
  readonly reached_ms: readonly number[]
}

/** A row of a published change: instant, position, position of recording, player. */
type ChangeRow = readonly [
  ms: number,
  epoch: number,
  partition: number,
  offset: number,
  recordedEpoch: number,
  recordedPartition: number,
  recordedOffset: number,
  player: string,
  playerKey: string,
  occurrence: number
]

const INSTANT = `DateTime64(3, 'UTC')`

const CHANGE_TYPES: ColumnTypes = {
  ts: INSTANT,
  title_id: 'LowCardinality(String)',
  leaderboard_id: 'UInt32',
  epoch: 'UInt16',
  partition: 'UInt16',
  offset: 'UInt64',
  recorded_epoch: 'UInt16',
  recorded_partition: 'UInt16',
  recorded_offset: 'UInt64',
  is_change: 'Bool',
  change: 'LowCardinality(String)',
  player: 'String',
  player_key: 'String',
  occurrence: 'UInt16',
  previous_rank: 'Nullable(Int64)',
  new_rank: 'Nullable(Int64)',
  previous_rating: 'Nullable(String)',
  new_rating: 'Nullable(String)',
  previous_time_ms: 'Nullable(UInt32)',
  new_time_ms: 'Nullable(UInt32)',
  is_time: 'Bool',
  version: 'UInt64'
}

/** The tables of boards, in the order of writing. */
export const BOARD_TABLES = {
  leaderboard_entry: {
    title_id: 'LowCardinality(String)',
    leaderboard_id: 'UInt32',
    player: 'String',
    occurrence: 'UInt16',
    player_key: 'String',
    is_gone: 'Bool',
    rank: 'Int64',
    place: 'UInt32',
    rating: 'String',
    time_ms: 'Nullable(UInt32)',
    stated_rank: 'Nullable(Int32)',
    ord: 'Nullable(Int64)',
    step: 'Nullable(Int64)',
    details: 'String',
    first_at: INSTANT,
    ts: INSTANT,
    version: 'UInt64'
  },
  leaderboard_change: CHANGE_TYPES,
  leaderboard_feed: CHANGE_TYPES,
  rank_reached: {
    title_id: 'LowCardinality(String)',
    leaderboard_id: 'UInt32',
    player_keys: 'Array(String)',
    goals: 'Array(UInt8)',
    reached_at: `Array(${INSTANT})`,
    version: 'UInt64'
  },
  record_history: {
    title_id: 'LowCardinality(String)',
    leaderboard_id: 'UInt32',
    players: 'Array(String)',
    occurrences: 'Array(UInt16)',
    ratings: 'Array(String)',
    times_ms: 'Array(Nullable(UInt32))',
    set_at: `Array(${INSTANT})`,
    from_at: `Array(${INSTANT})`,
    to_at: `Array(Nullable(${INSTANT}))`,
    version: 'UInt64'
  }
} as const satisfies Readonly<Record<string, ColumnTypes>>

/** A board while its rows are written. */
type Written = {
  readonly titleId: string
  readonly leaderboardId: number
  readonly version: bigint
  readonly write: WriteRow
}

/** Folds boards from their earliest touched instant to their entries, changes and reigns. */
export const foldLeaderboardEntry: FoldFunction = ({ entries = [], records = [], goals = [], told = [] }, write) => {
  const recordOf = byBoard(records)
  const goalsOf = byBoard(goals)
  const storedChangesOf = byBoard(told)
  for (const row of entries) {
    // The statement of the projection returns these columns.
    const board = row as BoardRow
    const record = recordOf(row) as RecordRow | undefined
    const known = entriesOf(board)
    const before = {
      reigns: record === undefined ? [] : reignsOf(record),
      reached: reachedOf(goalsOf(row) as GoalsRow | undefined)
    }
    const folded = foldBoard(known, board.since_ms, before)
    const version = newestOf(known, BigInt(record?.version ?? 0))
    const written = { titleId: board.title_id, leaderboardId: board.leaderboard_id, version, write }
    writeEntries(written, known, folded)
    voidMovedChanges(
      written,
      folded.changes,
      board.since_ms,
      (storedChangesOf(row)?.changes ?? []) as readonly ChangeRow[]
    )
    for (const change of folded.changes) writeChange(written, known, change)
    writeReached(written, folded.reached)
    writeRecord(written, folded.reigns)
  }
  return undefined
}

/** Folds all states of a board, in the columns of the read `entries`, to its row of `record_history`. */
export function foldRecords(board: AnswerRow): AnswerRow {
  let record: AnswerRow = {}
  foldLeaderboardEntry({ entries: [{ ...board, since_ms: 0 }] }, (table, values) => {
    if (table !== 'record_history') return
    record = Object.fromEntries(Object.keys(BOARD_TABLES.record_history).map((column, n) => [column, values[n]]))
  })
  return record
}

function byBoard(rows: Iterable<AnswerRow>): (board: AnswerRow) => AnswerRow | undefined {
  const keyOf = ({ title_id, leaderboard_id }: AnswerRow) =>
    boardKey({ titleId: String(title_id), leaderboardId: Number(leaderboard_id) })
  const found = new Map<string, AnswerRow>()
  for (const row of rows) found.set(keyOf(row), row)
  return (board) => found.get(keyOf(board))
}

function entriesOf({ players, occurrences, player_keys, states, first_ms, since_ms }: BoardRow): Entry[] {
  return players.map((playerName, entry) => {
    const occurrence = occurrences[entry] ?? 1
    const history = (states[entry] ?? []).map(
      ([
        ms,
        epoch,
        partition,
        offset,
        isGone,
        rating,
        timeMs,
        statedRank,
        order,
        step,
        details,
        isAscending
      ]): State => ({
        entry,
        playerName,
        occurrence,
        ms,
        epoch,
        partition,
        offset,
        isGone,
        rating,
        timeMs,
        isAscending,
        statedRank,
        order,
        step,
        details
      })
    )
    history.sort(compareStates)
    const first = history.findIndex(({ ms }) => ms >= since_ms)
    return {
      playerName,
      occurrence,
      playerKey: player_keys[entry] ?? '',
      states: history,
      firstMs: first_ms[entry] ?? 0,
      first: first < 0 ? history.length : first
    }
  })
}

function reignsOf({ players, occurrences, ratings, times_ms, set_at, from_at, to_at }: RecordRow): Reign[] {
  return players.map((playerName, n) => ({
    playerName,
    occurrence: occurrences[n] ?? 1,
    rating: ratings[n] ?? '',
    timeMs: times_ms[n] ?? null,
    setAt: set_at[n] ?? 0,
    fromAt: from_at[n] ?? 0,
    toAt: to_at[n] ?? null
  }))
}

function reachedOf(row: GoalsRow | undefined): Reached[] {
  if (row === undefined) return []
  const { player_keys, goals, reached_ms } = row
  return player_keys.map((playerKey, n) => ({ playerKey, goal: goals[n] ?? 0, atMs: reached_ms[n] ?? 0 }))
}

/** Returns the newest position of the board's events; never lower than a stored one. */
function newestOf(entries: readonly Entry[], before: bigint): bigint {
  let epoch = 0
  let offset = 0
  for (const { states } of entries) {
    for (const state of states) {
      if (state.epoch < epoch || (state.epoch === epoch && state.offset <= offset)) continue
      epoch = state.epoch
      offset = state.offset
    }
  }
  const newest = (BigInt(epoch) << 48n) | BigInt(offset)
  return newest > before ? newest : before
}

function writeEntries(
  { titleId, leaderboardId, version, write }: Written,
  entries: readonly Entry[],
  { present, gone }: FoldedBoard
): void {
  const writeOne = (state: State, rank: number, place: number) => {
    const { playerName, occurrence, isGone, rating, timeMs, statedRank, order, step, details, ms } = state
    const { playerKey = '', firstMs = 0 } = entries[state.entry] ?? {}
    const player = [titleId, leaderboardId, playerName, occurrence, playerKey]
    const shown = [isGone, rank, place, rating, timeMs, statedRank, order, step, details]
    write('leaderboard_entry', [...player, ...shown, firstMs, ms, version])
  }
  for (const [place, { entry, rank }] of present.entries()) writeOne(entry, rank, place)
  for (const state of gone) writeOne(state, 0, 0)
}

/** Writes a change in the order of time, and so, by the fold's `copies`, in that of the feed. */
function writeChange(
  { titleId, leaderboardId, version, write }: Written,
  entries: readonly Entry[],
  { state, before, change, recorded, previousRank, newRank }: RankedChange
): void {
  const previous = change === undefined || change === 'new' ? undefined : before
  const now = change === undefined || change === 'removed' ? undefined : state
  write('leaderboard_change', [
    state.ms,
    titleId,
    leaderboardId,
    state.epoch,
    state.partition,
    state.offset,
    recorded.epoch,
    recorded.partition,
    recorded.offset,
    change !== undefined,
    change ?? '',
    state.playerName,
    entries[state.entry]?.playerKey ?? '',
    state.occurrence,
    previousRank,
    newRank,
    previous?.rating ?? null,
    now?.rating ?? null,
    previous?.timeMs ?? null,
    now?.timeMs ?? null,
    typeof (now ?? previous)?.timeMs === 'number',
    version
  ])
}

/** Voids published changes whose position of recording has moved: in the feed only, unless their event is gone. */
function voidMovedChanges(
  { titleId, leaderboardId, version, write }: Written,
  changes: readonly RankedChange[],
  sinceMs: number,
  stored: readonly ChangeRow[]
): void {
  if (stored.length === 0) return
  const placeOf = (ms: number, at: Position, recorded: Position) =>
    `${ms}/${at.epoch}/${at.offset}/${recorded.epoch}/${recorded.offset}`
  const now = new Set(changes.map(({ state, recorded }) => placeOf(state.ms, state, recorded)))
  const eventsNow = new Set(changes.map(({ state }) => `${state.ms}/${state.epoch}/${state.offset}`))
  for (const [ms, epoch, partition, offset, ...rest] of stored) {
    const [recordedEpoch, recordedPartition, recordedOffset, playerName, playerKey, occurrence] = rest
    const at = { epoch, partition, offset }
    const recorded = { epoch: recordedEpoch, partition: recordedPartition, offset: recordedOffset }
    if (ms < sinceMs || now.has(placeOf(ms, at, recorded))) continue
    const place = [epoch, partition, offset, recordedEpoch, recordedPartition, recordedOffset]
    const what = [false, '', playerName, playerKey, occurrence, null, null, null, null, null, null, false]
    const isEventGone = !eventsNow.has(`${ms}/${epoch}/${offset}`)
    const table = isEventGone ? 'leaderboard_change' : 'leaderboard_feed'
    write(table, [ms, titleId, leaderboardId, ...place, ...what, version])
  }
}

function writeReached({ titleId, leaderboardId, version, write }: Written, reached: readonly Reached[]): void {
  const lists = [
    reached.map(({ playerKey }) => playerKey),
    reached.map(({ goal }) => goal),
    reached.map(({ atMs }) => atMs)
  ]
  write('rank_reached', [titleId, leaderboardId, ...lists, version])
}

function writeRecord({ titleId, leaderboardId, version, write }: Written, reigns: readonly Reign[]): void {
  const lists = [
    reigns.map(({ playerName }) => playerName),
    reigns.map(({ occurrence }) => occurrence),
    reigns.map(({ rating }) => rating),
    reigns.map(({ timeMs }) => timeMs),
    reigns.map(({ setAt }) => setAt),
    reigns.map(({ fromAt }) => fromAt),
    reigns.map(({ toAt }) => toAt)
  ]
  write('record_history', [titleId, leaderboardId, ...lists, version])
}
