import type { Store } from '../store/operation.js'
import type { Folding } from './folding.js'

/** The environment of a step. */
export type StepContext = {
  readonly store: Store
  readonly folding: Folding
  readonly signal: AbortSignal
  /** Whether other processes may write rows of the same tables. */
  readonly isShared?: boolean
  /** Wraps each step, so that others can wait for it. */
  readonly inStep?: <Result>(step: () => Promise<Result>) => Promise<Result>
}
