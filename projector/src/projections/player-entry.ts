import { leaderboardEntryTopic } from '@gamenet/schemas'
import { INSTANT_MS, type Projection } from '../project/projection.js'
import { leaderboardEntry } from './leaderboard-entry.js'
import { BOARD_KEY } from './leaderboard-history.js'

/** All entries of the touched boards, because any rank may have changed. */
export const playerEntry: Projection = {
  name: 'player-entry',
  from: leaderboardEntryTopic,
  into: 'player_entry',
  columns: [
    ...['player_key', 'title_id', 'leaderboard_id', 'player', 'occurrence', 'is_gone', 'rank', 'place', 'rating'],
    ...['time_ms', 'details', 'first_at', 'ts', 'version']
  ],
  after: leaderboardEntry.name,
  select: `
    SELECT l.player_key, l.title_id, l.leaderboard_id, l.player, l.occurrence, l.is_gone, l.rank, l.place, l.rating,
      l.time_ms, l.details, l.first_at, l.ts, l.version
    FROM {leaderboard_entry: Identifier} AS l FINAL
    WHERE (l.title_id, l.leaderboard_id) IN (
      SELECT DISTINCT e.title_id, e.leaderboard_id FROM {event_leaderboard_entry: Identifier} AS e WHERE {range})`,
  touches: { key: BOARD_KEY, bucketMs: INSTANT_MS, isLasting: true }
}
