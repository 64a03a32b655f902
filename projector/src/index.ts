/*
 * event table   `event_<noun>`: the events of one topic, in log order, a column per field
 * loader        log → event tables: validates each record, stores rows, stores unreadable records as dead letters
 * projection    one step from a range of an event table to read tables, as SQL or as a fold
 * fold          computes the rows of a touched key with a pure function, in a separate thread
 * read table    keyed rows that queries read; the newer version of a key replaces the older
 * checkpoint    the position of the loader or a projection, per (epoch, partition)
 * step          one projection over one range: rows → data_change → checkpoint
 * pass          one step of every projection that lags
 * dead letter   an unreadable message, stored with the reason
 * late event    an event that entered its event table behind the checkpoints of projections, such as a retried message
 */
export {
  type DeadLetter,
  deadLettersAt,
  dropAllDeadLetters,
  dropDeadLetters,
  projectionsWithout,
  type RetryNeeds,
  type RetryReport,
  readDeadLetter,
  retryDeadLetters
} from './dead-letters/dead-letters.js'
export { readLateRange } from './dead-letters/late-batches.js'
export { lateReader } from './dead-letters/late-reader.js'
export { eventTableNames } from './events/event-tables.js'
export { foldRecords } from './folds/leaderboard-entry.js'
export { type DamagedTable, DamagedTables } from './generations/damaged-tables.js'
export { dataTables, storeAt } from './generations/generations.js'
export type { PassLock } from './generations/pass-lock.js'
export { type ReadSide, readSide } from './generations/read-side.js'
export type { ReadingSide } from './load/loader.js'
export type { LogReader } from './load/log.js'
export type { LoaderPort } from './load/message.js'
export { runLoaderWorker } from './load/read-log.js'
export { SEAL_KEY_CACHE_MS } from './load/seal-key-cache.js'
export { acceptedGaps, acceptGaps, type StallReport } from './load/stalled-partitions.js'
export { migrate } from './migrate/migrate.js'
export { changedDefinitions, readMigrations } from './migrate/migrate-schema.js'
export { type Target, waitForCheckpoints } from './project/caught-up.js'
export { announceAllChanged } from './project/data-changes.js'
export { ALL_TOPICS, type Division, type OwnTopics, type Parts } from './project/division.js'
export { continueWithout, detachDamagedBookkeeping, type LostBookkeeping } from './project/lost-bookkeeping.js'
export { readProgress, readStalls } from './project/progress.js'
export { projections } from './projections/projections.js'
export {
  createProjector,
  type Projector,
  type ProjectorOptions,
  type ReloadShare
} from './projector.js'
export {
  ChangedSubject,
  type ComparedTables,
  RebuildPlan,
  RebuildRefused,
  RebuildStatus,
  SwapDifference,
  SwapReport,
  VerifyReport
} from './rebuild/contract.js'
export { unfinishedImportUndos } from './rebuild/import-undo.js'
export { readCheckpoints } from './store/checkpoint.js'
export { dropDetachedParts, readBrokenParts, readDamagedParts } from './store/damage.js'
export { readNewestVersion } from './store/data-change.js'
export { readDeadLetters } from './store/dead-letter.js'
export { readAppliedErasures, storeAppliedErasures } from './store/erasure.js'
export {
  type Blocks,
  countLoaded,
  type NewestWrites,
  readNewestWrites,
  readWholeBlocks
} from './store/event-table.js'
export { readPointers } from './store/generation.js'
export { readImports, readRetractions } from './store/import.js'
export { readPending, storeConsumed, storeLateBatch } from './store/late-batch.js'
export { type Store, storeOver } from './store/operation.js'
export type { Projection } from './store/projection.js'
export { readMigrationsApplied } from './store/schema-migration.js'
export type { Tables } from './store/tables.js'
