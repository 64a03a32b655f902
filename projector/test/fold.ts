import { type Rollup, rollupsOf } from '@gamenet/engines/testing'
import {
  boardKey,
  decodeEvent,
  type ImportAdvanced,
  type LeaderboardDescribed,
  type LeaderboardEntryChanged,
  millisecondsOf,
  type NetworkCounted,
  nameKey,
  type ScrapeRan,
  type TitleCounted,
  type TitleDescribed,
  type TitleStatusChanged,
  topics
} from '@gamenet/schemas'
import type { Tables } from '../src/index.js'
import { type PlacedEntry, type PlainBoard, type PlainState, plainBoard } from './board-model.js'
import type { MemoryLog } from './memory-log.js'

/** One row of a read table: its key, whose change it is (`key`, at `ms`), and all its values as text. */
export type Row = { readonly id: string; readonly key: string; readonly ms: number; readonly values: string }

/** Every read table, by its name with hyphens, rows by id. */
export type RowsByTable = ReadonlyMap<string, ReadonlyMap<string, Row>>

const HOUR = 3_600_000
const DAY = 24 * HOUR

type Placed<Event> = {
  readonly event: Event
  readonly isImported: boolean
  readonly ms: number
  readonly position: bigint
  readonly partition: number
}
type Sample = { readonly ms: number; readonly value: number; readonly position: bigint }

/** The plain fold: returns the expected rows of the read tables after the events of the log. */
export function foldOf(log: MemoryLog): RowsByTable {
  const network = eventsOf<NetworkCounted>(log, 'network-count')
  const titleCounts = eventsOf<TitleCounted>(log, 'title-count')
  const samples = networkSamples(network)
  const titles = titleSamples(titleCounts)
  return new Map([
    [
      'network-count',
      rowsOf(
        [...samples].flatMap(([metric, each]) => each.map((s) => row([metric, s.ms], '*', s.ms, [s.value, s.position])))
      )
    ],
    [
      'network-count-hour',
      rowsOf(
        buckets(samples, HOUR).map((b) =>
          row([b.key, b.fromMs], '*', b.fromMs, [...statisticsOf(b), b.last, b.lastAtMs, b.position])
        )
      )
    ],
    [
      'title-count',
      rowsOf([...newestBy(titleCounts, (e, ms) => `${e.titleId}/${ms}`, byPosition).values()].map(titleCountRow))
    ],
    [
      'title-count-hour',
      rowsOf(
        buckets(titles, HOUR).map((b) => row([b.key, b.fromMs], b.key, b.fromMs, [...statisticsOf(b), b.position]))
      )
    ],
    [
      'title-count-day',
      rowsOf(
        buckets(titles, DAY).map((b) =>
          row([b.key, b.fromMs], b.key, b.fromMs, [...statisticsOf(b), b.activeHours, b.position])
        )
      )
    ],
    ['title-latest', titleLatestRows(titleCounts)],
    ['title-status', titleStatuses(eventsOf<TitleStatusChanged>(log, 'title-status'))],
    ['title', titleFields(eventsOf<TitleDescribed>(log, 'title'))],
    [
      'scrape',
      rowsOf(
        [...newestBy(eventsOf<ScrapeRan>(log, 'scrape'), (e, ms) => `${e.source}/${ms}`, byPosition).values()].map(
          scrapeRow
        )
      )
    ],
    [
      'import-run',
      rowsOf(
        [...newestBy(eventsOf<ImportAdvanced>(log, 'import-run'), (e) => e.importId, byPosition).values()].map(
          importRow
        )
      )
    ],
    [
      'leaderboard',
      rowsOf(
        [
          ...newestBy(
            eventsOf<LeaderboardDescribed>(log, 'leaderboard'),
            (e, ms) => `${boardKey(e)}/${ms}`,
            byPosition
          ).values()
        ].map(({ event: e, ms, position }) =>
          row([e.titleId, e.leaderboardId, ms], e.titleId, ms, [e.name, e.listed ?? true, position])
        )
      )
    ],
    ...boardTables(log)
  ])
}

/** Returns the messages of the log that are not events, as `topic/epoch/partition/offset`. */
export function unreadable(log: MemoryLog): string[] {
  return log.partitions
    .flatMap(({ topic: name, epoch, partition, records }) => {
      const topic = topics.find((each) => each.name === name)
      return records
        .filter((record) => topic !== undefined && !decodeEvent(topic, record).ok)
        .map(({ offset }) => `${name}/${epoch}/${partition}/${offset}`)
    })
    .sort()
}

