/*
 * Parts of answers for the simulator, which runs them on its own tables.
 */
export { identityOf } from './answers/etag.js'
export type { LanePlace } from './http/request/cursor.js'
export { type ChangeFilter, type ChangeRow, recordedChanges } from './queries/leaderboard-change.js'
export { readFeed } from './routes/change-feed.js'
