import type { ClickHouse } from '@gamenet/engines'
import { achievements, nameKey } from '@gamenet/schemas'
import { type Stand, standsByPlayer } from './stand-model.js'

/*
 * The achievements of all users, computed from the rows of the read tables by an independent implementation of the rules in
 * plain code.
 */

const HOUR_S = 3600
const DAY_MS = 86_400_000

type Day = {
  readonly day: number
  readonly at: number
  readonly isSeen: boolean
  readonly seconds: ReadonlyMap<string, number>
}
type Reign = { readonly board: string; readonly from: number; readonly to: number }
type Facts = {
  readonly days: Day[]
  readonly stands: Stand[]
  readonly reigns: Reign[]
  readonly received: { readonly at: number; readonly stars: number }[]
  readonly given: { readonly at: number; readonly comment: boolean }[]
  readonly profile: { readonly at: number; bio: string; isVerified: boolean; chat: string } | undefined
}
type Rule = (facts: Facts) => number | undefined

/** Returns the instants of all unlocks, by `<user_key>/<achievement id>`. */
export async function reachedNow(tables: ClickHouse, nowMs: number): Promise<Map<string, number>> {
  const facts = await factsByUser(tables, nowMs)
  const reached = new Map<string, number>()
  for (const [userKey, known] of facts) {
    for (const { id, key } of achievements) {
      const at = ruleOf(key)(known)
      if (at !== undefined) reached.set(`${userKey}/${id}`, at)
    }
  }
  return reached
}

function ruleOf(key: string): Rule {
  const rule = RULES[key]
  if (rule === undefined) throw new Error(`The model has no rule for ${key}.`)
  return rule
}

const nth = (n: number, list: readonly number[]): number | undefined => list.toSorted((a, b) => a - b)[n - 1]
const sum = (numbers: Iterable<number>): number => [...numbers].reduce((a, b) => a + b, 0)
const total = ({ seconds }: Day): number => sum(seconds.values())
const ends = (list: readonly Day[]): number[] => list.map(({ at }) => at)

const seen =
  (n: number): Rule =>
  ({ days }) =>
    nth(n, ends(days.filter(({ isSeen }) => isSeen)))
const day =
  (is: (day: Day, days: readonly Day[]) => boolean): Rule =>
  ({ days }) =>
    nth(1, ends(days.filter((each) => each.seconds.size > 0 && is(each, days))))
const hours =
  (n: number, game?: string): Rule =>
  ({ days }) => {
    let played = 0
    for (const each of days) {
      played += game === undefined ? total(each) : (each.seconds.get(nameKey(game)) ?? 0)
      if (each.seconds.size > 0 && played >= n * HOUR_S) return each.at
    }
    return undefined
  }
const games =
  (n: number): Rule =>
  ({ days }) => {
    const firsts = new Map<string, number>()
    for (const { seconds, at } of days) for (const game of seconds.keys()) firsts.set(game, firsts.get(game) ?? at)
    return nth(n, [...firsts.values()])
  }
const stands =
  (n: number, is: (stand: Stand) => boolean = () => true): Rule =>
  (facts) =>
    nth(
      n,
      first(
        facts.stands.filter(is),
        ({ board }) => board,
        ({ at }) => at
      )
    )
const first = <Each>(list: readonly Each[], what: (each: Each) => string, at: (each: Each) => number): number[] => {
  const firsts = new Map<string, number>()
  for (const each of list)
    firsts.set(what(each), Math.min(firsts.get(what(each)) ?? Number.POSITIVE_INFINITY, at(each)))
  return [...firsts.values()]
}
const records =
  (n: number): Rule =>
  ({ reigns }) =>
    nth(
      n,
      first(
        reigns,
        ({ board }) => board,
        ({ from }) => from
      )
    )
const stars =
  (n: number, is: (stars: number) => boolean = () => true): Rule =>
  ({ received }) =>
    nth(
      n,
      received.filter((each) => is(each.stars)).map(({ at }) => at)
    )
