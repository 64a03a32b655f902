import { matchesOf, newestLists } from '@gamenet/engines/testing'
import { decodeEvent, type MatchesListed, matchListTopic, millisecondsOf } from '@gamenet/schemas'
import type { Tables } from '../src/index.js'
import type { MemoryLog } from './memory-log.js'

/*
 * The expected rows of the tables of matches, computed from the events of a log with loops and maps.
 */

const HOUR = 3_600_000

type PlacedList = { readonly ms: number; readonly event: MatchesListed; readonly position: bigint }

/** Rows of one table as text, in order. */
export type Lines = readonly string[]

/** The valid lists of a title, oldest first: of one instant the one with the highest position. */
function listsThatCount(lists: readonly PlacedList[]): PlacedList[] {
  return newestLists(lists.toSorted((a, b) => (a.position < b.position ? -1 : 1)))
}

const SELECTS = {
  match_list: `SELECT [toString(t.title_id), toString(toUnixTimestamp64Milli(t.ts)), toString(t.hosts), toString(t.players),
      toString(t.max_players), toString(t.position)] AS line FROM match_list AS t FINAL`,
  match_latest: `SELECT [toString(t.title_id), toString(toUnixTimestamp64Milli(t.ts)), toString(t.hosts), toString(t.players),
      toString(t.max_players)] AS line FROM match_latest AS t FINAL`,
  match_list_hour: `SELECT [toString(t.title_id), toString(toUnixTimestamp(t.hour) * 1000), toString(t.lists), toString(t.lobbies),
      toString(t.players), toString(t.lobbies_max), toString(toUnixTimestamp64Milli(t.lobbies_max_at)), toString(t.position)] AS line
    FROM match_list_hour AS t FINAL`,
  match_session: `SELECT [toString(t.title_id), toString(toUnixTimestamp64Milli(t.first_seen)), t.host, toString(t.nth),
      toString(toUnixTimestamp64Milli(t.last_seen)), toString(t.peak_players), toString(t.max_players), toString(t.players_sum),
      toString(t.sightings)] AS line FROM match_session AS t FINAL WHERE NOT t.is_void`
} as const

export type MatchTable = keyof typeof SELECTS

/** Reads the rows of the tables of matches. */
export async function matchTables(tables: Tables): Promise<Record<MatchTable, Lines>> {
  const found: Record<string, Lines> = {}
  for (const [table, sql] of Object.entries(SELECTS)) {
    found[table] = (await tables.rows(sql)).map(({ line }) => (line as string[]).join('|')).sort()
  }
  return found as Record<MatchTable, Lines>
}

/** Returns the expected rows after the events of a log. */
export function expectedTables(log: MemoryLog): Record<MatchTable, Lines> {
  const byTitle = new Map<string, PlacedList[]>()
  for (const { topic, epoch, records } of log.partitions) {
    if (topic !== matchListTopic.name) continue
    for (const record of records) {
      const decoded = decodeEvent(matchListTopic, record)
      if (!decoded.ok) continue
      const event = decoded.event as MatchesListed
      const position = (BigInt(epoch) << 48n) | BigInt(record.offset)
      byTitle.set(event.titleId, [
        ...(byTitle.get(event.titleId) ?? []),
        { ms: millisecondsOf(event.observedAt), event, position }
      ])
    }
  }
  const lines: Record<MatchTable, string[]> = {
    match_list: [],
    match_latest: [],
    match_list_hour: [],
    match_session: []
  }
  for (const [titleId, all] of byTitle) addTitle(lines, titleId, listsThatCount(all))
  for (const table of Object.values(lines)) table.sort()
  return lines
}

function addTitle(lines: Record<MatchTable, string[]>, titleId: string, lists: readonly PlacedList[]) {
  for (const list of lists) lines.match_list.push([titleId, list.ms, ...columns(list), list.position].join('|'))
  const newest = lists.at(-1)
  if (newest !== undefined) lines.match_latest.push([titleId, newest.ms, ...columns(newest)].join('|'))
  for (const hour of new Set(lists.map(({ ms }) => Math.floor(ms / HOUR) * HOUR))) {
    const of = lists.filter(({ ms }) => ms >= hour && ms < hour + HOUR)
    const lobbies = of.flatMap(({ event }) => event.matches)
    const most = Math.max(...of.map(({ event }) => event.matches.length))
    const mostAt = of.find(({ event }) => event.matches.length === most)?.ms
    const players = lobbies.reduce((sum, { currentPlayers }) => sum + currentPlayers, 0)
    const position = of
      .map((list) => list.position)
      .sort((a, b) => (a < b ? -1 : 1))
      .at(-1)
    lines.match_list_hour.push([titleId, hour, of.length, lobbies.length, players, most, mostAt, position].join('|'))
  }
  const plain = lists.map(({ ms, event }) => ({
    ms,
    lobbies: event.matches.map(({ hostName, currentPlayers, maxPlayers }) => ({
      ...{ host: hostName, players: currentPlayers, max: maxPlayers }
    }))
  }))
  for (const m of matchesOf(plain)) {
    const values = [m.firstMs, m.host, m.nth, m.lastMs, m.peakPlayers, m.maxPlayers, m.playersSum, m.sightings]
    lines.match_session.push([titleId, ...values].join('|'))
  }
}

function columns({ event }: PlacedList): string[] {
  const hosts = event.matches.map(({ hostName }) => `'${hostName}'`)
  const players = event.matches.map(({ currentPlayers }) => currentPlayers)
  const most = event.matches.map(({ maxPlayers }) => maxPlayers)
  return [`[${hosts}]`, `[${players}]`, `[${most}]`]
}
