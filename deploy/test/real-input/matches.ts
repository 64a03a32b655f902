import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { shownInstant } from '@gamenet/schemas'
import type { Test } from 'tap'
import { z } from 'zod'
import type { TestService } from '../boards-service.js'
import { sameList } from '../service/ask.js'
import { gamenetJson } from '../service/gamenet.js'
import { sharedFile } from '../service/recorded.js'

/*
 * Snapshots of a server's worlds as lists of matches: a row is a lobby of one instant. The answers are compared with a
 * plain computation over the rows.
 */

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const Row = z.object({ ts: z.string(), id: z.string(), players: z.int() })
type Row = z.infer<typeof Row>
const NewestList = z.object({
  matches: z.array(
    z.object({ hostName: z.string(), currentPlayers: z.int(), maxPlayers: z.int(), timestamp: z.string() })
  )
})

type Lobby = { readonly hostName: string; readonly players: number }
type List = { readonly ms: number; readonly lobbies: readonly Lobby[] }
type Match = { hostName: string; firstMs: number; lastMs: number; peak: number }

/** Every row of the recorded snapshots; undefined where they are absent. */
export async function recordedSnapshots(t: Test): Promise<Row[] | undefined> {
  const path = await sharedFile('lobby-snapshots-2024.jsonl.gz')
  if (path === undefined) {
    t.comment('NO ../shared/data: the recorded snapshots were NOT tested; snapshots of the same make are')
    return undefined
  }
  const lines = gunzipSync(await readFile(path))
    .toString()
    .trimEnd()
    .split('\n')
  return lines.map((line) => Row.parse(JSON.parse(line)))
}

/** Similar rows: closed and empty lobbies, duplicate rows, gaps, an hour without an open lobby. */
export function generatedSnapshots(): Row[] {
  return Array.from({ length: 4000 }, (_, n) => {
    const step = n % 40
    const hour = step * 5 + (step > 30 ? 144 : 0)
    const isOpen = step !== 17 && (n * 7919 + step * 3) % 11 < 3
    const ts = textOf(Date.UTC(2024, 4, 22, 17) + hour * HOUR_MS)
    return { ts, id: `w${(n * 31) % 61}`, players: isOpen ? (n * 13) % 5 : -1 }
  })
}

/** The recorded rows are the matches of a separate title. */
export async function provesRecordedMatches(t: Test, service: TestService, rows: readonly Row[]): Promise<void> {
  const lists = await provesMatches(t, { service, titleId: 'fe00c0df' }, rows)
  const lobbies = lists.flatMap((list) => list.lobbies)
  t.equal(lists.length, 55)
  t.equal(lobbies.filter(({ players }) => players === 0).length, 43, 'open and empty')
  const openRows = rows.filter(({ players }) => players >= 0)
  t.equal(new Set(openRows.map(({ id }) => id)).size, 97, 'worlds with a row that says open')
  const hosts = new Set(lobbies.map(({ hostName }) => hostName))
  t.same(
    openRows.filter(({ id }) => !hosts.has(id)),
    [{ ts: '2024-06-04 18:00:00', id: 'w9af92cd59ad06de4', players: 1 }],
    'one of them never was: its only such row has another for the same instant after it, which says closed'
  )
}

export async function provesGeneratedMatches(t: Test, service: TestService): Promise<void> {
  const lists = await provesMatches(t, { service, titleId: 'fe00c0de' }, generatedSnapshots())
  t.equal(lists.length, 40)
  t.ok(lists.some(({ lobbies }) => lobbies.length === 0))
}

type Target = { readonly service: TestService; readonly titleId: string }

