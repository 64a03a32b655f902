import { readPending, storeConsumed } from '../store/late-batch.js'
import type { Store } from '../store/operation.js'
import type { Range } from '../store/range.js'
import { projectionsWithout } from './dead-letters.js'
import { readLateRange } from './late-batches.js'

/** Maximum number of batches per call. */
const BATCHES_MAX = 20

/**
 * Late events for a reader that follows projections with its own position in the log.
 * @param consumer the unique name of the reader
 */
export function lateReader(store: Store, consumer: string) {
  return {
    /**
     * Returns batches of these topics that every projection has consumed and the reader has not, each with its events.
     */
    async pending(topics: readonly string[]) {
      const found: { id: string; topic: string; range: Range }[] = []
      for (const { id, topic } of await store.do(readPending, consumer, topics)) {
        if (found.length >= BATCHES_MAX) break
        if ((await projectionsWithout(store, topic, [id])).length > 0) continue
        found.push({ id, topic, range: await readLateRange(store, id) })
      }
      return found
    },
    consumed: (ids: readonly string[]) =>
      store.do(
        storeConsumed,
        ids.map((id) => ({ id, consumer }))
      )
  }
}
