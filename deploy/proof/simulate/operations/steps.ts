import {
  BOARD_KEY,
  copyRows,
  type FoldProjection,
  type KeySlice,
  type KeyValues,
  makeRows,
  type Range,
  readBasis,
  readForFold,
  readKeys,
  readParts,
  readTouched,
  readWeights,
  storeRows,
  type TouchedKey
} from '@gamenet/projector/internals'
import { type Topic, topics } from '@gamenet/schemas'
import { liesIn } from '../tables/plain-folds.js'
import type { Row } from '../tables/replacing-table.js'
import { changing, type Implementation, inserting, partOfBlock, reading, type Seen } from './implementation.js'

/* The parts of steps: plain folds instead of SQL projections, and the reads of the fold of boards. */

export const steps: readonly Implementation[] = [
  changing(makeRows, (seen, [projection, { range }], share) => {
    const fold = seen.folds[projection.select] ?? seen.folds[projection.name]
    if (fold === undefined) throw new Error(`${projection.name} has no plain fold; add it to plain-folds.ts.`)
    const events = eventsIn(seen, projection.from, range)
    const rows = fold({ events, final: (table) => seen.final(table) })
    seen.written(projection.into).insert(rows.slice(0, Math.ceil(rows.length * share)))
  }),
  inserting(
    storeRows,
    (seen, _, table, block) => seen.insertBlock(table, block),
    ([projection, table, block], share) => [projection, table, partOfBlock(block, share)]
  ),
  changing(copyRows, (seen, [, copies], share) => {
    for (const [table, copy] of Object.entries(copies)) {
      const { rows } = seen.written(table)
      seen.written(copy).insert(rows.slice(0, Math.ceil(rows.length * share)))
    }
  }),
  reading(readTouched, (seen, { from, touches }, range) => {
    const keyOf = KEYS.get(touches.key)
    if (keyOf === undefined) throw new Error(`The simulator does not know the key ${touches.key}; add it to KEYS.`)
    const events = eventsIn(seen, from, range)
    const keys = new Map<string, { key: string; firstMs: number; lastMs: number }>()
    for (const event of events) {
      const key = keyOf(event)
      const ms = Number(event.observed_at)
      const { firstMs, lastMs } = keys.get(key) ?? { firstMs: ms, lastMs: ms }
      keys.set(key, { key, firstMs: Math.min(firstMs, ms), lastMs: Math.max(lastMs, ms) })
    }
    return { events: events.length, keys: [...keys.values()] }
  }),
  reading(
    readParts,
    (seen, { from }, range, size) => {
      const parts: { first: KeyValues; events: number }[] = []
      for (const { values, weight } of keysOf(eventsIn(seen, from, range))) {
        const last = parts.at(-1)
        if (last === undefined || last.events >= size) parts.push({ first: values, events: weight })
        else last.events += weight
      }
      return parts
    },
    () => true
  ),
  reading(
    readKeys,
    (seen, { from }, { range, slice }) => {
      if (slice === undefined) return keysOf(eventsIn(seen, from, range))
      return keysOf(seen.table('leaderboard_history').rows).filter(({ values }) => liesInSlice(values, slice))
    },
    (_, { slice }) => slice !== undefined
  ),
  reading(readWeights, (seen, _, keys) => {
    const rows = seen.table('leaderboard_history').rows
    return keys.flatMap(({ values }) => {
      const weight = rows.filter((row) => boardOf(row) === values.join('/')).length
      return weight === 0 ? [] : [{ values, weight, isApart: false }]
    })
  }),
  reading(readForFold, (seen, projection, { name }, keys) => {
    const read = BOARD_READS[name]
    if (read === undefined) throw new Error(`The simulator does not know what ${projection.name} reads as ${name}.`)
    const lines = read(seen, boardsOf(keys)).map((row) => `\n${JSON.stringify(row)}`)
    return new TextEncoder().encode(lines.length === 0 ? '[]' : `[${lines.join()}\n]`)
  }),
  reading(readBasis, (seen, _: FoldProjection, keys) => {
    const boards = boardsOf(keys)
    const rows = seen.final('leaderboard_history').filter((row) => boards.has(boardOf(row)))
    const newest = rows.reduce((most, { position }) => Math.max(most, Number(position)), 0)
    return JSON.stringify([{ rows: String(rows.length), newest: String(newest) }])
  })
]