/** A row that every change of its projection may be about. */
export const ANY_KEY = 'some board'

const CHANGE_VALUES =
  'is_change, change, player, player_key, occurrence, previous_rank, new_rank, previous_rating, new_rating, ' +
  'previous_time_ms, new_time_ms, is_time'
const BOARD = "concat(title_id, '/', toString(leaderboard_id))"
/** Current rows hold for the last instant too. */
const LAST_MS = Date.UTC(2106, 0, 1) - 1
const LAST = `fromUnixTimestamp64Milli(toInt64(${LAST_MS}))`

const READ: Readonly<Record<string, { id: string; key: string; ms: string; values: string; only?: string }>> = {
  leaderboard: { id: 'title_id, leaderboard_id, ms(ts)', key: 'title_id', ms: 'ts', values: 'name, listed, position' },
  'leaderboard-history': {
    id: 'title_id, leaderboard_id, player, occurrence, ms(ts), position',
    key: BOARD,
    ms: 'ts',
    values: 'player_key, is_gone, rating, time_ms, is_ascending, stated_rank, ord, step, details, partition'
  },
  'leaderboard-entry': {
    id: 'title_id, leaderboard_id, player, occurrence',
    key: BOARD,
    ms: LAST,
    values: 'player_key, is_gone, rank, place, rating, time_ms, stated_rank, ord, step, details, ms(first_at), ms(ts)'
  },
  'player-entry': {
    id: 'player_key, title_id, leaderboard_id, player, occurrence',
    key: BOARD,
    ms: LAST,
    values: 'is_gone, rank, place, rating, time_ms, details, ms(first_at), ms(ts)'
  },
  'timed-entry': {
    id: 'time_ms, title_id, leaderboard_id, player, occurrence',
    key: BOARD,
    ms: LAST,
    values: 'rank, rating',
    only: 'is_live'
  },
  player: { id: 'player_key, player', key: `'${ANY_KEY}'`, ms: LAST, values: "''" },
  'leaderboard-change': {
    id: 'ms(ts), title_id, leaderboard_id, epoch, partition, offset',
    key: BOARD,
    ms: 'ts',
    values: `${CHANGE_VALUES}, recorded_epoch, recorded_partition, recorded_offset`
  },
  'leaderboard-feed': {
    id: 'recorded_epoch, recorded_partition, recorded_offset, epoch, partition, offset',
    key: BOARD,
    ms: 'ts',
    values: `${CHANGE_VALUES}, ms(ts)`
  },
  'rank-reached': {
    id: 'title_id, leaderboard_id',
    key: BOARD,
    ms: LAST,
    values: 'player_keys, goals, list(reached_at)'
  },
  'record-history': {
    id: 'title_id, leaderboard_id',
    key: BOARD,
    ms: LAST,
    values: 'players, occurrences, ratings, times_ms, list(set_at), list(from_at), list(to_at)'
  },
  'network-count': { id: 'metric, ms(ts)', key: "'*'", ms: 'ts', values: 'value, position' },
  'network-count-hour': {
    id: 'metric, ms(hour)',
    key: "'*'",
    ms: 'hour',
    values: 'min, max, ms(max_at), sum, samples, last, ms(last_at), position'
  },
  'title-count': {
    id: 'title_id, ms(ts)',
    key: 'title_id',
    ms: 'ts',
    values: 'online, sessions, lobby_players, position'
  },
  'title-count-hour': {
    id: 'title_id, ms(hour)',
    key: 'title_id',
    ms: 'hour',
    values: 'min, max, ms(max_at), sum, samples, position'
  },
  'title-count-day': {
    id: 'title_id, ms(day)',
    key: 'title_id',
    ms: 'day',
    values: 'min, max, ms(max_at), sum, samples, active_hours, position'
  },
  'title-latest': {
    id: 'imported, title_id',
    key: 'title_id',
    ms: 'ts',
    values: 'ms(ts), online, sessions, lobby_players, version'
  },
  'title-status': { id: 'title_id', key: 'title_id', ms: 'ts', values: 'on_network, ms(ts), version' },
  title: {
    id: 'title_id, field',
    key: 'title_id',
    ms: 'fromUnixTimestamp64Milli(toInt64(bitShiftRight(version, 64)))',
    values: 'value, name_key, version'
  },
  scrape: {
    id: 'source, ms(ts)',
    key: 'source',
    ms: 'ts',
    values: 'duration_ms, outcome, published, reason, position'
  },
  'import-run': {
    id: 'import_id',
    key: 'import_id',
    ms: 'ts',
    values: 'ms(ts), topic, file, rows_read, published, rejected, finished, position'
  }
}