const says =
  (is: (profile: NonNullable<Facts['profile']>) => boolean): Rule =>
  ({ profile }) =>
    profile !== undefined && is(profile) ? profile.at : undefined
const weekday = (day: number): number => new Date(day * DAY_MS).getUTCDay()
const isPlayed = (days: readonly Day[], number: number): boolean =>
  days.some(({ day, seconds }) => day === number && seconds.size > 0)

const RULES: Readonly<Record<string, Rule>> = {
  'first-light': seen(1),
  regular: seen(7),
  'part-of-the-furniture': seen(30),
  resident: seen(100),
  'year-round': seen(365),
  weekender: day((each, days) => weekday(each.day) === 0 && isPlayed(days, each.day - 1)),
  'warmed-up': hours(1),
  'ten-hours': hours(10),
  'fifty-hours': hours(50),
  'hundred-hours': hours(100),
  'five-hundred-hours': hours(500),
  'long-day': day((each) => total(each) >= 5 * HOUR_S),
  sampler: games(3),
  collector: games(10),
  curator: games(25),
  'double-feature': day(({ seconds }) => seconds.size >= 3),
  'on-the-board': stands(1),
  'all-rounder': stands(10),
  everywhere: stands(50),
  'top-hundred': stands(1, ({ rank, entries }) => rank <= 100 && entries > 100),
  'top-ten': stands(1, ({ rank, entries }) => rank <= 10 && entries > 10),
  podium: stands(1, ({ rank, entries }) => rank <= 3 && entries >= 10),
  'number-one': stands(1, ({ rank, entries }) => rank === 1 && entries >= 10),
  'five-tens': stands(5, ({ rank, entries }) => rank <= 10 && entries > 10),
  dynasty: stands(5, ({ rank, entries }) => rank === 1 && entries >= 10),
  globetrotter: (facts) =>
    nth(
      5,
      first(
        facts.stands,
        ({ title }) => title,
        ({ at }) => at
      )
    ),
  'record-holder': records(1),
  'hat-trick': records(3),
  'one-for-the-books': ({ reigns }) =>
    nth(
      1,
      reigns.filter(({ from, to }) => to - from >= 30 * DAY_MS).map(({ from }) => from + 30 * DAY_MS)
    ),
  'first-word': ({ given }) =>
    nth(
      1,
      given.map(({ at }) => at)
    ),
  critic: ({ given }) =>
    nth(
      10,
      given.map(({ at }) => at)
    ),
  'well-spoken': ({ given }) =>
    nth(
      1,
      given.filter(({ comment }) => comment).map(({ at }) => at)
    ),
  noticed: stars(1),
  'household-name': stars(10),
  'five-stars': stars(5, (each) => each === 5),
  introduced: says(({ bio }) => bio.trim() !== ''),
  itsame: says(({ isVerified }) => isVerified),
  'good-company': says(({ chat }) => chat !== ''),
  'halo-hour': hours(1, 'Halo 2'),
  'halo-day': hours(24, 'Halo 2'),
  'battlefront-hour': hours(1, 'Star Wars: Battlefront II'),
  'battlefront-day': hours(24, 'Star Wars: Battlefront II'),
  'gotham-hour': hours(1, 'Project Gotham Racing 2'),
  'gotham-board': stands(1, ({ title }) => title === '4d53004b'),
  'gotham-ten': stands(1, ({ title, rank }) => title === '4d53004b' && rank <= 10),
  'counter-strike-hour': hours(1, 'Counter-Strike'),
  'skies-hour': hours(1, 'Crimson Skies: High Road to Revenge'),
  'mechs-hour': hours(1, 'MechAssault'),
  'auld-lang-syne': day((each) => new Date(each.day * DAY_MS).toISOString().slice(5, 10) === '01-01'),
  'tough-crowd': stars(1, (each) => each === 1),
  comeback: day((each, days) => {
    const before = days.filter(({ day, seconds }) => day < each.day && seconds.size > 0).at(-1)
    return before !== undefined && each.day - before.day > 365
  }),
  'shared-glory': stands(1, ({ rank, isShared }) => rank === 1 && isShared)
}

