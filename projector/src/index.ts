/*
 * event table   `event_<noun>`: the events of one topic, in log order, a column a field
 * loader        log → event tables: judges each record, stores rows, parks what it cannot read
 * projection    one step from a range of an event table to read tables, as SQL or as a fold
 * fold          the facts of a touched key through a pure function, in a thread of its own
 * read table    keyed rows that queries read; the newer version of a key replaces the older
 * checkpoint    how far the loader or a projection has come, per (epoch, partition)
 * step          one projection over one range: rows → data_change → checkpoint
 * pass          one step of every projection that is behind
 * parked        a message that could not be read, kept with its reason
 * late event    one that came into its event table behind the checkpoints of projections, as a retried message does
 */
export { type Backoff, pause } from './backoff.js'
export type { Progress } from './checkpoint.js'
export { eventTableNames } from './event-tables.js'
export { type Folding, foldBeside } from './folding/folding.js'
export { type AcceptedGap, acceptedGaps, acceptGaps, type Halt } from './halts.js'
export { readLateRange, storeLateBatch, storeTaken, untakenBy } from './late-batches.js'
export { type LateReader, lateReader } from './late-reader.js'
export type { ReadingSide } from './loader/loader.js'
export type { FromReader, LoaderPort } from './loader/message.js'
export { readBeside } from './loader/read-beside.js'
export { type LoaderWorkerOptions, runLoaderWorker } from './loader/read-log.js'
export { SEAL_KEYS_KEPT_MS, type SealKeys } from './loader/seal-keys.js'
export type { LogReader } from './log.js'
export type { Logger } from './logger.js'
export {
  beginRepair,
  cancelRebuilds,
  dataTables,
  dropLostParts,
  findLostParts,
  type Gone,
  incompleteReads,
  type LostPart,
  readGone,
  repairOf
} from './lost-rows.js'
export { changedDefinitions, type Migration, MissingTables, migrate, NewerTables, readMigrations } from './migrate.js'
export { newestWrites } from './newest-writes.js'
export {
  dropAllParked,
  dropParked,
  listParked,
  notTaken,
  type ParkedMessage,
  type ParkedPosition,
  parkedAt,
  type RetryNeeds,
  type RetryReport,
  readParked,
  retryParked
} from './parked.js'
export type { Passes } from './passes.js'
export { readHalts, readProgress, waitForProgress } from './progress.js'
export type { Projection } from './projection.js'
export { projections } from './projections.js'
export {
  createProjector,
  type ProjectionStatus,
  type Projector,
  type ProjectorOptions,
  type ProjectorStatus,
  type ReadAlone,
  type TopicStatus
} from './projector.js'
export {
  type AroundExchange,
  Difference,
  RebuildPlan,
  RebuildProgress,
  RebuildRefused,
  RebuildState,
  RebuildStatus,
  type Rebuilds,
  SwapReport,
  Verification,
  VerifyReport
} from './rebuilding/rebuild.js'
export { unfinishedRetractions } from './rebuilding/retracting.js'
export type { Target } from './settled.js'
export type { Parameters, Tables } from './tables.js'
