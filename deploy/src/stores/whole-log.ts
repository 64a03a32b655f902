import { readStalls } from '@gamenet/projector'
import { Refusal } from '@gamenet/schemas'
import { FilesDamaged } from '../config.js'
import { RESTORE } from './engine-failures.js'
import type { Engines } from './engines.js'

/**
 * Refuses an embedded log that ends before events that the tables have loaded: an older copy. It would give their
 * offsets to new events, which would count as loaded. To be called before anything is appended. Kafka, which others
 * write to, stalls the loader.
 */
export async function requireWholeLog({ log, store }: Pick<Engines, 'log' | 'store'>) {
  if (log.files === undefined) return
  const stalled = await readStalls({ store, log }).catch((error: unknown) => {
    // Until lost rows of the checkpoints are restored, nothing tells how far the log was loaded.
    if (error instanceof Refusal) return []
    throw error
  })
  // The newest epoch: a lower one is in the same copy.
  const older = stalled.filter(({ wanted, next }) => wanted > next).sort((a, b) => b.epoch - a.epoch)[0]
  if (older === undefined) return
  const { topic, wanted, next } = older
  throw new FilesDamaged(
    'log',
    `The log is older than the tables: ${topic} ends before offset ${next}, and the tables have its events up to ` +
      `${wanted - 1}`,
    wayFromOlderLog(log, older)
  )
}

/** What an operator does if the log ends before events that the tables have. */
export function wayFromOlderLog(
  { files }: Pick<Engines['log'], 'files'>,
  { epoch }: { readonly epoch: number }
): string {
  return files === undefined
    ? `set LOG_EPOCH=${epoch + 1} for all processes and restart them: docs/operators/kafka.md`
    : `${RESTORE}; or move the folder log away and set LOG_EPOCH=${epoch + 1}, which begins an empty log, while the ` +
        `tables keep their events`
}
