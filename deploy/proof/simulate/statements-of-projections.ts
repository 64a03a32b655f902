import { projections } from '@gamenet/projector'
import {
  basisStatement,
  bound,
  type FoldProjection,
  type KeySlice,
  keysStatement,
  type Range,
  type SqlProjection,
  slicesStatement,
  stepStatement,
  touchedStatement
} from '@gamenet/projector/internals'
import { anyProjections } from './newer-program.js'
import { liesIn } from './plain-folds.js'
import type { Row } from './replacing-table.js'
import { plain } from './statement-names.js'
import type { Seen } from './table-set.js'

type Parameters = Readonly<Record<string, unknown>>

/** The range that a statement is bound to. */
export function rangeIn(parameters: Parameters): Range {
  const range: Stretch[] = []
  for (let n = 0; `epoch_${n}` in parameters; n += 1) {
    const value = (name: string) => Number(parameters[`${name}_${n}`])
    const offsets = parameters[`offsets_${n}`] as readonly number[] | undefined
    const stretch = { epoch: value('epoch'), partition: value('partition'), first: value('first'), next: value('next') }
    range.push(offsets === undefined ? stretch : { ...stretch, offsets })
  }
  return range
}

type Stretch = Range[number]

/** The projection whose step over a range a statement is: its text, but for the values bound to it, says so. */
export function stepIn(text: string, parameters: Parameters): SqlProjection | undefined {
  return remembered(steps, text, () => {
    const range = rangeIn(parameters)
    const slice = sliceIn(parameters)
    return anyProjections.find(
      (each): each is SqlProjection => each.form !== 'fold' && plain(stepStatement(each, range, { slice }).sql) === text
    )
  })
}

type Answer = (store: Seen, parameters: Parameters) => Row[]

/** The answer to a query of the runner about a range or about keys; undefined for other statements. */
export function answerAboutRange(text: string, parameters: Parameters): Answer | undefined {
  if (!('epoch_0' in parameters)) {
    const read = boardReads.find(([, statement]) => statement === text)?.[0]
    return read === undefined ? undefined : (store, given) => read(store, keysIn(given))
  }
  const range = rangeIn(parameters)
  for (const projection of projections) {
    const eventsIn = (store: Seen, given: Parameters) => {
      const table = store.table(`event_${projection.from.name.replaceAll('-', '_')}`)
      return table.rows.filter((event) => liesIn(rangeIn(given), event))
    }
    if (plain(touchedStatement(projection, range).sql) === text)
      return (store, given) => [touchedBy(eventsIn(store, given), projection.touches.key)]
    if (projection.form !== 'fold') continue
    if (plain(slicesStatement(projection, range, Number(parameters.slices)).sql) === text)
      return (store, given) => sliceSizes(eventsIn(store, given), Number(given.slices))
    if (plain(keysStatement(projection, range, sliceIn(parameters)).sql) === text)
      return (store, given) => keysOf(eventsIn(store, given).filter((event) => liesInSlice(event, given)))
  }
  return undefined
}

const steps = new Map<string, SqlProjection | undefined>()

/** Finding out takes the texts of all projections; there are few different ones. */
export function remembered<Value>(known: Map<string, Value>, sql: string, find: () => Value): Value {
  const value = known.get(sql) ?? find()
  known.set(sql, value)
  return value
}

function touchedBy(events: readonly Row[], expression: string): Row {
  const keys = new Map<string, [string, number, number]>()
  for (const event of events) {
    const key = keyOf(event, expression)
    const ms = Number(event.observed_at)
    const [, first, last] = keys.get(key) ?? [key, ms, ms]
    keys.set(key, [key, Math.min(first, ms), Math.max(last, ms)])
  }
  const all = [...keys.values()]
  const first_ms = Math.min(...all.map(([, first]) => first), Number.POSITIVE_INFINITY)
  const last_ms = Math.max(...all.map(([, , last]) => last), Number.NEGATIVE_INFINITY)
  return all.length === 0
    ? { events: '0', first_ms: '0', last_ms: '0', keys: [] }
    : { events: String(events.length), first_ms: String(first_ms), last_ms: String(last_ms), keys: all }
}

/** The value of a key's expression, as `touches` of the projections have it. */
function keyOf(event: Row, expression: string): string {
  const columns = expression.match(/e\.\w+/g) ?? []
  if (!/^(e\.\w+|concat\(e\.title_id, '\/', toString\(e\.leaderboard_id\)\))$/.test(expression))
    throw new Error(`The simulated tables do not know how ${expression} is computed.`)
  return columns.map((column) => event[column.slice(2)]).join('/')
}

function sliceIn({ slice, slices }: Parameters): KeySlice | undefined {
  return slices === undefined ? undefined : { n: Number(slice), of: Number(slices) }
}

/** The engine's own hash is another; each key lies in one slice all the same. */
export function liesInSlice(event: Row, { slice, slices }: Parameters): boolean {
  return slices === undefined || Number(event.leaderboard_id) % Number(slices) === slice
}

function sliceSizes(events: readonly Row[], slices: number): Row[] {
  return Array.from({ length: slices }, (_, slice) => events.filter((event) => liesInSlice(event, { slice, slices })))
    .map((found, n) => ({ n: String(n), events: String(found.length) }))
    .filter(({ events: count }) => count !== '0')
}

