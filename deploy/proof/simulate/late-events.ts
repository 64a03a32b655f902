import { retryDeadLetters } from '@gamenet/projector'
import type { Place } from './place.js'
import type { RunningProjector } from './projector.js'
import { storeIn } from './store.js'
import { laterTopics } from './tables/newer-program.js'

/** Retries every dead letter, as `gamenet dead-letters retry` does. */
export async function retryAll(
  place: Place,
  { rebuilds, runner }: Pick<RunningProjector, 'rebuilds' | 'runner'>
): Promise<void> {
  const { world, tables, bug } = place
  for (const { name } of laterTopics) {
    const { batches } = await retryDeadLetters(
      {
        store: bug.retryStore(storeIn(world, tables)),
        topics: laterTopics,
        withSealKeys: async (_, use) => await use(new Map()),
        inStep: (step) => rebuilds.inStep(step),
        onProgress: () => undefined,
        signal: new AbortController().signal
      },
      name,
      'all'
    )
    if (batches.length > 0) runner.wakeForLate()
  }
}
