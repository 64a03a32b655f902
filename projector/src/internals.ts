/*
 * Parts of the projector for the simulator, which runs them on a virtual clock and log, and carries operations out in
 * memory.
 */

export { POSITION_TYPES } from './events/event-table.js'
export { eventTables } from './events/event-tables.js'
export { foldInline } from './folding/folding.js'
export { runFold } from './folding/run-fold.js'
export { DamagedTables } from './generations/damaged-tables.js'
export { Generations, ownerOf, ownersOf, statementsOf } from './generations/generations.js'
export { LOCAL_PASS_LOCK } from './generations/pass-lock.js'
export { createLoader, type Loader, type LoaderOptions } from './load/loader.js'
export { projectorMetrics } from './load/projector-metrics.js'
export { RowBuilder } from './load/row-builder.js'
export { ProjectionRunner } from './project/run-projections.js'
export { BOARD_KEY } from './projections/leaderboard-history.js'
export { stepsEnded } from './projector.js'
export type { RebuildStatus } from './rebuild/contract.js'
export type { StepSizes } from './rebuild/fill.js'
export { RebuildOperations } from './rebuild/rebuild-operations.js'
export { readRows } from './rows/read-rows.js'
export { type RowBlock, RowWriter } from './rows/row-writer.js'
export {
  type Checkpoint,
  Checkpoints,
  discardCheckpoints,
  readCheckpoints,
  readCheckpointsOf,
  storeCheckpoints
} from './store/checkpoint.js'
export {
  countDifferences,
  countRows,
  type LeftOut,
  readDifferingRows,
  readHashes,
  readSamples,
  readShape,
  type Side
} from './store/comparison.js'
export { readChangesSince, readNewestBegin, readNewestVersion, storeChanges } from './store/data-change.js'
export {
  copyDeadLetters,
  readDeadLettersAfter,
  readMessages,
  storeDeadLetters,
  storeDecisions
} from './store/dead-letter.js'
export { copyEvents, deleteImports, storeEvents } from './store/event-table.js'
export {
  type FilledGeneration,
  keepingPointers,
  type Pointer,
  Pointers,
  readFilled,
  readPointers,
  storeFilled,
  storePointers
} from './store/generation.js'
export { readImports, readRetractedImports, readRetractions } from './store/import.js'
export {
  AGAIN_SECONDS,
  copyConsumed,
  discardBatchConsumers,
  readBatchConsumers,
  readConsumed,
  readKnownBatches,
  readLatePositions,
  readPending,
  storeConsumed,
  storeLateBatch
} from './store/late-batch.js'
export { nameIn, type Operation, type Store, type StoreView } from './store/operation.js'
export type { FoldProjection, KeySlice, KeyValues, SqlProjection } from './store/projection.js'
export type { Range } from './store/range.js'
export { replaceReadViews } from './store/read-view.js'
export { readRebuildOwner, readRebuildRecords, storeRebuildOwner, storeRebuildRecord } from './store/rebuild.js'
export {
  copyRows,
  makeRows,
  readBasis,
  readForFold,
  readKeys,
  readParts,
  readTouched,
  readWeights,
  storeRows,
  type TouchedKey
} from './store/step.js'
export {
  attachPartition,
  createEventView,
  createTable,
  dropTable,
  readDisks,
  readPartitions,
  readSizes,
  readTablesOfRebuilds
} from './store/table.js'
