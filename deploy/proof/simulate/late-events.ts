import { retryDeadLetters } from '@gamenet/projector'
import { type Topic, titleCountTopic } from '@gamenet/schemas'
import type { Place } from './place.js'
import type { RunningProjector } from './projector.js'
import { tablesOver } from './store.js'

/** The schema version of a later program, which the loaders of this program make dead letters of, and which a retry reads. */
const LATER_VERSION = titleCountTopic.version + 1

/** The type of messages that a later program can read. */
export const LATER_TYPE = `gamenet.${titleCountTopic.name}.v${LATER_VERSION}`

/** The topics with retried messages, as a later program reads them. */
export const laterTopics: readonly Topic[] = [
  { ...titleCountTopic, version: LATER_VERSION, lifts: { [titleCountTopic.version]: (value) => value } } as Topic
]

/** Retries every dead letter, as `gamenet parked retry` does. */
export async function retryAll(
  place: Place,
  { rebuilds, runner }: Pick<RunningProjector, 'rebuilds' | 'runner'>
): Promise<void> {
  const { world, store, bug } = place
  for (const { name } of laterTopics) {
    const { batches } = await retryDeadLetters(
      {
        tables: bug.retryTables(tablesOver(world, store)),
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
