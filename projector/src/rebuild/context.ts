import type { Topic } from '@gamenet/schemas'
import type { Loader } from '../load/loader.js'
import type { Logger } from '../logger.js'
import type { Folding } from '../project/folding/folding.js'
import type { PassLock } from '../project/pass-lock.js'
import type { Projection } from '../project/projection.js'
import type { ProjectionRunner } from '../project/run-projections.js'
import { projectionOf, type ServingDefinitions } from '../project/serving-definitions.js'
import type { StepContext } from '../project/step.js'
import type { Store, TableNames } from '../store/operation.js'
import type { StepSizes } from './fill.js'
import type { ReservedBytes } from './free-space.js'
import type { AroundSwap } from './rebuild.js'
import type { RebuildRecord } from './rebuild-record.js'
import type { RebuildSteps } from './rebuild-steps.js'

/** What rebuilds work with. */
export type RebuildContext = {
  /** A connection of their own, so that live steps never wait for a rebuild's. */
  readonly store: Store
  /** Those of this program; a rebuild fills by them. */
  readonly projections: readonly Projection[]
  readonly serving: ServingDefinitions
  readonly runner: Pick<ProjectionRunner, 'betweenPasses' | 'stepOnce' | 'announceAll' | 'wake'>
  /** The live loader. */
  readonly loader: Pick<Loader, 'whilePaused'>
  /**
   * A loader of one topic from the log's beginning or the checkpoint in these tables, not started; `group` is its own, and it
   * stores under the lock.
   */
  readonly loaderOf: (store: Store, topic: Topic, group: string, lock: Pick<PassLock, 'shared'>) => Loader
  readonly folding: Folding
  readonly aroundSwap: AroundSwap
  readonly passLock: PassLock
  readonly steps: RebuildSteps
  readonly reservedBytes: ReservedBytes
  readonly logger: Logger
  /** A name of this process that no other has. */
  readonly process: string
  /** Whether other processes may work on the same tables. */
  readonly isShared: boolean
  readonly sizes: StepSizes
  readonly signal: AbortSignal
}

/** The tables and helpers of a rebuild, by what they stand for. */
export function namesOf({ tables, helpers }: RebuildRecord): TableNames {
  return new Map([...Object.entries(tables), ...Object.entries(helpers)])
}

/** Where a rebuild's rows are made: every statement reads and writes its tables in place of those that serve. */
export function stepContextOf(
  { store, folding, signal, steps, isShared }: RebuildContext,
  record: RebuildRecord
): StepContext {
  return {
    store: store.with({ names: namesOf(record) }),
    folding,
    signal,
    isShared,
    inStep: (step) => steps.run(step)
  }
}

/** The projections by which the tables that do not serve are made. */
export function unitOf(record: RebuildRecord): readonly Projection[] {
  return record.unit.map((name) => projectionOf(record.definitions[name] ?? ''))
}
