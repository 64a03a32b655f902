import type { Tables } from '../store/tables.js'
import type { Folding } from './folding/folding.js'
import type { KeySlice } from './projection.js'
import type { Range } from './range.js'

/** Where rows are made. */
export type StepContext = {
  readonly tables: Tables
  readonly folding: Folding
  readonly signal: AbortSignal
  /** Whether other processes may make rows of the same tables. */
  readonly isShared?: boolean
  /** What runs each step, where somebody waits for steps; else they are just run. */
  readonly inStep?: <Result>(step: () => Promise<Result>) => Promise<Result>
}

/** What rows are made of. */
export type StepInput = {
  readonly range: Range
  /** True when it holds events that come behind later ones: of an older epoch than what was taken before, or late ones. */
  readonly isLate: boolean
  /** The keys that are taken; all of the range unless given. */
  readonly slice?: KeySlice
}
