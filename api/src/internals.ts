/*
 * Parts of answers, of the stream and of files, for the simulator, which runs them on its own tables, for tests of
 * clients, and for measurements.
 */

export { type ChangeRow, recordedChanges } from './queries/leaderboard-change.js'
export { recordedRetractions, recordedTitleCounts, recordingEvents } from './queries/stream.js'
export type { PartitionPlace } from './request/cursor.js'
export { identityOf } from './request/etag.js'
export { readFeed } from './routes/change-feed.js'
export { Channel } from './stream/channel.js'
export { comparePlaces, type Place, partitionIdOf, readCursor } from './stream/cursor.js'
export { Hub } from './stream/hub.js'
export { Listener } from './stream/listener.js'
export { LiveCounts } from './stream/live-counts.js'