/** The projection that records changes of a table. */
export function projectionOf(table: string): string {
  return ['leaderboard-change', 'leaderboard-feed', 'rank-reached', 'record-history'].includes(table)
    ? 'leaderboard-entry'
    : table
}

/** Reads the rows of the read tables. */
export async function readRows(tables: Tables): Promise<RowsByTable> {
  const model = new Map<string, ReadonlyMap<string, Row>>()
  for (const [projection, { id, key, ms, values, only = 'true' }] of Object.entries(READ)) {
    const table = projection.replaceAll('-', '_')
    const rows = await tables.rows(
      `SELECT concat_ws('|', ${textOf(id)}) AS id, ${key} AS key, ${textOf(`ms(${ms})`)} AS ms,
         concat_ws('|', ${textOf(values)}) AS row_values
       FROM ${table} FINAL WHERE ${only}`
    )
    model.set(
      projection,
      rowsOf(
        rows.map((each) => ({
          id: String(each.id),
          key: String(each.key),
          ms: Number(each.ms),
          values: String(each.row_values)
        }))
      )
    )
  }
  return model
}

/** Returns `a, ms(b)` as SQL for texts: instants in ms, NULL as `-`. */
function textOf(list: string): string {
  if (list.startsWith('ms(') && list.includes('(', 3)) return textOfMs(list.slice(3, -1))
  return list
    .split(', ')
    .map((each) => {
      if (each.startsWith('ms(')) return textOfMs(each.slice(3, -1))
      if (each.startsWith('list(')) return `toString(arrayMap(at -> toUnixTimestamp64Milli(at), ${each.slice(5, -1)}))`
      return `ifNull(toString(${each}), '-')`
    })
    .join(', ')
}

function textOfMs(expression: string): string {
  return `toString(toUnixTimestamp64Milli(toDateTime64(${expression}, 3, 'UTC')))`
}

function eventsOf<Event>(log: MemoryLog, name: string): Placed<Event>[] {
  const topic = topics.find((each) => each.name === name)
  if (topic === undefined) throw new Error(`no topic ${name}`)
  const events: Placed<Event>[] = []
  for (const { topic: of, epoch, partition, records } of log.partitions) {
    if (of !== name) continue
    for (const record of records) {
      const decoded = decodeEvent(topic, record)
      if (!decoded.ok) continue
      const position = (BigInt(epoch) << 48n) | BigInt(record.offset)
      const ms = millisecondsOf(topic.instant(decoded.event))
      events.push({ event: decoded.event as Event, isImported: decoded.importId !== '', ms, position, partition })
    }
  }
  return events
}

const byPosition = (placed: Placed<unknown>) => placed.position
const byInstant = (placed: Placed<unknown>) => (BigInt(placed.ms) << 64n) | placed.position

function newestBy<Event>(
  events: readonly Placed<Event>[],
  keyOf: (event: Event, ms: number) => string,
  versionOf: (placed: Placed<unknown>) => bigint
): Map<string, Placed<Event>> {
  const newest = new Map<string, Placed<Event>>()
  for (const placed of events) {
    const key = keyOf(placed.event, placed.ms)
    const before = newest.get(key)
    if (before === undefined || versionOf(placed) >= versionOf(before)) newest.set(key, placed)
  }
  return newest
}

function networkSamples(events: readonly Placed<NetworkCounted>[]): Map<string, Sample[]> {
  const samples = new Map<string, Sample[]>()
  for (const metric of ['registered', 'online', 'lobbies'] as const) {
    const having = events.filter(({ event }) => event[metric] !== undefined)
    const newest = newestBy(having, (_, ms) => String(ms), byPosition)
    samples.set(
      metric,
      [...newest.values()].map(({ event, ms, position }) => ({ ms, value: event[metric] ?? 0, position }))
    )
  }
  return samples
}

function titleSamples(events: readonly Placed<TitleCounted>[]): Map<string, Sample[]> {
  const samples = new Map<string, Sample[]>()
  for (const { event, ms, position } of newestBy(events, (e, ms) => `${e.titleId}/${ms}`, byPosition).values()) {
    const of = samples.get(event.titleId) ?? []
    of.push({ ms, value: event.online, position })
    samples.set(event.titleId, of)
  }
  return samples
}

