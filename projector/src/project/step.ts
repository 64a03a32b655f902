import type { Store } from '../store/operation.js'
import type { Folding } from './folding/folding.js'

/** Where rows are made. */
export type StepContext = {
  readonly store: Store
  readonly folding: Folding
  readonly signal: AbortSignal
  /** Whether other processes may make rows of the same tables. */
  readonly isShared?: boolean
  /** What runs each step, where somebody waits for steps; else they are just run. */
  readonly inStep?: <Result>(step: () => Promise<Result>) => Promise<Result>
}
