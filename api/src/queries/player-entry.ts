import { Count, LeaderboardId, TitleId } from '@gamenet/schemas'
import { z } from 'zod'
import { query } from './query.js'

/** Maximum number of entries in an answer. */
export const ENTRIES_MAX = 10_000

/** A title as a filter; "" for every title. */
export const TitleFilter = z.union([z.literal(''), TitleId])

/** An entry in the result of a search. */
export const EntryRow = z.object({
  titleId: TitleId,
  leaderboardId: LeaderboardId,
  playerName: z.string(),
  /** 1 for the first entry with exactly this name on its board. */
  occurrence: z.int(),
  rank: z.int(),
  rating: z.string(),
  timeMs: Count.nullable()
})
export type EntryRow = z.infer<typeof EntryRow>

/** The columns of {@link EntryRow} of a table of entries. */
export const entryColumns = (table: string) => `
  ${table}.title_id AS titleId,
  ${table}.leaderboard_id AS leaderboardId,
  ${table}.player AS playerName,
  ${table}.occurrence AS occurrence,
  toFloat64(${table}.rank) AS shown_rank,
  shown_rank AS rank,
  ${table}.rating AS rating,
  ${table}.time_ms AS timeMs`

const OF_PLAYERS = `
  p.player_key IN {keys: Array(String)}
    AND ({titleId: String} = '' OR p.title_id = {titleId: String})
    AND NOT p.is_gone`

/** Selects the entries of players on all boards, by the folded forms of their names, best rank first. */
export const entriesOfPlayers = query({
  params: z.object({ keys: z.array(z.string()), titleId: TitleFilter }),
  row: EntryRow.extend({ changedAtMs: z.int().nonnegative() }),
  sql: `
    SELECT ${entryColumns('p')}, toFloat64(toUnixTimestamp64Milli(p.ts)) AS changedAtMs
    FROM {player_entry: Identifier} AS p FINAL
    WHERE ${OF_PLAYERS}
    ORDER BY p.rank, p.title_id, p.leaderboard_id, p.player, p.occurrence
    LIMIT ${ENTRIES_MAX}`
})

/**
 * Selects entries at a requested rank of one of the players, within `tolerance`, on boards with such an entry for every
 * player; `keys` and `ranks` are parallel arrays. `answers` are the indexes, from 0, of the requests that the entry
 * matches.
 */
export const rosterEntries = query({
  params: z.object({
    keys: z.array(z.string()),
    ranks: z.array(z.int()),
    tolerance: z.int().nonnegative(),
    titleId: TitleFilter
  }),
  row: EntryRow.extend({ answers: z.array(z.int().nonnegative()) }),
  sql: `
    WITH arrayFilter(
      i -> {keys: Array(String)}[i + 1] = p.player_key
      AND abs(p.rank - {ranks: Array(Int64)}[i + 1]) <= {tolerance: Int64},
      range(length({keys: Array(String)}))
    ) AS filled
    SELECT f.* EXCEPT (all_filled)
    FROM (
      SELECT ${entryColumns('p')}, arrayMap(i -> toUInt8(i), filled) AS answers,
        groupUniqArrayArray(filled) OVER (PARTITION BY p.title_id, p.leaderboard_id) AS all_filled
      FROM {player_entry: Identifier} AS p FINAL
      WHERE ${OF_PLAYERS} AND notEmpty(filled)
    ) AS f
    WHERE length(f.all_filled) = length({keys: Array(String)})
    ORDER BY f.titleId, f.leaderboardId, f.playerName, f.occurrence
    LIMIT ${ENTRIES_MAX}`
})

/**
 * Selects the neighbourhood of ranks on their boards, given as parallel arrays. `noBetter` counts the entries whose
 * rank is not better; the other columns are the nearest entry with a better rank, "" and 0 for a leader.
 */
export const standings = query({
  params: z.object({
    titleIds: z.array(TitleId),
    leaderboardIds: z.array(LeaderboardId),
    ranks: z.array(z.int())
  }),
  row: z.object({
    titleId: TitleId,
    leaderboardId: LeaderboardId,
    rank: z.int(),
    entries: z.int(),
    noBetter: z.int(),
    nextRank: z.int(),
    nextName: z.string(),
    nextRating: z.string(),
    nextTimeMs: Count.nullable()
  }),
  sql: `
    WITH own AS (
      SELECT DISTINCT o.1 AS title_id, o.2 AS leaderboard_id, o.3 AS rank
      FROM (
        SELECT arrayJoin(arrayZip(
          {titleIds: Array(String)}, {leaderboardIds: Array(UInt32)}, {ranks: Array(Int64)}
        )) AS o
      )
    )
    SELECT
      o.title_id AS titleId,
      o.leaderboard_id AS leaderboardId,
      toFloat64(o.rank) AS own_rank,
      own_rank AS rank,
      toUInt32(count()) AS entries,
      toUInt32(countIf(e.rank >= o.rank)) AS noBetter,
      argMaxIf((e.rank, e.player, e.rating, tuple(e.time_ms)), (e.rank, e.place), e.rank < o.rank) AS next,
      toFloat64(next.1) AS nextRank,
      next.2 AS nextName,
      next.3 AS nextRating,
      next.4.1 AS nextTimeMs
    FROM (
      SELECT b.title_id, b.leaderboard_id, b.player, b.rank, b.place, b.rating, b.time_ms
      FROM {leaderboard_entry: Identifier} AS b FINAL
      WHERE (b.title_id, b.leaderboard_id) IN (SELECT i.title_id, i.leaderboard_id FROM own AS i) AND NOT b.is_gone
    ) AS e
    INNER JOIN own AS o ON o.title_id = e.title_id AND o.leaderboard_id = e.leaderboard_id
    GROUP BY o.title_id, o.leaderboard_id, o.rank`
})
