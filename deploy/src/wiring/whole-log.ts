import { readCheckpoints } from '@gamenet/projector'
import { loadCheckpoint, Refusal, topics } from '@gamenet/schemas'
import { FilesDamaged } from '../config.js'
import { RESTORE } from './engine-failures.js'
import type { Engines } from './engines.js'

/**
 * Refuses an embedded log that ends before events that the tables have loaded: an older copy. It would give their offsets to new events,
 * which would count as loaded. To be called before anything is appended. Kafka, which others write to, stalls the loader.
 */
export async function requireWholeLog({ log, logChoice, store }: Pick<Engines, 'log' | 'logChoice' | 'store'>) {
  if (log.files === undefined) return
  const checkpoints = await store.do(readCheckpoints).catch((error: unknown) => {
    // Until lost rows of the checkpoints are restored, nothing tells how far the log was loaded.
    if (error instanceof Refusal) return []
    throw error
  })
  for (const { name: topic } of topics) {
    const extents = await log.extents(topic)
    for (const { name, epoch, partition, next } of checkpoints) {
      if (name !== loadCheckpoint(topic) || epoch !== logChoice.epoch) continue
      const end = extents.find((each) => each.epoch === epoch && each.partition === partition)?.next ?? 0
      if (next <= end) continue
      throw new FilesDamaged(
        'log',
        `The log is older than the tables: ${topic} ends before offset ${end}, and the tables have its events up to ${next - 1}`,
        `${RESTORE}; or move the folder log away and set LOG_EPOCH=${epoch + 1}, which begins an empty log, while the tables keep their events`
      )
    }
  }
}
