import {
  type Achievement,
  type AchievementUnlocked,
  achievements,
  instantOf,
  isTableDropped,
  nameKey,
  type Parameters,
  type ReadTables
} from '@gamenet/schemas'
import { ruleOf, ruleStatement } from './achievement-rules.js'

/** Maximum number of users per query. */
export const CHUNK_USERS_MAX = 1000

/** Rules grouped by their facts. One group is one statement. */
const RULES_BY_FACTS: readonly (readonly Achievement[])[] = [
  ...achievements
    .reduce((byFacts, each) => {
      const { facts } = ruleOf(each)
      return byFacts.set(facts, [...(byFacts.get(facts) ?? []), each])
    }, new Map<string, Achievement[]>())
    .values()
]

const POINTS = new Map(achievements.map(({ id, points }) => [id, points]))

/** Finds achievements that users have reached and not unlocked, for at most {@link CHUNK_USERS_MAX} users. */
export async function findNewUnlocks(
  tables: ReadTables,
  users: readonly string[],
  nowMs: number,
  signal?: AbortSignal
): Promise<AchievementUnlocked[]> {
  const ask = (sql: string, parameters: Parameters) =>
    tables.rows(sql, parameters, signal === undefined ? {} : { signal })
  const held = await ask(
    `SELECT u.user_key AS user_key, groupUniqArray(u.achievement_id) AS ids FROM {achievement_unlock: Identifier} AS u
     WHERE u.user_key IN {users: Array(String)} GROUP BY u.user_key`,
    { users }
  )
  const heldBy = new Map(held.map((row) => [String(row.user_key), new Set((row.ids as unknown[]).map(Number))]))
  const games = await spelledGames(ask, users)
  const found: { userKey: string; achievementId: number; reachedMs: number }[] = []
  for (const rules of RULES_BY_FACTS) {
    const lacking = users.filter((userKey) => rules.some(({ id }) => heldBy.get(userKey)?.has(id) !== true))
    if (lacking.length === 0) continue
    const askRules = (some: readonly string[]) => ask(ruleStatement(rules), { users: some, now_ms: nowMs, ...games })
    for (const row of await inParts(askRules, lacking, signal)) {
      const userKey = String(row.user_key)
      for (const [id, ms] of row.reached as [unknown, unknown][]) {
        if (heldBy.get(userKey)?.has(Number(id)) !== true)
          found.push({ userKey, achievementId: Number(id), reachedMs: Number(ms) })
      }
    }
  }
  if (found.length === 0) return []
  const names = await usernames(ask, [...new Set(found.map(({ userKey }) => userKey))])
  return found
    .sort((a, b) => a.reachedMs - b.reachedMs || a.achievementId - b.achievementId || (a.userKey < b.userKey ? -1 : 1))
    .map(({ userKey, achievementId, reachedMs }) => ({
      username: names.get(userKey) ?? userKey,
      achievementId,
      points: POINTS.get(achievementId) ?? 0,
      unlockedAt: instantOf(reachedMs)
    }))
}

/**
 * Queries all users, or each half separately if that fails: the engine may lack the memory for all. Rejects if a single
 * user fails.
 */
async function inParts<Row>(
  ask: (users: readonly string[]) => Promise<Row[]>,
  users: readonly string[],
  signal: AbortSignal | undefined
): Promise<Row[]> {
  try {
    return await ask(users)
  } catch (error) {
    if (users.length < 2 || signal?.aborted === true || isTableDropped(error)) throw error
    const middle = Math.ceil(users.length / 2)
    const first = await inParts(ask, users.slice(0, middle), signal)
    return [...first, ...(await inParts(ask, users.slice(middle), signal))]
  }
}

/**
 * Returns the games that users played whose names differ from their keys, and the keys. Never empty, because the engine
 * rejects an empty list.
 */
async function spelledGames(
  ask: (sql: string, parameters: Parameters) => Promise<Record<string, unknown>[]>,
  users: readonly string[]
): Promise<{ games: string[]; game_keys: string[] }> {
  const rows = await ask(
    'SELECT DISTINCT arrayJoin(mapKeys(d.seconds)) AS game FROM {presence_day: Identifier} AS d WHERE d.user_key IN ' +
      '{users: Array(String)}',
    { users }
  )
  const games = rows.map(({ game }) => String(game)).filter((game) => nameKey(game) !== game)
  return { games: ['', ...games], game_keys: ['', ...games.map(nameKey)] }
}

/** Returns the spelling of usernames: from the profile, else the last sighting, else the ratings. */
async function usernames(
  ask: (sql: string, parameters: Parameters) => Promise<Record<string, unknown>[]>,
  users: readonly string[]
): Promise<Map<string, string>> {
  const rows = await ask(
    `SELECT n.user_key AS user_key, argMin(n.username, n.source) AS username
     FROM (
       SELECT p.user_key AS user_key, p.username AS username, 1 AS source
       FROM {profile: Identifier} AS p FINAL WHERE p.user_key IN {users: Array(String)}
       UNION ALL
       SELECT s.user_key AS user_key, s.value AS username, 2 AS source
       FROM {presence_latest: Identifier} AS s FINAL WHERE s.user_key IN {users: Array(String)} AND s.field = 'username'
       UNION ALL
       SELECT r.user_key AS user_key, r.username AS username, 3 AS source
       FROM {rating: Identifier} AS r WHERE r.user_key IN {users: Array(String)}
       UNION ALL
       SELECT r.rater_key AS user_key, r.rater AS username, 4 AS source
       FROM {rating: Identifier} AS r WHERE (r.user_key, r.rater_key) IN (
         SELECT g.user_key, g.rater_key FROM {rating_given: Identifier} AS g
           WHERE g.rater_key IN {users: Array(String)})
     ) AS n
     GROUP BY n.user_key`,
    { users }
  )
  return new Map(rows.map((row) => [String(row.user_key), String(row.username)]))
}
