/*
 * What a projector is put together of, for the simulator, which runs the same parts on a clock, a log and tables of its own.
 */

export { eventTables } from './events/event-tables.js'
export { createLoader, type Loader, type LoaderOptions } from './load/loader.js'
export { RowBuilder } from './load/row-builder.js'
export { basisStatement } from './project/folding/basis.js'
export { type Folding, foldInline } from './project/folding/folding.js'
export { runFold } from './project/folding/run-fold.js'
export { bound } from './project/folding/touched-keys.js'
export { guardedPassLock, LOCAL_PASS_LOCK } from './project/pass-lock.js'
export {
  type FoldProjection,
  type KeySlice,
  keysStatement,
  type SqlProjection,
  slicesStatement,
  stepStatement,
  touchedStatement
} from './project/projection.js'
export { projectorMetrics } from './project/projector-metrics.js'
export type { Range } from './project/range.js'
export { ProjectionRunner } from './project/run-projections.js'
export type { StepSizes } from './rebuild/fill.js'
export type { RebuildStatus } from './rebuild/rebuild.js'
export { RebuildOperations } from './rebuild/rebuild-operations.js'
export { Checkpoints } from './store/checkpoint.js'
export { ServingDefinitions } from './store/serving-definitions.js'
