import { nameKey, type RankGoal, rankGoals } from '@gamenet/schemas'
import { USER_PLAYERS } from './user-players.js'

/*
 * facts   a SELECT over the read tables with at most one row `f` per user of `{users}` (Array(String), user_keys). Its
 *         lists are ordered, oldest first. Instants are milliseconds since 1970
 * rule    facts, and an expression over a row of them: the instant at which it was reached, or NULL. Rules with the
 *         same facts share one SELECT, because reading the facts dominates the cost
 *
 * A rule about a day is reached at the last sighting of that day; a rank on a board when the user first had it, by any
 * move; a rating when it was given. A rule that needs n facts is reached at the n-th oldest.
 */

/** The condition for an achievement. */
export type Rule = { readonly facts: string; readonly reached: string }

/** Returns the n-th instant of a list, or NULL if the list is shorter. */
const nth = (n: number, instants: string): string => `arrayElementOrNull(${instants}, ${n})`

/**
 * Days on which the user was seen online: `seen`, their ends.
 * Days on which the user played: `days` (day numbers), `ends`, `played` (seconds) and `counts` (games).
 * Games per day, unordered: `play_games`, `play_ends`, `play_seconds`. A game is the key of its name. ClickHouse cannot
 * compute our keys, so `{game_keys}` has the keys of the names in `{games}`; any other name is its own key.
 * Of several rows of a day, the one with the highest position counts, then the one stored last. FINAL returns the same
 * in twice the time; lists of maps take twice as long as lists of numbers.
 */
const DAYS = `
  SELECT s.user_key AS user_key,
    arraySort(groupArrayIf(s.end, s.online > 0)) AS seen,
    groupArrayIf(s.day, s.count > 0) AS any_days, arraySort(any_days) AS days,
    arraySort(groupArrayIf(s.end, s.count > 0)) AS ends,
    arraySort((x, day) -> day, groupArrayIf(s.played, s.count > 0), any_days) AS played,
    arraySort((x, day) -> day, groupArrayIf(s.count, s.count > 0), any_days) AS counts,
    groupArrayArray(s.games) AS play_games,
    groupArrayArray(arrayMap(game -> s.end, s.games)) AS play_ends,
    groupArrayArray(s.seconds) AS play_seconds
  FROM (
    SELECT d.user_key AS user_key, toInt32(d.day) AS day, toUnixTimestamp64Milli(d.last_at) AS end,
      d.online_sightings AS online, mapValues(d.seconds) AS seconds,
      arrayMap(game -> transform(game, {games: Array(String)}, {game_keys: Array(String)}, game),
      mapKeys(d.seconds)) AS games,
      arraySum(mapValues(d.seconds)) AS played, arrayUniq(games) AS count
    FROM {presence_day: Identifier} AS d WHERE d.user_key IN {users: Array(String)}
    ORDER BY d.user_key, d.day, d.position DESC, toUInt64(splitByChar('_', d._part)[2]) DESC
    LIMIT 1 BY d.user_key, d.day) AS s
  GROUP BY s.user_key`

export const daysSeen = (days: number): Rule => ({ facts: DAYS, reached: nth(days, 'f.seen') })

export const played = (hours: number): Rule => ({ facts: DAYS, reached: summed('f.ends', 'f.played', hours * 3600) })

export function playedGame(game: string, hours: number): Rule {
  const ofGame = (list: string) => `arrayFilter((x, game) -> game = '${nameKey(game)}', ${list}, f.play_games)`
  const ends = ofGame('f.play_ends')
  const seconds = `arraySort((x, at) -> at, ${ofGame('f.play_seconds')}, ${ends})`
  return { facts: DAYS, reached: summed(`arraySort(${ends})`, seconds, hours * 3600) }
}

/** Returns the first instant at which the running sum of amounts reaches a total. */
function summed(instants: string, amounts: string, total: number): string {
  return nth(1, `arrayFilter((at, sum) -> sum >= ${total}, ${instants}, arrayCumSum(${amounts}))`)
}

export function playedOnOneDay(hours: number): Rule {
  return { facts: DAYS, reached: nth(1, `arrayFilter((at, played) -> played >= ${hours * 3600}, f.ends, f.played)`) }
}

export function gamesOnOneDay(games: number): Rule {
  return { facts: DAYS, reached: nth(1, `arrayFilter((at, count) -> count >= ${games}, f.ends, f.counts)`) }
}

export function gamesPlayed(games: number): Rule {
  const inOrder = 'arrayEnumerateUniq(arraySort((game, at) -> at, f.play_games, f.play_ends))'
  return {
    facts: DAYS,
    reached: nth(games, `arrayFilter((at, number) -> number = 1, arraySort(f.play_ends), ${inOrder})`)
  }
}

