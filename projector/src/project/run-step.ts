import { runFold } from './folding/run-fold.js'
import { type Projection, stepStatement } from './projection.js'
import type { Range } from './range.js'
import type { StepContext, StepInput } from './step.js'

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
