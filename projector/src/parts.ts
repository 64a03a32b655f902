/*
 * What a projector is put together of, for the simulator, which runs the same parts on a clock, a log and tables of its own.
 */

export { Checkpoints } from './checkpoint.js'
export { eventTables } from './event-tables.js'
export { type Folding, foldBeside } from './folding/folding.js'
export { runFold } from './folding/run-fold.js'
export { standingStatement } from './folding/standing.js'
export { bound } from './folding/touched-keys.js'
export { createLoader, type Loader, type LoaderOptions } from './loader/loader.js'
export { RowBuilder } from './loader/row-builder.js'
export { projectorMetrics } from './metrics.js'
export { guardedPasses, OWN_PASSES } from './passes.js'
export {
  type FoldProjection,
  type KeySlice,
  keysStatement,
  type SqlProjection,
  slicesStatement,
  stepStatement,
  touchedStatement
} from './projection.js'
export type { Range } from './range.js'
export type { StepSizes } from './rebuilding/fill.js'
export type { RebuildStatus } from './rebuilding/rebuild.js'
export { RebuildOperations } from './rebuilding/rebuilds.js'
export { ProjectionRunner } from './run-projections.js'
export { ServingDefinitions } from './serving-definitions.js'