async function provesMatches(t: Test, target: Target, given: readonly Row[]): Promise<List[]> {
  const { service, titleId } = target
  // Statistics are those of the last 30 days; at half past, so that no boundary is at a snapshot.
  const newestMs = Math.max(...given.map(({ ts }) => millisecondsOf(ts)))
  const shiftMs = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - 1.5 * HOUR_MS - newestMs
  const rows = given.map((row) => ({ ...row, ts: textOf(millisecondsOf(row.ts) + shiftMs) }))
  const lists = listsOf(rows)
  const middle = lists[Math.floor(lists.length / 2)]?.ms ?? 0

  await t.test('files in the wrong order with rows in any order are imported completely', async (t) => {
    const late = rows.filter(({ ts }) => millisecondsOf(ts) < middle)
    const newer = rows.filter(({ ts }) => millisecondsOf(ts) >= middle)
    for (const [name, part] of [
      ['newer', newer],
      ['late', late]
    ] as const) {
      t.match(await importRows(t, target, name, part), { rowsRead: part.length, published: part.length, rejected: 0 })
      await service.caughtUp()
    }
    t.match(await importRows(t, target, 'late', late), { alreadyDone: true, published: 0 })
  })

  await t.test('the matches agree with successive lists', async (t) => {
    const [first, last] = [lists[0]?.ms ?? 0, lists.at(-1)?.ms ?? 0]
    for (const [fromMs, toMs] of [
      [first, last + 1],
      [middle, last],
      [first + HOUR_MS, middle]
    ] as const) {
      const path = `/api/title/${titleId}/matches/history?from=${shownInstant(fromMs)}&to=${shownInstant(toMs)}`
      const found = z.array(z.unknown()).parse(await service.get(path))
      const wanted = matchesOf(lists).filter((match) => match.firstMs < toMs && match.lastMs >= fromMs)
      sameList(
        t,
        found,
        wanted.map((match) => shown(match, last)),
        `${wanted.length} matches`
      )
    }
  })

  await t.test('the newest list and the statistics are those of the file', async (t) => {
    const newest = lists.at(-1)
    const timestamp = textOf(newest?.ms ?? 0)
    const now = NewestList.parse(await service.get(`/api/title/${titleId}/matches`))
    const byHost = (a: { hostName: string }, b: { hostName: string }) => (a.hostName < b.hostName ? -1 : 1)
    t.same(
      now.matches.sort(byHost),
      newest?.lobbies
        .map(({ hostName, players }) => ({ hostName, currentPlayers: players, maxPlayers: 0, timestamp }))
        .sort(byHost)
    )
    t.match(await service.get(`/api/title/${titleId}/matches/stats`), statsOf(lists))
  })
  return lists
}

/** Writes the rows shuffled, compressed and with the column names of the file, and imports them. */
async function importRows(t: Test, { service, titleId }: Target, name: string, rows: readonly Row[]): Promise<unknown> {
  const file = join(service.directory, `${titleId}-${name}.jsonl.gz`)
  // Duplicate rows keep their order: the last one counts.
  const placed = rows.map((row, at) => ({ row, place: (hash(row.id) * 7919) % 1009, at }))
  placed.sort((a, b) => a.place - b.place || a.at - b.at)
  await writeFile(file, gzipSync(placed.map(({ row }) => JSON.stringify(row)).join('\n')))
  const [report] = z
    .array(z.unknown())
    .parse(
      await gamenetJson(service.environment, [
        'import',
        'match-list',
        file,
        '--columns',
        'observedAt=ts,hostName=id,currentPlayers=players',
        '--set',
        `titleId=${titleId}`
      ])
    )
  t.ok(rows.length > 0)
  return report
}

/** The open lobbies of every instant; of duplicate rows the last one. */
function listsOf(rows: readonly Row[]): List[] {
  const instants = new Map<number, Map<string, number>>()
  for (const { ts, id, players } of rows) {
    const ms = millisecondsOf(ts)
    const lobbies = instants.get(ms) ?? new Map<string, number>()
    instants.set(ms, lobbies.set(id, players))
  }
  return [...instants]
    .sort(([a], [b]) => a - b)
    .map(([ms, lobbies]) => ({
      ms,
      lobbies: [...lobbies].flatMap(([hostName, players]) => (players < 0 ? [] : [{ hostName, players }]))
    }))
}