/** Statistics of samples by key and bucket, each with the highest position of its samples. */
function buckets(samples: ReadonlyMap<string, readonly Sample[]>, width: number) {
  return [...samples].flatMap(([key, all]) =>
    rollupsOf(
      all.map((sample) => ({ key, ...sample })),
      width
    ).map((rollup) => {
      const of = all.filter(({ ms }) => ms - (ms % width) === rollup.fromMs)
      return { ...rollup, position: highest(of) }
    })
  )
}

function statisticsOf({ min, max, maxAtMs, sum, samples }: Rollup) {
  return [min, max, maxAtMs, sum, samples]
}

function highest(of: readonly { readonly position: bigint }[]): bigint {
  let most = 0n
  for (const { position } of of) if (position > most) most = position
  return most
}

function titleCountRow({ event: e, ms, position }: Placed<TitleCounted>): Row {
  return row([e.titleId, ms], e.titleId, ms, [e.online, e.sessions, e.lobbyPlayers, position])
}

function titleLatestRows(events: readonly Placed<TitleCounted>[]) {
  return rowsOf(
    [true, false].flatMap((isImported) => {
      const of = events.filter((placed) => placed.isImported === isImported)
      return [...newestBy(of, (e) => e.titleId, byInstant).values()].map((placed) => {
        const { event: e, ms } = placed
        const values = [ms, e.online, e.sessions, e.lobbyPlayers, byInstant(placed)]
        return row([isImported, e.titleId], e.titleId, ms, values)
      })
    })
  )
}

function titleStatuses(events: readonly Placed<TitleStatusChanged>[]) {
  return rowsOf(
    [...newestBy(events, (e) => e.titleId, byInstant).values()].map((placed) => {
      const { event: e, ms } = placed
      return row([e.titleId], e.titleId, ms, [e.onNetwork, ms, byInstant(placed)])
    })
  )
}

function titleFields(events: readonly Placed<TitleDescribed>[]) {
  const fields: Record<string, (event: TitleDescribed) => string | undefined> = {
    name: (e) => e.name,
    title: (e) => e.title,
    publisher: (e) => e.publisher,
    release_date: (e) => e.releaseDate,
    image: (e) => e.image,
    product_code: (e) => e.productCode,
    features: (e) => e.features?.join(',')
  }
  return rowsOf(
    Object.entries(fields).flatMap(([field, textOfField]) => {
      const having = events.filter(({ event }) => textOfField(event) !== undefined)
      return [...newestBy(having, (e) => e.titleId, byInstant).values()].map((placed) => {
        const key = field === 'name' ? nameKey(placed.event.name) : ''
        const values = [textOfField(placed.event), key, byInstant(placed)]
        return row([placed.event.titleId, field], placed.event.titleId, placed.ms, values)
      })
    })
  )
}

function scrapeRow({ event: e, ms, position }: Placed<ScrapeRan>): Row {
  return row([e.source, ms], e.source, ms, [e.durationMs, e.outcome, e.published, e.reason ?? '', position])
}

function importRow({ event: e, ms, position }: Placed<ImportAdvanced>): Row {
  const values = [ms, e.topic, e.file, e.rowsRead, e.published, e.rejected, e.finished, position]
  return row([e.importId], e.importId, ms, values)
}

function row(id: readonly unknown[], key: string, ms: number, values: readonly unknown[]): Row {
  return { id: id.join('|'), key, ms, values: values.map((value) => value ?? '-').join('|') }
}

function rowsOf(rows: readonly Row[]): ReadonlyMap<string, Row> {
  return new Map(rows.map((each) => [each.id, each]))
}

function boardTables(log: MemoryLog): [string, ReadonlyMap<string, Row>][] {
  const byBoard = new Map<string, PlacedEntry[]>()
  for (const placed of eventsOf<LeaderboardEntryChanged>(log, 'leaderboard-entry')) {
    const key = boardKey(placed.event)
    byBoard.set(key, [...(byBoard.get(key) ?? []), placed])
  }
  const boards = [...byBoard].map(([key, events]) => ({ key, id: key.split('/'), ...plainBoard(events) }))
  const each = (rowsOfBoard: (board: NamedBoard) => readonly Row[]) => rowsOf(boards.flatMap(rowsOfBoard))
  return [
    ['leaderboard-history', each(({ key, id, states }) => states.map((state) => historyRow(key, id, state)))],
    ['leaderboard-entry', each((board) => entryRows(board, false))],
    ['player-entry', each((board) => entryRows(board, true))],
    ['timed-entry', each(timedEntryRows)],
    [
      'player',
      each(({ states }) => states.map(({ playerName: name }) => row([nameKey(name), name], ANY_KEY, LAST_MS, [''])))
    ],
    ['leaderboard-change', each((board) => changeRows(board, 'change'))],
    ['leaderboard-feed', each((board) => changeRows(board, 'feed'))],
    ['rank-reached', each(reachedRow)],
    ['record-history', each(recordRow)]
  ]
}

