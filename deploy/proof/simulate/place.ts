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
  /** The step of the last rebuild before which it happens; undefined: while the world is lively, at an instant. */
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
  /** Events that publishing said are in the log for good, as their ids. */
  readonly acknowledged: Set<string>
  /** Files that were imported, by the ids of their imports. */
  readonly imports: Map<string, Import>
  /** A user who is erased, in some worlds. */
  readonly erasure: Erasure | undefined
  /** Several processes work on the same tables. */
  readonly isShared: boolean
  /** How large the steps of rebuilds are. */
  readonly stepSizes: StepSizes
  /** Processes that start now run a later program. */
  isNewer: boolean
  areReadingsMortal: boolean
  /** Messages that only a later program can read were retried by it, all of them. */
  areLaterRead: boolean
  /** New facts come up. */
  isLively: boolean
  /** Counts come all the same. */
  isTrickling: boolean
}
