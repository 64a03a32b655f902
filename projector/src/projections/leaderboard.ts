import { leaderboardTopic } from '@gamenet/schemas'
import { INSTANT_MS } from '../store/projection.js'
import { rowPerEvent } from './sql-projection.js'

/** One row per board and instant at which its description changed. */
export const leaderboard = rowPerEvent({
  name: 'leaderboard',
  from: leaderboardTopic,
  columns: ['title_id', 'leaderboard_id', 'ts', 'name', 'listed', 'position'],
  touches: { key: 'e.title_id', bucketMs: INSTANT_MS }
})
