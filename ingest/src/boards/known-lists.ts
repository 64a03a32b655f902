import type { ReadTables } from '@gamenet/schemas'
import type { KnownBoard } from '../sources/leaderboard.js'
import { DEPARTED_TITLES } from '../sources/title-status.js'

/** The boards of titles. */
export const KNOWN_LISTS = `
  SELECT l.title_id AS titleId, l.leaderboard_id AS leaderboardId, argMax(l.name, (l.ts, l.position)) AS name,
    argMax(l.listed, (l.ts, l.position)) AS listed, toUnixTimestamp64Milli(max(l.ts)) AS observedAtMs
  FROM {leaderboard: Identifier} AS l WHERE l.title_id IN {titleIds: Array(String)}
  GROUP BY l.title_id, l.leaderboard_id`

/** Titles that pages described and that may have boards. */
export const TITLES_WITH_BOARDS = `
  SELECT DISTINCT e.title_id AS titleId, e.title_id IN (${DEPARTED_TITLES}) AS isDeparted
    FROM {event_title: Identifier} AS e
  WHERE e.import_id = '' AND e.title_id NOT IN (
    SELECT t.title_id FROM {title: Identifier} AS t FINAL
    WHERE t.field = 'features' AND NOT has(splitByChar(',', t.value), 'leaderboards'))
  ORDER BY e.title_id`

/** Reads the boards of titles from the tables: by title, then by board. */
export async function knownLists(
  tables: ReadTables,
  titleIds: readonly string[],
  signal: AbortSignal
): Promise<Map<string, Map<number, KnownBoard>>> {
  const lists = new Map(titleIds.map((titleId) => [titleId, new Map<number, KnownBoard>()]))
  const rows = await tables.rows(KNOWN_LISTS, { titleIds }, { signal })
  for (const row of rows) {
    const known = { name: String(row.name), listed: row.listed === true, observedAtMs: Number(row.observedAtMs) }
    lists.get(String(row.titleId))?.set(Number(row.leaderboardId), known)
  }
  return lists
}

/** Titles that may have boards: all titles described by pages, not files, except those known to have none. */
type TitlesWithBoards = { readonly onNetwork: readonly string[]; readonly departed: ReadonlySet<string> }

/** Reads the titles that may have boards, split by whether they are on the network now. */
export async function titlesWithBoards(tables: ReadTables, signal: AbortSignal): Promise<TitlesWithBoards> {
  const rows = await tables.rows(TITLES_WITH_BOARDS, {}, { signal })
  const idsOf = (departed: boolean) =>
    rows.filter((row) => (Number(row.isDeparted) === 1) === departed).map((row) => String(row.titleId))
  return { onNetwork: idsOf(false), departed: new Set(idsOf(true)) }
}
