import { leaderboardEntryTopic } from '@gamenet/schemas'
import { INSTANT_MS, type Projection } from '../project/projection.js'
import { BOARD_COLUMNS, BOARD_KEY, leaderboardHistory } from './leaderboard-history.js'

/** The entries that the range touched. */
const TOUCHED =
  'SELECT e.title_id, e.leaderboard_id, e.player, e.occurrence FROM {event_leaderboard_entry: Identifier} AS e WHERE {range}'
const KEY = ['time_ms', 'title_id', 'leaderboard_id', 'player', 'occurrence']

// A tuple, because aggregates skip NULL, and an entry that is gone has no time.
const timesWhere = (condition: string) => `
  SELECT t.time_ms, t.title_id, t.leaderboard_id, t.player, t.occurrence, ifNull(t.time_ms = t.live.1, false) AS is_live, t.version
  FROM (
    SELECT k.title_id AS title_id, k.leaderboard_id AS leaderboard_id, k.player AS player, k.occurrence AS occurrence,
      arrayJoin(groupUniqArrayIf(assumeNotNull(k.time_ms), k.time_ms IS NOT NULL AND NOT k.is_gone)) AS time_ms,
      argMax(tuple(if(k.is_gone, NULL, k.time_ms)), (k.ts, k.position)) AS live,
      max(bitOr(bitShiftLeft(toUInt128(toUnixTimestamp64Milli(k.ts)), 64), toUInt128(k.position))) AS version
    FROM {leaderboard_history: Identifier} AS k FINAL
    WHERE ${condition}
    GROUP BY k.title_id, k.leaderboard_id, k.player, k.occurrence) AS t`
const select = timesWhere(`(k.title_id, k.leaderboard_id, k.player, k.occurrence) IN (${TOUCHED})`)

/** Each time that a touched entry ever had; its current one is live. */
export const entryTime: Projection = {
  name: 'entry-time',
  from: leaderboardEntryTopic,
  into: 'entry_time',
  columns: [...KEY, 'is_live', 'version'],
  after: leaderboardHistory.name,
  key: BOARD_COLUMNS,
  select,
  selectSlice: timesWhere('{slice}'),
  // A state that was published twice is in the history at the first of its positions.
  selectWhenLate: `
    SELECT ${KEY.map((column) => `n.${column}`).join(', ')}, n.is_live, greatest(n.version, s.version)
    FROM (${select}) AS n
    LEFT JOIN (
      SELECT l.* FROM {entry_time: Identifier} AS l FINAL WHERE (l.title_id, l.leaderboard_id, l.player, l.occurrence) IN (${TOUCHED})
    ) AS s ON ${KEY.map((column) => `s.${column} = n.${column}`).join(' AND ')}`,
  touches: { key: BOARD_KEY, bucketMs: INSTANT_MS, isLasting: true }
}