async function factsByUser(tables: ClickHouse, nowMs: number): Promise<Map<string, Facts>> {
  const rows = async (sql: string) => await tables.readers.rows(sql, {})
  const users = new Map<string, Facts>()
  const profiles = new Map<string, NonNullable<Facts['profile']>>()
  const of = (userKey: unknown): Facts => {
    const key = String(userKey)
    const known = users.get(key) ?? {
      days: [],
      stands: [],
      reigns: [],
      received: [],
      given: [],
      profile: profiles.get(key)
    }
    users.set(key, known)
    return known
  }
  const namesOf = new Map<string, Set<string>>()
  const named = (userKey: unknown, playerKey: unknown) =>
    namesOf.set(String(userKey), (namesOf.get(String(userKey)) ?? new Set()).add(String(playerKey)))
  for (const row of await rows(`SELECT p.user_key, toUnixTimestamp64Milli(p.ts) AS at, p.bio AS bio,
      p.console_verified AS is_verified, p.chat_profile_url AS chat, p.linked_gamertag AS tag FROM profile AS p FINAL`)) {
    const isVerified = row.is_verified === true
    profiles.set(String(row.user_key), { at: Number(row.at), bio: String(row.bio), isVerified, chat: String(row.chat) })
    of(row.user_key)
    if (isVerified && row.tag !== '') named(row.user_key, nameKey(String(row.tag)))
  }
  for (const row of await rows(`SELECT DISTINCT e.user_key, e.gamertag AS tag FROM event_presence AS e
      WHERE e.gamertag != ''`))
    named(row.user_key, nameKey(String(row.tag)))
  for (const row of await rows(`SELECT d.user_key, toUInt32(d.day) AS day, toUnixTimestamp64Milli(d.last_at) AS at,
      d.online_sightings AS online, d.seconds AS seconds FROM presence_day AS d FINAL ORDER BY d.day`)) {
    const seconds = new Map<string, number>()
    for (const [game, played] of Object.entries(row.seconds as Record<string, number>)) {
      seconds.set(nameKey(game), (seconds.get(nameKey(game)) ?? 0) + played)
    }
    of(row.user_key).days.push({ day: Number(row.day), at: Number(row.at), isSeen: Number(row.online) > 0, seconds })
  }
  for (const row of await rows(`SELECT r.user_key, r.rater_key, r.stars AS stars, r.comment AS comment,
      toUnixTimestamp64Milli(r.ts) AS at FROM rating AS r FINAL`)) {
    of(row.user_key).received.push({ at: Number(row.at), stars: Number(row.stars) })
    of(row.rater_key).given.push({ at: Number(row.at), comment: row.comment !== null })
  }
  const byPlayer = await boardsByPlayer(tables, nowMs)
  for (const [userKey, names] of namesOf) {
    for (const name of names) {
      of(userKey).reigns.push(...(byPlayer.reigns.get(name) ?? []))
      of(userKey).stands.push(...(byPlayer.stands.get(name) ?? []))
    }
  }
  return users
}

async function boardsByPlayer(tables: ClickHouse, nowMs: number) {
  const stands = await standsByPlayer(tables)
  const boardOf = (row: Record<string, unknown>) => `${row.title}/${row.id}`
  const reigns = new Map<string, Reign[]>()
  for (const row of await tables.readers.rows(
    `SELECT h.title_id AS title, h.leaderboard_id AS id, g.1 AS player, toUnixTimestamp64Milli(g.2) AS from_ms,
       toUnixTimestamp64Milli(g.3) AS to_ms
     FROM record_history AS h FINAL ARRAY JOIN arrayZip(h.players, h.from_at, h.to_at) AS g`,
    {}
  )) {
    if (row.to_ms === row.from_ms) continue
    const key = nameKey(String(row.player))
    const reign = { board: boardOf(row), from: Number(row.from_ms), to: row.to_ms === null ? nowMs : Number(row.to_ms) }
    reigns.set(key, [...(reigns.get(key) ?? []), reign])
  }
  return { stands, reigns }
}