/** The events of a range, including duplicates. */
function eventsIn(seen: Seen, { name }: Pick<Topic, 'name'>, range: Range): Row[] {
  if (!topics.some((topic) => topic.name === name)) throw new Error(`There is no topic ${name}.`)
  return seen.table(`event_${name.replaceAll('-', '_')}`).rows.filter((event) => liesIn(range, event))
}

/** The keys of `touches` of the projections that the simulator runs. */
const KEYS: ReadonlyMap<string, (event: Row) => string> = new Map([
  [BOARD_KEY, boardOf],
  ...['title_id', 'user_key', 'run_import_id', 'retracted_import_id'].map(
    (column) => [`e.${column}`, (event: Row) => String(event[column])] as const
  )
])

function liesInSlice(values: KeyValues, { from, to }: KeySlice): boolean {
  return (from === undefined || compareKeys(values, from) >= 0) && (to === undefined || compareKeys(values, to) < 0)
}

function compareKeys([title = '', board = 0]: KeyValues, [otherTitle = '', otherBoard = 0]: KeyValues): number {
  if (title !== otherTitle) return title < otherTitle ? -1 : 1
  return Number(board) - Number(otherBoard)
}

/** The keys of events or, since ever, of states. */
function keysOf(events: readonly Row[]): TouchedKey[] {
  const boards = new Map<string, { values: [string, number]; sinceMs: number; weight: number }>()
  for (const event of events) {
    const key = boardOf(event)
    const ms = Number(event.observed_at ?? 0)
    const before = boards.get(key)
    boards.set(key, {
      values: [String(event.title_id), Number(event.leaderboard_id)],
      sinceMs: Math.min(ms, before?.sinceMs ?? ms),
      weight: (before?.weight ?? 0) + 1
    })
  }
  return [...boards.values()].sort((a, b) => compareKeys(a.values, b.values))
}

type Board = { readonly titleId: string; readonly leaderboardId: number; readonly sinceMs: number }

function boardsOf(keys: readonly TouchedKey[]): Map<string, Board> {
  return new Map(
    keys.map(({ values: [titleId, leaderboardId], sinceMs }) => {
      const board = { titleId: String(titleId), leaderboardId: Number(leaderboardId), sinceMs }
      return [`${board.titleId}/${board.leaderboardId}`, board]
    })
  )
}

function boardOf({ title_id, leaderboard_id }: Row): string {
  return `${title_id}/${leaderboard_id}`
}

/** The reads of the fold of boards, by name. */
const BOARD_READS: Readonly<Record<string, (seen: Seen, boards: Map<string, Board>) => Row[]>> = {
  entries: entriesOf,
  records: (seen, boards) =>
    seen
      .final('record_history')
      .filter((row) => boards.has(boardOf(row)))
      .map((row) => ({ ...row, version: String(row.version) })),
  goals: (seen, boards) =>
    seen
      .final('rank_reached')
      .filter((row) => boards.has(boardOf(row)))
      .map(({ title_id, leaderboard_id, player_keys, goals, reached_at: reached_ms }) => {
        return { title_id, leaderboard_id, player_keys, goals, reached_ms }
      }),
  told: writtenChanges
}

