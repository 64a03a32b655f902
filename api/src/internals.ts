/*
 * Parts of answers for the simulator, which runs them on its own tables.
 */
export type { LanePlace } from './http/request/cursor.js'
export { type ChangeFilter, type ChangeRow, feedExtents, recordedChanges } from './queries/leaderboard-change.js'
export { readFeed } from './routes/change-feed.js'
