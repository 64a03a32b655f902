import { leaderboardEntryTopic } from '@gamenet/schemas'
import { INSTANT_MS } from '../store/projection.js'
import { leaderboardEntry } from './leaderboard-entry.js'
import { BOARD_COLUMNS, BOARD_KEY } from './leaderboard-history.js'
import { sqlProjection } from './sql-projection.js'

const liveWhere = (condition: string) => `
  SELECT assumeNotNull(k.time_ms), k.title_id, k.leaderboard_id, k.player, k.occurrence, true AS is_live, k.rank,
    k.rating, k.version
  FROM {leaderboard_entry: Identifier} AS k FINAL
  WHERE ${condition} AND NOT k.is_gone AND k.time_ms IS NOT NULL`

const TOUCHED = 'FROM {event_leaderboard_entry: Identifier} AS e WHERE {range}'
const touchedOf = (row: string) =>
  `(${row}.title_id, ${row}.leaderboard_id, ${row}.player, ${row}.occurrence) IN (
    SELECT e.title_id, e.leaderboard_id, e.player, e.occurrence ${TOUCHED})`

/**
 * The entries of the touched boards by their times, each with what a search shows of it: one read of a search instead
 * of another one of each found entry. A time that a touched entry had before is no longer live.
 */
export const timedEntry = sqlProjection({
  name: 'timed-entry',
  from: leaderboardEntryTopic,
  columns: ['time_ms', 'title_id', 'leaderboard_id', 'player', 'occurrence', 'is_live', 'rank', 'rating', 'version'],
  after: leaderboardEntry.name,
  key: BOARD_COLUMNS,
  select: `${liveWhere(`(k.title_id, k.leaderboard_id) IN (SELECT DISTINCT e.title_id, e.leaderboard_id ${TOUCHED})`)}
  UNION ALL
  SELECT DISTINCT assumeNotNull(h.time_ms), h.title_id, h.leaderboard_id, h.player, h.occurrence, false, 0, '',
    c.version
  FROM {leaderboard_history: Identifier} AS h
  INNER JOIN (
    SELECT n.* FROM {leaderboard_entry: Identifier} AS n FINAL WHERE ${touchedOf('n')}
  ) AS c ON c.title_id = h.title_id AND c.leaderboard_id = h.leaderboard_id AND c.player = h.player
  AND c.occurrence = h.occurrence
  WHERE ${touchedOf('h')}
    AND h.time_ms IS NOT NULL AND (c.is_gone OR NOT (c.time_ms <=> h.time_ms))`,
  selectSlice: liveWhere('{slice}'),
  touches: { key: BOARD_KEY, bucketMs: INSTANT_MS, isLasting: true },
  voids: { timed_entry: 'NOT r.is_live' }
})