/** A world that is open in successive lists is one match; newest first, of equal ones by name. */
function matchesOf(lists: readonly List[]): Match[] {
  const matches: Match[] = []
  let open = new Map<string, Match>()
  for (const { ms, lobbies } of lists) {
    const next = new Map<string, Match>()
    for (const { hostName, players } of lobbies) {
      const known = open.get(hostName)
      const match = known ?? { hostName, firstMs: ms, lastMs: ms, peak: players }
      if (known === undefined) matches.push(match)
      match.lastMs = ms
      match.peak = Math.max(match.peak, players)
      next.set(hostName, match)
    }
    open = next
  }
  return matches.sort((a, b) => b.firstMs - a.firstMs || (a.hostName < b.hostName ? -1 : 1))
}

function shown({ hostName, firstMs, lastMs, peak }: Match, newestMs: number): unknown {
  return {
    hostName,
    firstSeen: shownInstant(firstMs),
    lastSeen: shownInstant(lastMs),
    durationMinutes: (lastMs - firstMs) / 60_000,
    peakPlayers: peak,
    maxPlayers: 0,
    isOpen: lastMs === newestMs && isRecent(newestMs)
  }
}

/** Whether the matches of a list can be open; no recorded one is that young. */
function isRecent(ms: number): boolean {
  return Date.now() - ms <= 10 * 60_000
}

function statsOf(lists: readonly List[]): unknown {
  const nowMs = Date.now()
  const newest = lists.at(-1)
  const current = newest !== undefined && isRecent(newest.ms) ? newest.lobbies : []
  const matches = matchesOf(lists)
  const within = (days: number) => matches.filter(({ lastMs }) => lastMs >= nowMs - days * DAY_MS).length
  const lobbies = lists.flatMap((list) => list.lobbies)
  const most = lists.toSorted((a, b) => b.lobbies.length - a.lobbies.length || a.ms - b.ms)[0]
  const hosts = new Map<string, number>()
  for (const { hostName } of matches) hosts.set(hostName, (hosts.get(hostName) ?? 0) + 1)
  const clockHours = new Set(lists.map(({ ms }) => Math.floor(ms / 3_600_000))).size
  const hours = Array.from({ length: 24 }, (_, hour) => {
    const of = lists.filter(({ ms }) => new Date(ms).getUTCHours() === hour)
    return { hour, mean: of.length === 0 ? -1 : playersOf(of.flatMap((list) => list.lobbies)) / of.length }
  })
  return {
    currentMatches: current.length,
    currentPlayers: playersOf(current),
    matches24h: within(1),
    matches7d: within(7),
    matches30d: matches.length,
    peakConcurrentMatches: most?.lobbies.length,
    peakConcurrentMatchesAt: shownInstant(most?.ms ?? 0),
    averageDurationMinutes: toTenths(
      matches.reduce((sum, { firstMs, lastMs }) => sum + (lastMs - firstMs) / 60_000, 0) / matches.length
    ),
    averagePlayers: toTenths(playersOf(lobbies) / lobbies.length),
    busiestHourUtc: clockHours < 24 ? null : hours.toSorted((a, b) => b.mean - a.mean || a.hour - b.hour)[0]?.hour,
    hoursWithLists: clockHours,
    topHosts: [...hosts]
      .map(([hostName, count]) => ({ hostName, matches: count }))
      .sort((a, b) => b.matches - a.matches || (a.hostName < b.hostName ? -1 : 1))
      .slice(0, 10)
  }
}

function playersOf(lobbies: readonly Lobby[]): number {
  return lobbies.reduce((sum, { players }) => sum + players, 0)
}

function toTenths(value: number): number {
  return Math.round(value * 10) / 10
}

function hash(text: string): number {
  return [...text].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 65_521, 7)
}

function millisecondsOf(ts: string): number {
  return Date.parse(`${ts.replace(' ', 'T')}Z`)
}

function textOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19).replace('T', ' ')
}
