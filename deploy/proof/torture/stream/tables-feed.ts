import type { ClickHouse } from '@gamenet/engines'
import { nameKey } from '@gamenet/schemas'
import type { Identities, Identity } from './identities.js'
import type { Filter } from './restless-listener.js'

const AT = 'toFloat64(toUnixTimestamp64Milli(observed_at)) AS atMs'
const RECORDED = 'epoch, partition, offset'

/** Returns all events of the tables in the order of recording, with statements that differ from those of the stream. */
export async function feedOfTables(tables: ClickHouse): Promise<Identity[]> {
  const rows = (sql: string) => tables.projections.rows(sql)
  const counts = await rows(`SELECT ${AT}, online FROM event_network_count ORDER BY ${RECORDED}`)
  const titleCounts = await rows(`SELECT ${AT}, title_id, online FROM event_title_count ORDER BY ${RECORDED}`)
  const lists = await rows(
    `SELECT ${AT}, title_id, arrayZip(hosts, players, max_players) AS matches FROM event_match_list ORDER BY ${RECORDED}`
  )
  const changes = await rows(
    `SELECT toFloat64(toUnixTimestamp64Milli(ts)) AS atMs, title_id, leaderboard_id, player_key, change, new_rating
     FROM leaderboard_feed WHERE is_change
     ORDER BY recorded_epoch, recorded_partition, recorded_offset, ${RECORDED}`
  )
  const records = await rows(
    `SELECT toFloat64(toUnixTimestamp64Milli(f.ts)) AS atMs, f.title_id AS title_id, f.leaderboard_id AS leaderboard_id,
       f.player_key AS player_key, f.new_rating AS rating
     FROM leaderboard_feed AS f
     INNER JOIN (
       SELECT title_id, leaderboard_id, arrayJoin(arrayZip(players, ratings, set_at, from_at)) AS reign FROM record_history
     ) AS r ON r.title_id = f.title_id AND r.leaderboard_id = f.leaderboard_id
     WHERE f.is_change AND r.reign.1 = f.player AND r.reign.2 = f.new_rating AND r.reign.3 = f.ts AND r.reign.4 = f.ts
     ORDER BY f.recorded_epoch, f.recorded_partition, f.recorded_offset, f.epoch, f.partition, f.offset`
  )
  const unlocks = await rows(
    `SELECT ${AT}, user_key, achievement_id FROM event_achievement_unlock
     ORDER BY ${RECORDED} LIMIT 1 BY user_key, achievement_id`
  )
  const board = (row: Record<string, unknown>) => ({
    key: `${row.title_id}/${row.leaderboard_id}`,
    titleId: String(row.title_id),
    leaderboardId: Number(row.leaderboard_id),
    player: String(row.player_key),
    atMs: Number(row.atMs)
  })
  const title = (row: Record<string, unknown>) => ({
    key: String(row.title_id),
    titleId: String(row.title_id),
    atMs: Number(row.atMs)
  })
  return [
    ...counts.map((row) => ({ kind: 'count', key: '', atMs: Number(row.atMs), values: [row.online] })),
    ...titleCounts.map((row) => ({ kind: 'title-count', ...title(row), values: [row.online] })),
    ...lists.map((row) => ({ kind: 'match', ...title(row), values: row.matches as unknown[] })),
    ...changes.map((row) => ({ kind: 'change', ...board(row), values: [row.player_key, row.change, row.new_rating] })),
    ...records.map((row) => ({ kind: 'record', ...board(row), values: [row.player_key, row.rating] })),
    ...unlocks.map((row) => ({
      ...{ kind: 'achievement', key: String(row.user_key), player: String(row.user_key) },
      atMs: Number(row.atMs),
      values: [row.achievement_id]
    }))
  ]
}

/** Whether an event passes a filter. */
export function passes({ kind, titleId, leaderboardId, player }: Identity, filter: Filter): boolean {
  return (
    (filter.kinds === undefined || filter.kinds.includes(kind)) &&
    (filter.titleId === undefined || filter.titleId === titleId) &&
    (filter.leaderboardId === undefined || filter.leaderboardId === leaderboardId) &&
    (filter.player === undefined || nameKey(filter.player) === player)
  )
}

export type Deviation = { readonly missed: number; readonly duplicates: number; readonly sentence: string | undefined }

/** Compares a journal with the filtered events of the feed, key by key; an abandoned journal may lack the newest ones. */
export function deviationOf(
  journal: readonly number[],
  feed: readonly number[],
  filter: Filter,
  identities: Identities,
  isAbandoned = false
): Deviation {
  const wanted = byKey(
    feed.filter((number) => passes(identities.at(number), filter)),
    identities
  )
  const found = byKey(journal, identities)
  let [missed, duplicates] = [0, 0]
  let sentence: string | undefined
  for (const key of new Set([...wanted.keys(), ...found.keys()])) {
    const received = found.get(key) ?? []
    const all = wanted.get(key) ?? []
    const expected = isAbandoned ? all.slice(0, received.length) : all
    if (String(expected) === String(received)) continue
    missed += lacking(expected, received)
    duplicates += lacking(received, expected)
    const n = received.findIndex((number, n) => number !== expected[n])
    const at = n < 0 ? received.length : n
    const shown = (numbers: readonly number[]) =>
      JSON.stringify(numbers.slice(at, at + 3).map((number) => identities.at(number)))
    sentence ??= `${JSON.stringify(filter)}, ${key}, event ${at} of ${expected.length}: received ${shown(received)}, expected ${shown(expected)}`
  }
  return { missed, duplicates, sentence }
}

/** Returns the number of elements of the first list that the second one lacks, counted with repetitions. */
function lacking(these: readonly number[], those: readonly number[]): number {
  const left = new Map<number, number>()
  for (const number of those) left.set(number, (left.get(number) ?? 0) + 1)
  let count = 0
  for (const number of these) {
    const here = left.get(number) ?? 0
    if (here === 0) count += 1
    else left.set(number, here - 1)
  }
  return count
}

function byKey(numbers: readonly number[], identities: Identities): Map<string, number[]> {
  const keys = new Map<string, number[]>()
  for (const number of numbers) {
    const { kind, key } = identities.at(number)
    const name = `${kind} ${key}`
    const list = keys.get(name)
    if (list === undefined) keys.set(name, [number])
    else list.push(number)
  }
  return keys
}