function keysOf(events: readonly Row[]): Row[] {
  const boards = new Map<string, { title_id: string; leaderboard_id: number; since: number; events: number }>()
  for (const event of events) {
    const key = boardOf(event)
    const ms = Number(event.observed_at)
    const before = boards.get(key)
    boards.set(key, {
      title_id: String(event.title_id),
      leaderboard_id: Number(event.leaderboard_id),
      since: Math.min(ms, before?.since ?? ms),
      events: (before?.events ?? 0) + 1
    })
  }
  return [...boards.values()]
    .sort(
      (a, b) => (a.title_id < b.title_id ? -1 : Number(a.title_id > b.title_id)) || a.leaderboard_id - b.leaderboard_id
    )
    .map(({ since, events: count, ...key }) => ({ ...key, since_ms: String(since), events: String(count) }))
}

type Board = { readonly titleId: string; readonly leaderboardId: number; readonly sinceMs: number }

function keysIn(parameters: Parameters): Map<string, Board> {
  const [titles, boards, since] = [parameters.title_id, parameters.leaderboard_id, parameters.since_ms] as unknown[][]
  return new Map(
    (titles ?? []).map((title, n) => {
      const board = { titleId: String(title), leaderboardId: Number(boards?.[n]), sinceMs: Number(since?.[n]) }
      return [`${board.titleId}/${board.leaderboardId}`, board]
    })
  )
}

function boardOf({ title_id, leaderboard_id }: Row): string {
  return `${title_id}/${leaderboard_id}`
}

type Read = (store: Seen, boards: Map<string, Board>) => Row[]

const boardProjection = projections.find(({ name }) => name === 'leaderboard-entry') as FoldProjection
/** The statement of a read, which is the same for any keys. */
const textOf = (sql: string) => plain(bound(boardProjection, sql, [{ values: ['', 0], sinceMs: 0, weight: 0 }]).sql)

/** What the fold of boards reads, as plain functions; by identity. */
const boardReads: readonly (readonly [Read, string])[] = [
  [weighed, textOf(boardProjection.weigh ?? '')],
  [entriesOf, textOf(boardProjection.reads.entries ?? '')],
  [recordsOf, textOf(boardProjection.reads.records ?? '')],
  [goalsOf, textOf(boardProjection.reads.goals ?? '')],
  [writtenChanges, textOf(boardProjection.readsWhenLate?.told ?? '')],
  [standing, textOf(basisStatement(boardProjection))]
]

function weighed(store: Seen, boards: Map<string, Board>): Row[] {
  const rows = store.table('leaderboard_history').rows
  return [...boards].flatMap(([key, { titleId, leaderboardId }]) => {
    const weight = rows.filter((row) => boardOf(row) === key).length
    return weight === 0 ? [] : [{ title_id: titleId, leaderboard_id: leaderboardId, weight: String(weight) }]
  })
}

function entriesOf(store: Seen, boards: Map<string, Board>): Row[] {
  const entries = new Map<string, Map<string, Row[]>>()
  for (const row of store.final('leaderboard_history')) {
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

/** The instant of its first entry on the board; 0 without one. */
function firstOf(states: readonly Row[]): number {
  const there = states.filter(({ is_gone }) => is_gone !== true).map(({ ts }) => Number(ts))
  return there.length === 0 ? 0 : Math.min(...there)
}

/** Of an entry that is touched all states; of another what decides: see the statement. */
function wantedStates(states: readonly Row[], sinceMs: number): Row[] {
  const all = [...states].sort(byInstant)
  const last = all.at(-1)
  if (last === undefined || Number(last.ts) >= sinceMs) return all
  if (last.is_gone === true) return []
  if (last.ord === null && last.stated_rank === null) return all.slice(all.findLastIndex((state) => state.is_gone) + 1)
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
  return Number(a.ts) - Number(b.ts) || Number(a.epoch) - Number(b.epoch) || Number(a.offset) - Number(b.offset)
}

function stateTuple(state: Row): unknown[] {
  const { ts, epoch, partition, offset, is_gone, rating, time_ms, stated_rank, ord, step, details } = state
  return [ts, epoch, partition, offset, is_gone, rating, time_ms, stated_rank, ord, step, details]
}

function recordsOf(store: Seen, boards: Map<string, Board>): Row[] {
  return store
    .final('record_history')
    .filter((row) => boards.has(boardOf(row)))
    .map((row) => ({ ...row, version: String(row.version) }))
}

function goalsOf(store: Seen, boards: Map<string, Board>): Row[] {
  return store
    .final('rank_reached')
    .filter((row) => boards.has(boardOf(row)))
    .map(({ title_id, leaderboard_id, player_keys, goals, reached_at: reached_ms }) => {
      return { title_id, leaderboard_id, player_keys, goals, reached_ms }
    })
}

function writtenChanges(store: Seen, boards: Map<string, Board>): Row[] {
  const since = Math.min(...[...boards.values()].map(({ sinceMs }) => sinceMs))
  const players = new Map<string, Row[]>()
  for (const row of store.final('leaderboard_change')) {
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

function standing(store: Seen, boards: Map<string, Board>): Row[] {
  const rows = store.final('leaderboard_history').filter((row) => boards.has(boardOf(row)))
  const newest = rows.reduce((most, { position }) => Math.max(most, Number(position)), 0)
  return [{ rows: String(rows.length), newest: String(newest) }]
}
