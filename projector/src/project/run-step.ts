import type { Tables } from '../store/tables.js'
import type { Folding } from './folding/folding.js'
import { runFold } from './folding/run-fold.js'
import { type KeySlice, type Projection, stepStatement } from './projection.js'
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

/** Computes and stores the rows of a range: live, catching up or rebuilding. */
export async function runStep(making: StepContext, projection: Projection, made: StepInput): Promise<void> {
  const make = async () => {
    if (projection.form === 'fold') return await runFold(making, projection, made)
    const { sql, parameters } = stepStatement(projection, made.range, made)
    await making.tables.execute(sql, parameters)
  }
  await (making.inStep === undefined ? make() : making.inStep(make))
}

/** Whether a range holds events of an older epoch than the newest that was loaded, which may undo what was stored. */
export function hasOlderEpoch(range: Range, loaded: readonly { readonly epoch: number }[]): boolean {
  const newestEpoch = Math.max(...loaded.map(({ epoch }) => epoch))
  return range.some(({ epoch }) => epoch < newestEpoch)
}
