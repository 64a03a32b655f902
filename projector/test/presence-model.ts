import type { Tables } from '../src/index.js'

/** A sighting with its position in the log. */
export type PlacedSighting = {
  readonly userKey: string
  readonly username: string
  readonly gamertag: string
  readonly gamertagKey: string
  readonly ms: number
  readonly isOnline: boolean
  readonly game: string
  readonly periodS: number
  readonly position: number
}

/** The rows of the tables of presence as lines, in order. */
export type PresenceTables = Readonly<Record<'presence' | 'latest' | 'gamertag' | 'day', readonly string[]>>

const DAY_S = 86_400

/** Returns the expected rows after these events, computed plainly. */
export function presenceTablesOf(events: readonly PlacedSighting[]): PresenceTables {
  const users = [...new Set(events.map(({ userKey }) => userKey))]
  const byUser = users.map((userKey) => events.filter((event) => event.userKey === userKey))
  return {
    presence: byUser
      .flatMap(sightingsOf)
      .map((s) => line(s.userKey, s.ms, s.isOnline, s.game, s.periodS, s.position))
      .sort(),
    latest: byUser.flatMap(latestOf).sort(),
    gamertag: [...new Set(events.flatMap((e) => (e.gamertag === '' ? [] : [line(e.gamertagKey, e.userKey)])))].sort(),
    day: byUser.flatMap(daysOf).sort()
  }
}

/** Reads the rows. Days without play time are left out, because readers do not see them. */
export async function readPresenceTables(tables: Tables): Promise<PresenceTables> {
  const lines = async (sql: string) =>
    (await tables.rows(sql)).map((row) => line(...Object.values(row).map((value) => value ?? ''))).sort()
  return {
    presence: await lines(
      `SELECT p.user_key AS user, toString(toUnixTimestamp64Milli(p.ts)) AS ms, p.is_online AS is_online,
         toString(p.game) AS game, p.period_s AS period_s, toString(p.position) AS position
       FROM presence AS p FINAL`
    ),
    latest: await lines(
      `SELECT l.user_key AS user, toString(l.field) AS field, l.value AS value, l.value_key AS value_key,
         toString(toUnixTimestamp64Milli(l.ts)) AS ms
       FROM presence_latest AS l FINAL`
    ),
    gamertag: await lines('SELECT g.gamertag_key AS gamertag_key, g.user_key AS user FROM user_gamertag AS g FINAL'),
    day: await lines(
      `SELECT d.user_key AS user, toUInt32(d.day) AS day, d.sightings AS sightings, d.online_sightings AS online_sightings,
         toString(toUnixTimestamp64Milli(d.last_at)) AS last_ms,
         arraySort(arrayZip(mapKeys(d.seconds), mapValues(d.seconds))) AS seconds
       FROM presence_day AS d FINAL WHERE d.sightings > 0 OR notEmpty(d.seconds)`
    )
  }
}

/** Returns play time: the whole seconds by game of one user's sightings, by day number. */
export function playedOf(ordered: readonly PlacedSighting[]): Map<number, Map<string, number>> {
  const days = new Map<number, Map<string, number>>()
  ordered.forEach((b, n) => {
    const a = ordered[n - 1]
    if (a === undefined || !a.isOnline || !b.isOnline || b.game === '' || a.game !== b.game) return
    if (b.ms - a.ms > 3000 * b.periodS) return
    const endS = Math.floor(b.ms / 1000)
    for (let s = Math.floor(a.ms / 1000); s < endS; ) {
      const day = Math.floor(s / DAY_S)
      const next = Math.min(endS, (day + 1) * DAY_S)
      const games = days.get(day) ?? new Map<string, number>()
      days.set(day, games.set(b.game, (games.get(b.game) ?? 0) + next - s))
      s = next
    }
  })
  return days
}

/** Returns one sighting per instant, in order: of several the last in the log. */
export function sightingsOf(events: readonly PlacedSighting[]): PlacedSighting[] {
  const byInstant = new Map<number, PlacedSighting>()
  for (const event of events.toSorted((a, b) => a.position - b.position)) byInstant.set(event.ms, event)
  return [...byInstant.values()].sort((a, b) => a.ms - b.ms)
}

function daysOf(events: readonly PlacedSighting[]): string[] {
  const ordered = sightingsOf(events)
  const played = playedOf(ordered)
  const dayOf = ({ ms }: PlacedSighting) => Math.floor(ms / 1000 / DAY_S)
  const days = new Set([...ordered.map(dayOf), ...played.keys()])
  return [...days].map((day) => {
    const seen = ordered.filter((sighting) => dayOf(sighting) === day)
    const online = seen.filter(({ isOnline }) => isOnline)
    const lastMs = seen.at(-1)?.ms ?? (day + 1) * DAY_S * 1000
    const seconds = [...(played.get(day) ?? [])].sort(([a], [b]) => (a < b ? -1 : 1))
    return line(events[0]?.userKey, day, seen.length, online.length, lastMs, seconds)
  })
}

function latestOf(events: readonly PlacedSighting[]): string[] {
  const fields: Record<string, (event: PlacedSighting) => readonly [string, string] | undefined> = {
    username: (e) => [e.username, ''],
    seen: (e) => [e.isOnline ? 'online' : 'offline', ''],
    period: (e) => (e.isOnline ? [String(e.periodS), ''] : undefined),
    online: (e) => (e.isOnline ? [e.game, ''] : undefined),
    game: (e) => (e.isOnline && e.game !== '' ? [e.game, ''] : undefined),
    gamertag: (e) => (e.gamertag === '' ? undefined : [e.gamertag, e.gamertagKey])
  }
  return Object.entries(fields).flatMap(([field, shownBy]) => {
    const saying = events.filter((event) => shownBy(event) !== undefined)
    const newest = saying.sort((a, b) => a.ms - b.ms || a.position - b.position).at(-1)
    return newest === undefined ? [] : [line(newest.userKey, field, ...(shownBy(newest) ?? []), newest.ms)]
  })
}

function line(...values: readonly unknown[]): string {
  return values.map((value) => (Array.isArray(value) ? JSON.stringify(value) : String(value))).join('|')
}
