import { newestSwap } from '@gamenet/api'
import { feedExtents, recordedChanges } from '@gamenet/api/internals'
import { leaderboardEntryTopic, loadCheckpoint, projectionCheckpoint } from '@gamenet/schemas'
import type { Row } from './replacing-table.js'
import { namedOf, plain } from './statement-names.js'
import { operatorAnswers } from './statements-of-operators.js'
import { answerAboutRange, remembered } from './statements-of-projections.js'
import { type Answer, type Parameters, rebuildAnswers } from './statements-of-rebuilds.js'
import type { Seen, TableSet } from './table-set.js'

/** No filter: all changes. */
export const ALL_CHANGES = {
  titleId: null,
  leaderboardId: null,
  playerKey: null,
  changeType: null,
  sinceMs: null,
  untilMs: null
}

/** Other queries, by the beginning of the statement; the real engine gives the same answers. */
const answers: readonly (readonly [string, Answer])[] = [
  ['SELECT max(d.version) AS version FROM data_change', (store) => [{ version: newestVersion(store) }]],
  ['SELECT c.name AS name, c.epoch AS epoch, c.partition AS partition, max(c.next)', checkpoints],
  ['SELECT c.epoch AS epoch, c.partition AS partition, max(c.next) AS next FROM checkpoint', reached],
  ['SELECT e.title_id AS titleId, e.leaderboard_id AS leaderboardId, max(e.version) AS version,', boardStates],
  ['SELECT e.player AS playerName, e.occurrence AS occurrence,', lastBoard],
  ['SELECT l.title_id AS titleId, l.leaderboard_id AS leaderboardId, argMax(l.name,', knownLists],
  ['SELECT DISTINCT e.title_id AS titleId, ', titles],
  ['SELECT max(least(c.from_ms, {end: Int64} - 1)) AS newest_from_ms', newestBegin],
  ...operatorAnswers,
  ['SELECT r.id AS id, argMax(r.record, r.version) AS newest FROM rebuild', newestRecords],
  ['SELECT d.name AS name, argMax(d.definition, d.version)', definitions],
  [
    'SELECT max(d.version) AS version FROM projection_definition',
    (store) => [{ version: String(newestDefinition(store)) }]
  ],
  [plain(newestSwap.sql), swaps],
  ['SELECT c.projection AS projection, c.key AS key, if(c.to_ms >', changesSince],
  [plain(feedExtents.sql), feedEnds],
  [plain(recordedChanges(ALL_CHANGES).sql), recorded]
]

/** The answer to a statement, which is known by its text; `isOfMachine`: another machine has another one. */
export function answerOf(
  store: TableSet,
  sql: string,
  parameters: Parameters
): { readonly rows: Row[]; readonly isOfMachine: boolean } {
  const { named, answer, isOfMachine } = remembered(known, sql, () => {
    const named = namedOf(sql)
    const isOf = ([beginning]: readonly [string, Answer]) => named.text.startsWith(beginning)
    const answer = answerAboutRange(named.text, parameters) ?? answers.find(isOf)?.[1]
    const ofMachine = rebuildAnswers.find(isOf)?.[1]
    const found = answer ?? ofMachine
    if (found === undefined) throw new Error(`The simulated tables do not know this statement: ${named.text}`)
    return { named, answer: found, isOfMachine: answer === undefined || 'slices' in parameters }
  })
  return { rows: answer(store.seenAs(named), parameters, store, sql), isOfMachine }
}

const known = new Map<string, { named: ReturnType<typeof namedOf>; answer: Answer; isOfMachine: boolean }>()

/** Of rows that are not merged yet the first of the highest version. */
function newestRecords(store: Seen): Row[] {
  return newestOf(store.table('rebuild').rows, 'id')
    .sort((a, b) => Number(b.id) - Number(a.id))
    .map(({ id, record }) => ({ id, newest: record }))
}

function definitions(store: Seen): Row[] {
  const newest = newestOf(store.table('projection_definition').rows, 'name')
  return newest.map(({ name, definition }) => ({ name, definition }))
}

function newestDefinition(store: Seen): number {
  return Math.max(0, ...store.table('projection_definition').rows.map(({ version }) => Number(version)))
}

function newestOf(rows: readonly Row[], key: string): Row[] {
  const newest = new Map<unknown, Row>()
  for (const row of rows) {
    const before = newest.get(row[key])
    if (before === undefined || Number(row.version) > Number(before.version)) newest.set(row[key], row)
  }
  return [...newest.values()]
}

const STATES = ['announced', 'begun', 'ended']