type NamedBoard = PlainBoard & { readonly key: string; readonly id: readonly string[] }

function historyRow(key: string, id: readonly string[], state: PlainState): Row {
  const { playerName, occurrence, ms, position, isGone, rating, timeMs, isAscending = false } = state
  const { statedRank, order, step, details, partition } = state
  const values = [nameKey(playerName), isGone, rating, timeMs, isAscending, statedRank, order, step, details, partition]
  return row([...id, playerName, occurrence, ms, position], key, ms, values)
}

function entryRows({ key, id, states, present, gone }: NamedBoard, isOfPlayer: boolean): Row[] {
  const one = (state: PlainState, rank: number, place: number) => {
    const { playerName, occurrence, isGone, rating, timeMs, statedRank, order, step, details, ms } = state
    const name = nameKey(playerName)
    const firstMs = states.find((each) => each.who === state.who && !each.isGone)?.ms ?? 0
    const shown = [isGone, rank, place, rating, timeMs]
    return isOfPlayer
      ? row([name, ...id, playerName, occurrence], key, LAST_MS, [...shown, details, firstMs, ms])
      : row([...id, playerName, occurrence], key, LAST_MS, [
          name,
          ...shown,
          statedRank,
          order,
          step,
          details,
          firstMs,
          ms
        ])
  }
  return [...present.map(({ entry, rank }, place) => one(entry, rank, place)), ...gone.map((state) => one(state, 0, 0))]
}

function timedEntryRows({ key, id, present }: NamedBoard): Row[] {
  return present.flatMap(({ entry: { timeMs, playerName, occurrence, rating }, rank }) =>
    timeMs === null ? [] : [row([timeMs, ...id, playerName, occurrence], key, LAST_MS, [rank, rating])]
  )
}

function changeRows({ key, id, changes }: NamedBoard, order: 'change' | 'feed'): Row[] {
  const placeOf = ({ position, partition }: PlainState) => [position >> 48n, partition, position & ((1n << 48n) - 1n)]
  return changes.map(({ state, change, recorded, previousRank, newRank, previous }) => {
    const before = change === undefined || change === 'new' ? undefined : previous
    const now = change === undefined || change === 'removed' ? undefined : state
    const values = [
      ...[change !== undefined, change ?? '', state.playerName, nameKey(state.playerName), state.occurrence],
      ...[previousRank, newRank, before?.rating, now?.rating, before?.timeMs, now?.timeMs],
      ((now ?? before)?.timeMs ?? null) !== null
    ]
    return order === 'change'
      ? row([state.ms, ...id, ...placeOf(state)], key, state.ms, [...values, ...placeOf(recorded)])
      : row([...placeOf(recorded), ...placeOf(state)], key, state.ms, [...values, state.ms])
  })
}

function reachedRow({ key, id, reached }: NamedBoard): Row[] {
  const values = [
    listOf(reached.map(({ playerKey }) => playerKey)),
    listOf(reached.map(({ goal }) => goal)),
    listOf(reached.map(({ atMs }) => atMs))
  ]
  return [row(id, key, LAST_MS, values)]
}

function recordRow({ key, id, reigns }: NamedBoard): Row[] {
  const values = [
    listOf(reigns.map(({ playerName }) => playerName)),
    listOf(reigns.map(({ occurrence }) => occurrence)),
    listOf(reigns.map(({ rating }) => rating)),
    listOf(reigns.map(({ timeMs }) => timeMs)),
    listOf(reigns.map(({ setAt }) => setAt)),
    listOf(reigns.map(({ fromAt }) => fromAt)),
    listOf(reigns.map(({ toAt }) => toAt))
  ]
  return [row(id, key, LAST_MS, values)]
}

function listOf(values: readonly (string | number | null)[]): string {
  return `[${values.map((value) => (typeof value === 'string' ? `'${value}'` : (value ?? 'NULL'))).join(',')}]`
}
