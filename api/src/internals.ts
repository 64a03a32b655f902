/*
 * Parts of answers for the simulator, which runs them on its own tables.
 */
export { CHANGES_SINCE, NEWEST_BEGIN } from './answers/data-versions.js'
export type { LanePlace } from './http/request/cursor.js'
export { type ChangeFilter, type ChangeRow, feedExtents, recordedChanges } from './queries/leaderboard-change.js'
export { readFeed } from './routes/change-feed.js'
