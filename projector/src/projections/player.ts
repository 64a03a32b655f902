import { leaderboardEntryTopic } from '@gamenet/schemas'
import { INSTANT_MS } from '../store/projection.js'
import { BOARD_KEY } from './leaderboard-history.js'
import { sqlProjection } from './sql-projection.js'

/** Every spelling of every player's name. */
export const player = sqlProjection({
  name: 'player',
  from: leaderboardEntryTopic,
  columns: ['player_key', 'player'],
  select: `
    SELECT DISTINCT e.player_key, e.player
    FROM {event_leaderboard_entry: Identifier} AS e
    WHERE {range}`,
  touches: { key: BOARD_KEY, bucketMs: INSTANT_MS, isLasting: true }
})
