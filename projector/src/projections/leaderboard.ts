import { leaderboardTopic } from '@gamenet/schemas'
import { INSTANT_MS, type Projection } from '../store/projection.js'

/** One row per board and instant at which its description changed. */
export const leaderboard: Projection = {
  name: 'leaderboard',
  from: leaderboardTopic,
  into: 'leaderboard',
  columns: ['title_id', 'leaderboard_id', 'ts', 'name', 'listed', 'position'],
  select: `
    SELECT e.title_id, e.leaderboard_id, e.observed_at, e.name, e.listed, e.position
    FROM {event_leaderboard: Identifier} AS e
    WHERE {range}`,
  touches: { key: 'e.title_id', bucketMs: INSTANT_MS }
}
