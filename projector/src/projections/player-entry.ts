import { leaderboardEntryTopic } from '@gamenet/schemas'
import { INSTANT_MS } from '../store/projection.js'
import { leaderboardEntry } from './leaderboard-entry.js'
import { BOARD_COLUMNS, BOARD_KEY } from './leaderboard-history.js'
import { sqlProjection } from './sql-projection.js'

const entriesWhere = (condition: string) => `
  SELECT k.player_key, k.title_id, k.leaderboard_id, k.player, k.occurrence, k.is_gone, k.rank, k.place, k.rating,
    k.time_ms, k.details, k.first_at, k.ts, k.version
  FROM {leaderboard_entry: Identifier} AS k FINAL
  WHERE ${condition}`

/** All entries of the touched boards, because any rank may have changed. */
export const playerEntry = sqlProjection({
  name: 'player-entry',
  from: leaderboardEntryTopic,
  columns: [
    ...['player_key', 'title_id', 'leaderboard_id', 'player', 'occurrence', 'is_gone', 'rank', 'place', 'rating'],
    ...['time_ms', 'details', 'first_at', 'ts', 'version']
  ],
  after: leaderboardEntry.name,
  key: BOARD_COLUMNS,
  select: entriesWhere(`(k.title_id, k.leaderboard_id) IN (
    SELECT DISTINCT e.title_id, e.leaderboard_id FROM {event_leaderboard_entry: Identifier} AS e WHERE {range})`),
  selectSlice: entriesWhere('{slice}'),
  touches: { key: BOARD_KEY, bucketMs: INSTANT_MS, isLasting: true }
})