export function weekend(): Rule {
  // A lambda that captures another list copies it per element: gigabytes for years of days.
  const isSunday = '(at, day, since) -> toDayOfWeek(toDate(day)) = 7 AND since = 1'
  return { facts: DAYS, reached: nth(1, `arrayFilter(${isSunday}, f.ends, f.days, arrayDifference(f.days))`) }
}

export function newYear(): Rule {
  return { facts: DAYS, reached: nth(1, 'arrayFilter((at, day) -> toDayOfYear(toDate(day)) = 1, f.ends, f.days)') }
}

export function comeback(days: number): Rule {
  return {
    facts: DAYS,
    reached: nth(1, `arrayFilter((at, since) -> since > ${days}, f.ends, arrayDifference(f.days))`)
  }
}

/** Returns the instants of list `x`, oldest first, at which a value (a title, a board) occurs for the first time. */
function firsts(list: string, what: string, instant: string): string {
  return `arrayMap(x -> ${instant}, arrayFilter((x, number) -> number = 1, ${list},
    arrayEnumerateUniq(arrayMap(x -> ${what}, ${list}))))`
}

/** The names on boards that belong to the user. */
const OWN_NAMES = `SELECT k.player_key FROM (${USER_PLAYERS}) AS k WHERE k.user_key IN {users: Array(String)}`

/**
 * `boards`: when the user first stood on a board (goal 0) or first reached a goal on it, as (instant, title, goal),
 * oldest first.
 */
const BOARDS = `
  SELECT b.user_key AS user_key, arraySort(groupArray((b.at, b.title_id, b.goal))) AS boards
  FROM (
    SELECT u.user_key AS user_key, r.title_id AS title_id, r.leaderboard_id AS leaderboard_id, r.goal AS goal,
      min(r.at) AS at
    FROM (
      SELECT p.player_key AS player_key, toString(p.title_id) AS title_id, p.leaderboard_id AS leaderboard_id,
        toUInt8(0) AS goal, toUnixTimestamp64Milli(p.first_at) AS at
      FROM {player_entry: Identifier} AS p FINAL WHERE p.player_key IN (${OWN_NAMES})
        AND p.first_at > toDateTime64(0, 3, 'UTC')
      UNION ALL
      SELECT g.1 AS player_key, toString(h.title_id) AS title_id, h.leaderboard_id AS leaderboard_id,
        g.2 AS goal, toUnixTimestamp64Milli(g.3) AS at
      FROM {rank_reached: Identifier} AS h FINAL ARRAY JOIN arrayZip(h.player_keys, h.goals, h.reached_at) AS g
      WHERE g.1 IN (${OWN_NAMES}) AND (h.title_id, h.leaderboard_id) IN (
        SELECT p.title_id, p.leaderboard_id FROM {player_entry: Identifier} AS p
          WHERE p.player_key IN (${OWN_NAMES}))) AS r
    JOIN (SELECT k.user_key, k.player_key FROM (${USER_PLAYERS}) AS k WHERE k.user_key IN {users: Array(String)}) AS u
      ON u.player_key = r.player_key
    GROUP BY u.user_key, r.title_id, r.leaderboard_id, r.goal) AS b
  GROUP BY b.user_key`

/** Returns the instants of the user's boards `b` that meet a condition. */
const boardsWhere = (condition: string): string => `arrayMap(b -> b.1, arrayFilter(b -> ${condition}, f.boards))`

export const boards = (count: number): Rule => ({ facts: BOARDS, reached: nth(count, boardsWhere('b.3 = 0')) })

export function boardOf(titleId: string): Rule {
  return { facts: BOARDS, reached: nth(1, boardsWhere(`b.2 = '${titleId}' AND b.3 = 0`)) }
}

export function boardGames(count: number): Rule {
  return { facts: BOARDS, reached: nth(count, firsts('arrayFilter(b -> b.3 = 0, f.boards)', 'x.2', 'x.1')) }
}

/** The rule for a rank, or better, on `count` boards with at least `entries` entries, optionally of one title. */
export function ranked(rank: number, count: number, entries: number, titleId?: string): Rule {
  const goal = goalOf((each) => each.rank === rank && each.entries === entries && each.isShared !== true)
  const isOfTitle = titleId === undefined ? '' : ` AND b.2 = '${titleId}'`
  return { facts: BOARDS, reached: nth(count, boardsWhere(`b.3 = ${goal}${isOfTitle}`)) }
}

export function sharedFirst(): Rule {
  return { facts: BOARDS, reached: nth(1, boardsWhere(`b.3 = ${goalOf((each) => each.isShared === true)}`)) }
}

