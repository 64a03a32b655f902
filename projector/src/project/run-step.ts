import { runFold } from '../folding/run-fold.js'
import type { StepContext } from '../folding/step.js'
import type { Projection } from '../store/projection.js'
import type { Range } from '../store/range.js'
import { makeRows, type StepInput } from '../store/step.js'

/** Computes and stores the rows of a range: live, catching up or rebuilding. */
export async function runStep(step: StepContext, projection: Projection, input: StepInput): Promise<void> {
  await asStep(step, async () => {
    if (projection.form === 'fold') return await runFold(step, projection, input)
    await step.store.do(makeRows, projection, input)
  })
}

/** Runs work that others wait for as for a step. */
export async function asStep({ inStep }: StepContext, work: () => Promise<void>): Promise<void> {
  await (inStep === undefined ? work() : inStep(work))
}

/** Returns whether a range has events of an older epoch than the newest loaded one, which may undo stored rows. */
export function hasOlderEpoch(range: Range, loaded: readonly { readonly epoch: number }[]): boolean {
  const newestEpoch = Math.max(...loaded.map(({ epoch }) => epoch))
  return range.some(({ epoch }) => epoch < newestEpoch)
}