function swaps(store: Seen): Row[] {
  const [newest] = store
    .final('exchange')
    .sort((a, b) => Number(b.id) - Number(a.id) || STATES.indexOf(String(b.state)) - STATES.indexOf(String(a.state)))
  return newest === undefined ? [] : [{ id: newest.id, state: newest.state }]
}

function newestVersion(store: Seen): string {
  return String(Math.max(0, ...store.table('data_change').rows.map(({ version }) => Number(version))))
}

function checkpoints(store: Seen): Row[] {
  return store.final('checkpoint').map(({ name, epoch, partition, next }) => {
    return { name, epoch, partition, next: String(next) }
  })
}

function reached(store: Seen, { name }: Parameters): Row[] {
  return checkpoints(store)
    .filter((row) => row.name === name)
    .map(({ name: _, ...row }) => row)
}

function boardStates(store: Seen, { titleIds, leaderboardIds }: Parameters): Row[] {
  const [titles_, boards] = [titleIds as string[], leaderboardIds as number[]]
  return titles_.flatMap((titleId, n) => {
    const leaderboardId = boards[n]
    const rows = store
      .table('leaderboard_entry')
      .rows.filter((row) => row.title_id === titleId && row.leaderboard_id === leaderboardId)
    if (rows.length === 0) return []
    const version = String(Math.max(...rows.map((row) => Number(row.version))))
    return [{ titleId, leaderboardId, version, newestMs: String(Math.max(...rows.map(({ ts }) => Number(ts)))) }]
  })
}

function lastBoard(store: Seen, { titleId, leaderboardId }: Parameters): Row[] {
  return store
    .final('leaderboard_entry')
    .filter((row) => row.title_id === titleId && row.leaderboard_id === leaderboardId && row.is_gone !== true)
    .map(({ player: playerName, occurrence, rating, time_ms: timeMs, ord: order, step, details }) => {
      return { playerName, occurrence, rating, timeMs, order, step, details }
    })
}

function knownLists(store: Seen, { titleIds }: Parameters): Row[] {
  const newest = new Map<string, Row>()
  for (const row of store.table('leaderboard').rows) {
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

/** No title in the simulator says that it has no boards, and none leaves. */
function titles(store: Seen): Row[] {
  const ids = store.table('event_title').rows.map(({ title_id }) => String(title_id))
  return [...new Set(ids)].sort().map((titleId) => ({ titleId, isDeparted: 0 }))
}

function newestBegin(store: Seen, { end }: Parameters): Row[] {
  const begins = store.table('data_change').rows.map(({ from_ms }) => Math.min(Number(from_ms), Number(end) - 1))
  return [{ newest_from_ms: String(Math.max(0, ...begins)) }]
}

function changesSince(store: Seen, { after, minutes_from, end }: Parameters): Row[] {
  const found = new Map<string, Row>()
  for (const { version, projection, key, from_ms, to_ms } of store.table('data_change').rows) {
    if (Number(version) <= Number(after)) continue
    const [from, to] = [Number(from_ms), Number(to_ms)]
    const width = to > Number(minutes_from) ? 60_000 : 3_600_000
    const first = Math.trunc(Math.max(from, 0) / width) * width
    const last = Math.trunc((Math.max(Math.min(to, Number(end)), from + 1) + width - 1) / width) * width
    const id = [projection, key, width, first, last].join('|')
    const newest = Math.max(Number(version), Number(found.get(id)?.newest_version ?? 0))
    const stretch = { width_ms: width, first_ms: String(first), last_ms: String(last) }
    found.set(id, { projection, key, ...stretch, newest_version: String(newest) })
  }
  return [...found.values()]
}

const FOLDED = projectionCheckpoint('leaderboard-entry')
const LOADED = loadCheckpoint(leaderboardEntryTopic.name)

function feedEnds(store: Seen): Row[] {
  const lanes = new Map<string, { epoch: number; partition: number; readable: number; loaded: number }>()
  for (const { name, epoch, partition, next } of store.final('checkpoint')) {
    if (name !== FOLDED && name !== LOADED) continue
    const key = `${epoch}/${partition}`
    const lane = lanes.get(key) ?? { epoch: Number(epoch), partition: Number(partition), readable: 0, loaded: 0 }
    lanes.set(key, { ...lane, [name === FOLDED ? 'readable' : 'loaded']: Number(next) })
  }
  return [...lanes.values()].sort((a, b) => a.epoch - b.epoch || a.partition - b.partition)
}

function recorded(store: Seen, parameters: Parameters): Row[] {
  const start = ['recordedOffset', 'epoch', 'partition', 'offset'].map((name) => Number(parameters[name]))
  const placeOf = (row: Row) => [row.recorded_offset, row.epoch, row.partition, row.offset].map(Number)
  return store
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