function goalOf(is: (goal: RankGoal) => boolean): number {
  const goal = rankGoals.find(is)
  if (goal === undefined) throw new Error('A rule needs a rank that is not in rankGoals: add it there.')
  return goal.id
}

/**
 * `reigns`: the reigns over boards' records as (beginning, board, end). A current reign ends at `{now_ms}`. A reign of
 * length zero is ignored: another player was better at the same instant.
 */
const REIGNS = `
  SELECT u.user_key AS user_key, arraySort(groupArray((r.from_ms, r.title_id, r.leaderboard_id, r.to_ms))) AS reigns
  FROM (
    SELECT h.title_id AS title_id, h.leaderboard_id AS leaderboard_id, g.1 AS player,
      toUnixTimestamp64Milli(g.2) AS from_ms,
      ifNull(toUnixTimestamp64Milli(g.3), {now_ms: Int64}) AS to_ms
    FROM {record_history: Identifier} AS h FINAL
    ARRAY JOIN arrayFilter(each -> each.3 IS NULL OR each.3 > each.2, arrayZip(h.players, h.from_at, h.to_at)) AS g
    WHERE g.1 IN (SELECT n.player FROM {player: Identifier} AS n WHERE n.player_key IN (${OWN_NAMES}))) AS r
  JOIN (SELECT n.player AS player, n.player_key AS player_key FROM {player: Identifier} AS n FINAL
    WHERE n.player_key IN (${OWN_NAMES})) AS p ON p.player = r.player
  JOIN (SELECT k.user_key, k.player_key FROM (${USER_PLAYERS}) AS k WHERE k.user_key IN {users: Array(String)}) AS u
    ON u.player_key = p.player_key
  GROUP BY u.user_key`

export function recordsHeld(count: number): Rule {
  return { facts: REIGNS, reached: nth(count, firsts('f.reigns', '(x.2, x.3)', 'x.1')) }
}

export function recordKept(days: number): Rule {
  const ms = days * 86_400_000
  return {
    facts: REIGNS,
    reached: nth(1, `arrayMap(r -> r.1 + ${ms}, arrayFilter(r -> r.4 - r.1 >= ${ms}, f.reigns))`)
  }
}

/** `ratings`: the ratings that the user received, as (instant, stars). */
const RECEIVED = `
  SELECT r.user_key AS user_key, arraySort(groupArray((toUnixTimestamp64Milli(r.ts), r.stars))) AS ratings
  FROM {rating: Identifier} AS r FINAL WHERE r.user_key IN {users: Array(String)} GROUP BY r.user_key`

function received(count: number, condition: string): Rule {
  return {
    facts: RECEIVED,
    reached: nth(count, `arrayMap(r -> r.1, arrayFilter(r -> ${condition}, f.ratings))`)
  }
}

export const ratingsReceived = (count: number): Rule => received(count, 'true')

export const fiveStars = (count: number): Rule => received(count, 'r.2 = 5')

export const starsReceived = (stars: number): Rule => received(1, `r.2 = ${stars}`)

/** `given`: the instants of the user's valid ratings of others. */
const GIVEN = `
  SELECT g.rater_key AS user_key, arraySort(groupArray(toUnixTimestamp64Milli(g.ts))) AS given
  FROM {rating_given: Identifier} AS g FINAL WHERE g.rater_key IN {users: Array(String)} GROUP BY g.rater_key`

export const ratingsGiven = (count: number): Rule => ({ facts: GIVEN, reached: nth(count, 'f.given') })

/** `comments`: the instants of the user's ratings with a comment. */
const COMMENTS = `
  SELECT r.rater_key AS user_key, arraySort(groupArray(toUnixTimestamp64Milli(r.ts))) AS comments
  FROM {rating: Identifier} AS r FINAL
  WHERE r.comment IS NOT NULL AND (r.user_key, r.rater_key) IN (
    SELECT g.user_key, g.rater_key FROM {rating_given: Identifier} AS g WHERE g.rater_key IN {users: Array(String)})
  GROUP BY r.rater_key`

export const commentsGiven = (count: number): Rule => ({ facts: COMMENTS, reached: nth(count, 'f.comments') })

/** The user's current profile. */
const PROFILE = `
  SELECT p.user_key AS user_key, toUnixTimestamp64Milli(p.ts) AS at, p.bio AS bio,
    p.console_verified AS console_verified, p.chat_profile_url AS chat_profile_url
  FROM {profile: Identifier} AS p FINAL WHERE p.user_key IN {users: Array(String)}`

export const profileSays = (condition: string): Rule => ({ facts: PROFILE, reached: `if(${condition}, f.at, NULL)` })
