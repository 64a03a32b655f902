import { reapplyMissingErasures } from '../operate/erase/erase-user.js'
import { stepsOf } from '../stores/concurrent-writers.js'
import { failureText } from '../stores/engine-failures.js'
import { mergeLedgerCopy, writeLedgerCopy } from '../stores/ledger-file.js'
import type { Needs } from './dependencies.js'

/** A longer wait would delay the start: rows are deleted by then, and the running service waits for their files. */
const OLD_PARTS_MS = 5000

/**
 * Erases again users that an older copy contains, before anything is loaded or answered. Failures are logged and
 * retried at the next start.
 */
export async function reapplyErasures({ engines, role, concurrentWriters, logger, damageMet }: Needs): Promise<void> {
  try {
    for (const what of await mergeLedgerCopy(engines)) {
      logger.error(what)
      damageMet.add(`${what} (docs/operators/erasure.md)`)
    }
    const { completed, repeated } = await reapplyMissingErasures({
      writes: await engines.writes(),
      tables: engines.clickhouse.control,
      stepsEnded: stepsOf(concurrentWriters).stepsEnded,
      ownsTables: engines.ownsTables,
      signal: new AbortController().signal,
      oldPartsMs: OLD_PARTS_MS,
      // On a low disk merges are stopped and no deletion of rows ends; the running service completes pending erasures
      // later.
      isOnlyReader: role === 'all' && engines.isEmbedded && !engines.disk.isLow()
    })
    if (completed > 0) logger.warn({ erasures: completed }, 'interrupted erasures are completed')
    if (repeated > 0)
      logger.warn({ erasures: repeated }, 'an older copy was restored: users who were erased since are erased again')
    await writeLedgerCopy(engines)
  } catch (error) {
    logger.error({ err: error }, 'erasures are not complete; the running service or its next start retries')
    damageMet.add(`erasures could not be compared at the start: ${failureText(error)}`)
  }
}
