import { leaderboardEntryTopic } from '@gamenet/schemas'
import { INSTANT_MS, type Projection } from '../store/projection.js'
import { BOARD_KEY } from './leaderboard-history.js'

/** Every spelling of every player's name. */
export const player: Projection = {
  name: 'player',
  from: leaderboardEntryTopic,
  into: 'player',
  columns: ['player_key', 'player'],
  select: `
    SELECT DISTINCT e.player_key, e.player
    FROM {event_leaderboard_entry: Identifier} AS e
    WHERE {range}`,
  touches: { key: BOARD_KEY, bucketMs: INSTANT_MS, isLasting: true }
}
