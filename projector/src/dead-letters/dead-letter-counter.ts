import { errorMessage, type Logger, topics, withTimeout } from '@gamenet/schemas'
import { countDeadLetters } from '../store/dead-letter.js'
import type { Store } from '../store/operation.js'

const ASK_MS = 2000

/**
 * Counts the dead letters of every topic. If the tables are unavailable, or busy for longer than {@link ASK_MS},
 * returns the last counts: status and metrics must neither fail nor hang.
 */
export function deadLetterCounter(store: Store, logger: Logger): () => Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>()
  let counting: Promise<void> | undefined
  return async () => {
    counting ??= store
      .do(countDeadLetters)
      .then((counted) => {
        for (const { name } of topics) counts.set(name, counted.get(name) ?? 0)
      })
      .catch((error: unknown) => logger.warn({ reason: errorMessage(error) }, 'dead letters cannot be counted'))
      .finally(() => {
        counting = undefined
      })
    await withTimeout(counting, ASK_MS, () => undefined)
    return counts
  }
}