function entriesOf(seen: Seen, boards: Map<string, Board>): Row[] {
  const entries = new Map<string, Map<string, Row[]>>()
  for (const row of seen.final('leaderboard_history')) {
    const board = boardOf(row)
    if (!boards.has(board)) continue
    const ofBoard = entries.get(board) ?? new Map<string, Row[]>()
    entries.set(board, ofBoard)
    const who = `${row.occurrence}/${row.player}`
    ofBoard.set(who, [...(ofBoard.get(who) ?? []), row])
  }
  return [...entries].flatMap(([key, ofBoard]) => {
    const board = boards.get(key)
    const players = [...ofBoard.values()]
      .map((all) => ({ first: all[0], firstMs: firstOf(all), states: wantedStates(all, board?.sinceMs ?? 0) }))
      .filter(({ states }) => states.length > 0)
    if (board === undefined || players.length === 0) return []
    return [
      {
        title_id: board.titleId,
        leaderboard_id: board.leaderboardId,
        since_ms: board.sinceMs,
        players: players.map(({ first }) => first?.player),
        occurrences: players.map(({ first }) => first?.occurrence),
        player_keys: players.map(({ first }) => first?.player_key),
        states: players.map(({ states }) => states.map(stateTuple)),
        first_ms: players.map(({ firstMs }) => firstMs)
      }
    ]
  })
}

/** Returns the first instant at which the entry was on the board; 0 without one. */
function firstOf(states: readonly Row[]): number {
  const there = states.filter(({ is_gone }) => is_gone !== true).map(({ ts }) => Number(ts))
  return there.length === 0 ? 0 : Math.min(...there)
}

/** Returns all states of a touched entry, but only the deciding states of another one, like the SQL statement. */
function wantedStates(states: readonly Row[], sinceMs: number): Row[] {
  const all = [...states].sort(byInstant)
  const last = all.at(-1)
  if (last === undefined || Number(last.ts) >= sinceMs) return all
  if (last.is_gone === true) return []
  const isMeasured = last.ord === null && last.stated_rank === null
  if (isMeasured || new Set(all.map(({ ts }) => ts)).size < all.length)
    return all.slice(all.findLastIndex((state) => state.is_gone) + 1)
  const run = all.findLastIndex(
    (state) =>
      state.time_ms !== last.time_ms ||
      (last.time_ms === null && state.rating !== last.rating) ||
      state.is_gone === true
  )
  const first = all[run + 1]
  return first === undefined || first === last ? [last] : [first, last]
}

function byInstant(a: Row, b: Row): number {
  const byState = Number(a.ts) - Number(b.ts) || Number(b.is_gone) - Number(a.is_gone)
  return byState || Number(a.epoch) - Number(b.epoch) || Number(a.offset) - Number(b.offset)
}

function stateTuple(state: Row): unknown[] {
  const { ts, epoch, partition, offset, is_gone, rating, time_ms, stated_rank, ord, step, details, is_ascending } =
    state
  return [ts, epoch, partition, offset, is_gone, rating, time_ms, stated_rank, ord, step, details, is_ascending]
}

function writtenChanges(seen: Seen, boards: Map<string, Board>): Row[] {
  const since = Math.min(...[...boards.values()].map(({ sinceMs }) => sinceMs))
  const players = new Map<string, Row[]>()
  for (const row of seen.final('leaderboard_change')) {
    const key = boardOf(row)
    if (boards.has(key) && Number(row.ts) >= since) players.set(key, [...(players.get(key) ?? []), row])
  }
  return [...players].map(([key, rows]) => {
    const { titleId, leaderboardId } = boards.get(key) ?? {}
    return { title_id: titleId, leaderboard_id: leaderboardId, changes: rows.map(changeTuple) }
  })
}

function changeTuple(row: Row): unknown[] {
  const { ts, epoch, partition, offset, player, player_key, occurrence } = row
  const { recorded_epoch, recorded_partition, recorded_offset } = row
  return [
    ...[ts, epoch, partition, offset],
    ...[recorded_epoch, recorded_partition, recorded_offset],
    ...[player, player_key, occurrence]
  ]
}
