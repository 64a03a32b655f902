import { leaderboardEntryTopic } from '@gamenet/schemas'
import { BOARD_TABLES } from '../folds/leaderboard-entry.js'
import { INSTANT_MS, type Projection } from '../store/projection.js'
import { BOARD_COLUMNS, BOARD_KEY, leaderboardHistory } from './leaderboard-history.js'

/** A row at a position that the change has left. */
const UNTOLD = 'NOT r.is_change AND r.previous_rank IS NULL AND r.new_rank IS NULL'

/**
 * The touched boards from the earliest touched instant: entries with ranks, changes in both orders, reached goals, and
 * reigns. The record is written last: from its version, the next step knows how new the rows are that it replaces.
 */
export const leaderboardEntry: Projection = {
  form: 'fold',
  name: 'leaderboard-entry',
  version: 2,
  from: leaderboardEntryTopic,
  after: leaderboardHistory.name,
  key: BOARD_COLUMNS,
  into: Object.fromEntries(Object.entries(BOARD_TABLES).map(([table, types]) => [table, Object.keys(types)])),
  weigh: `
    SELECT h.title_id AS title_id, h.leaderboard_id AS leaderboard_id, count() AS weight
    FROM {leaderboard_history: Identifier} AS h
    WHERE (h.title_id, h.leaderboard_id) IN {keys}
    GROUP BY h.title_id, h.leaderboard_id`,
  reads: {
    // Read before the states, which are then at least as new as this version: a board's rows never get a lower one.
    records: `
      SELECT r.title_id AS title_id, r.leaderboard_id AS leaderboard_id,
        r.players AS players, r.occurrences AS occurrences, r.ratings AS ratings, r.times_ms AS times_ms,
        arrayMap(at -> toFloat64(toUnixTimestamp64Milli(at)), r.set_at) AS set_at,
        arrayMap(at -> toFloat64(toUnixTimestamp64Milli(at)), r.from_at) AS from_at,
        arrayMap(at -> toFloat64(toUnixTimestamp64Milli(at)), r.to_at) AS to_at, r.version AS version
      FROM {record_history: Identifier} AS r FINAL
      WHERE (r.title_id, r.leaderboard_id) IN {keys}`,
    // One row per board. Of a touched entry its whole history; of another entry nothing if it is gone, its state and
    // the start of its rating if a source stated its place, and its states since it came if only its measure decides,
    // or if several are of one instant: the fold orders those.
    entries: `
      SELECT e.title_id AS title_id, e.leaderboard_id AS leaderboard_id, any(e.since) AS since_ms,
        groupArray(e.player) AS players, groupArray(e.occurrence) AS occurrences,
        groupArray(e.player_key) AS player_keys,
        groupArray(e.states) AS states, groupArray(e.first_ms) AS first_ms
      FROM (
        SELECT h.title_id AS title_id, h.leaderboard_id AS leaderboard_id, h.player AS player,
          h.occurrence AS occurrence,
          any(h.player_key) AS player_key, toFloat64(toUnixTimestamp64Milli(minIf(h.ts, NOT h.is_gone))) AS first_ms,
          toFloat64({since_ms}[indexOf({keys}, (toString(h.title_id), h.leaderboard_id))]) AS since,
          arraySort(s -> (s.1, NOT s.5, s.2, s.4), groupArray((
            toFloat64(toUnixTimestamp64Milli(h.ts)), h.epoch, h.partition, toFloat64(h.offset), h.is_gone, h.rating,
            h.time_ms, h.stated_rank, toFloat64(h.ord), toFloat64(h.step), h.details, h.is_ascending))) AS all,
          all[-1] AS last,
          arrayLastIndex(s -> NOT (s.7 <=> last.7) OR (last.7 IS NULL AND s.6 != last.6) OR s.5, all) + 1 AS run,
          multiIf(
            last.1 >= since, all,
            last.5, [],
            (last.9 IS NULL AND last.8 IS NULL) OR arrayUniq(arrayMap(s -> s.1, all)) < length(all),
            arraySlice(all, arrayLastIndex(s -> s.5, all) + 1),
            run = length(all), [last],
            [all[run], last]) AS states
        FROM {leaderboard_history: Identifier} AS h FINAL
        WHERE (h.title_id, h.leaderboard_id) IN {keys}
        GROUP BY h.title_id, h.leaderboard_id, h.player, h.occurrence
        HAVING notEmpty(states)) AS e
      GROUP BY e.title_id, e.leaderboard_id`,
    goals: `
      SELECT g.title_id AS title_id, g.leaderboard_id AS leaderboard_id, g.player_keys AS player_keys, g.goals AS goals,
        arrayMap(at -> toFloat64(toUnixTimestamp64Milli(at)), g.reached_at) AS reached_ms
      FROM {rank_reached: Identifier} AS g FINAL
      WHERE (g.title_id, g.leaderboard_id) IN {keys}`
  },
  readsWhenLate: {
    // Published changes of the window; an older epoch's events can move where a change was recorded.
    told: `
      SELECT c.title_id AS title_id, c.leaderboard_id AS leaderboard_id,
        groupArray((toFloat64(toUnixTimestamp64Milli(c.ts)), c.epoch, c.partition, toFloat64(c.offset),
          c.recorded_epoch, c.recorded_partition, toFloat64(c.recorded_offset), c.player, c.player_key, c.occurrence
        )) AS changes
      FROM {leaderboard_change: Identifier} AS c FINAL
      WHERE (c.title_id, c.leaderboard_id) IN {keys} AND c.ts >= fromUnixTimestamp64Milli(arrayMin({since_ms}))
      GROUP BY c.title_id, c.leaderboard_id`
  },
  voids: { leaderboard_change: UNTOLD, leaderboard_feed: UNTOLD },
  touches: { key: BOARD_KEY, bucketMs: INSTANT_MS, isLasting: true }
}
