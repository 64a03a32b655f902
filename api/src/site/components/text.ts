const counts = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const compacts = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const days = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric', timeZone: 'UTC' })
const months = new Intl.DateTimeFormat('en-GB', { month: 'short', year: 'numeric', timeZone: 'UTC' })
const MINUTE_MS = 60_000
export const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS

export const WEEKDAYS = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'] as const

/** Returns an integer with separators: `5,837`. */
export const count = (value: number): string => counts.format(value)

/** Returns a short number for axes: `5.8K`. */
export const compact = (value: number): string => compacts.format(value)

/** Returns a share of one as a percentage: `25 %`; below ten percent with a digit behind the point. */
export function percent(share: number): string {
  const value = share * 100
  return `${Math.abs(value) < 10 && value !== 0 ? value.toFixed(1) : value.toFixed(0)} %`
}

/** Returns the number with its noun: `1 board`, `2 boards`. */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`
}

/** Returns the milliseconds of an instant in an answer: ISO 8601, or `YYYY-MM-DD HH:MM:SS` in UTC. */
export function msOf(instant: string): number {
  return Date.parse(instant.includes('T') || instant.length === 10 ? instant : `${instant.replace(' ', 'T')}Z`)
}

/** Returns a day as people write it: `7 Nov 2026`. */
export function dayText(instant: string | number): string {
  return days.format(typeof instant === 'number' ? instant : msOf(instant))
}

/** Returns a month: `Nov 2026`. */
export const monthText = (day: string): string => months.format(msOf(day))

/** Returns an instant in UTC: `7 Nov 2026 18:50`. */
export const instantText = (ms: number): string => `${dayText(ms)} ${new Date(ms).toISOString().slice(11, 16)}`

/** Returns a duration in its largest unit: `81 days`, `3 hours`. */
export function spanText(ms: number): string {
  if (ms >= 2 * DAY_MS) return plural(Math.floor(ms / DAY_MS), 'day')
  if (ms >= 2 * HOUR_MS) return plural(Math.floor(ms / HOUR_MS), 'hour')
  return plural(Math.max(1, Math.round(ms / MINUTE_MS)), 'minute')
}

/** Returns play time: `45 h`, `12 min`. */
export function playText(minutes: number): string {
  return minutes >= 60 ? `${count(minutes / 60)} h` : `${count(minutes)} min`
}

/** Returns the players of a match and its slots: `7/16`. */
export const slotsText = (players: number, most: number): string => `${players}/${most === 0 ? '?' : most}`

/** Returns the words of a name in an address: lower-case letters and digits of any script, joined by hyphens. */
export function slugOf(name: string): string {
  const words =
    name
      .normalize('NFC')
      .toLowerCase()
      .match(/[\p{L}\p{M}\p{N}]+/gu) ?? []
  return words.join('-').slice(0, 60) || 'game'
}

/** The first letter or digit of a name. */
export const letterOf = (name: string): string => (/[\p{L}\p{N}]/u.exec(name)?.[0] ?? '·').toUpperCase()

type Named = { readonly titleId: string; readonly name: string }

/** A title's shown name without the id that tells it from another of the same name. */
const bareName = ({ titleId, name }: Named): string => name.replace(` [${titleId}]`, '')

/** Returns the address of a game. */
export function gamePath(title: Named): string {
  return `/games/${title.titleId}/${encodeURIComponent(slugOf(bareName(title)))}`
}

/** Returns the address of a board. */
export function boardPath(title: Named, leaderboardId: number | string): string {
  return `${gamePath(title)}/boards/${leaderboardId}`
}

/** Returns the address of a player. Dots alone would be resolved as a path, also when they are encoded. */
export const playerPath = (name: string): string => `/players/${encodeURIComponent(name)}`

/** Returns the address of a user. */
export const userPath = (username: string): string => `/users/${encodeURIComponent(username)}`

/** Returns an address with a query; undefined values are left out. */
export function withQuery(path: string, query: Readonly<Record<string, string | number | undefined>>): string {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === ''
      ? []
      : [`${name}=${encodeURIComponent(String(value)).replace(/%2C|%3A/g, decodeURIComponent)}`]
  )
  return pairs.length === 0 ? path : `${path}?${pairs.join('&')}`
}

/** Returns rows by key, in the order of the first of each. */
export function groupedBy<Row>(rows: readonly Row[], keyOf: (row: Row) => string): Map<string, Row[]> {
  const groups = new Map<string, Row[]>()
  for (const row of rows) {
    const key = keyOf(row)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [row])
    else group.push(row)
  }
  return groups
}
