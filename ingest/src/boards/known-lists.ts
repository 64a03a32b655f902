import type { ReadTables } from '@gamenet/schemas'
import type { KnownBoard } from '../sources/leaderboard.js'

/** The boards of each of the titles as the tables have them: by title, then by board. */
export async function knownLists(
  tables: ReadTables,
  titleIds: readonly string[],
  signal: AbortSignal
): Promise<Map<string, Map<number, KnownBoard>>> {
  const lists = new Map(titleIds.map((titleId) => [titleId, new Map<number, KnownBoard>()]))
  const rows = await tables.rows(
    `SELECT l.title_id AS titleId, l.leaderboard_id AS leaderboardId, argMax(l.name, (l.ts, l.position)) AS name,
       argMax(l.listed, (l.ts, l.position)) AS listed, toUnixTimestamp64Milli(max(l.ts)) AS observedAtMs
     FROM leaderboard AS l WHERE l.title_id IN {titleIds: Array(String)}
     GROUP BY l.title_id, l.leaderboard_id`,
    { titleIds },
    { signal }
  )
  for (const row of rows) {
    const known = { name: String(row.name), listed: row.listed === true, observedAtMs: Number(row.observedAtMs) }
    lists.get(String(row.titleId))?.set(Number(row.leaderboardId), known)
  }
  return lists
}

/** Titles whose pages may have boards: all that pages, not files, told of, except those that are known to have none. */
export async function titlesWithBoards(tables: ReadTables, signal: AbortSignal): Promise<string[]> {
  const rows = await tables.rows(
    `SELECT DISTINCT e.title_id AS titleId FROM event_title AS e
     WHERE e.import_id = '' AND e.title_id NOT IN (
       SELECT t.title_id FROM title AS t FINAL
       WHERE t.field = 'features' AND NOT has(splitByChar(',', t.value), 'leaderboards'))
     ORDER BY e.title_id`,
    {},
    { signal }
  )
  return rows.map((row) => String(row.titleId))
}
