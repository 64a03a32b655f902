import type { StepSizes } from '@gamenet/projector/internals'
import type { Bug } from './bugs.js'
import type { Conditions } from './conditions.js'
import type { SimulatedLog } from './log.js'
import type { Promises } from './promises.js'
import type { Tables } from './store.js'
import type { Upstream } from './upstream.js'
import type { Life } from './virtual-time.js'
import type { World } from './world.js'
import type { SimulatedPostgres } from './write-side.js'

/** An imported file: its importer, and the end of its import. */
export type Import = { readonly by: Life; endedMs: number | undefined; isUndone: boolean }

/** A user to be erased. */
export type Erasure = {
  readonly userKey: string
  /** The step of the final rebuilds before which it happens; undefined: after `afterMs`, while the world is active. */
  readonly before: 'wait' | 'verify' | 'swap' | 'rollback' | undefined
  readonly afterMs: number
  isDone: boolean
}

/** The engines and the world in which processes run. */
export type Place = {
  readonly world: World
  readonly tables: Tables
  readonly promises: Promises
  readonly log: SimulatedLog
  readonly postgres: SimulatedPostgres
  readonly upstream: Upstream
  readonly bug: Bug
  readonly conditions: Conditions
  /** The ids of events whose append was acknowledged. */
  readonly acknowledged: Set<string>
  /** The imported files, by the ids of their imports. */
  readonly imports: Map<string, Import>
  /** The user who is erased, in some worlds. */
  readonly erasure: Erasure | undefined
  /** Several processes work on the same tables. */
  readonly isShared: boolean
  /** Their passes are divided, in odd seeds without a planted mistake: those are found in as few steps as before. */
  isDivided: boolean
  /** The sizes of rebuild steps. */
  readonly stepSizes: StepSizes
  /** New processes run a later program. */
  isNewer: boolean
  /** Reading threads may die. */
  areReadingsMortal: boolean
  /** A later program has retried all messages that only it can read. */
  areLaterRead: boolean
  /** New facts are generated. */
  isActive: boolean
  /** Counts are generated although the world is not active. */
  isTrickling: boolean
}
