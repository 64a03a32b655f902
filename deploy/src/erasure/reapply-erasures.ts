import type { Logger } from 'pino'
import type { Engines } from '../wiring/engines.js'
import type { Role } from '../wiring/service.js'
import { reapplyMissingErasures } from './erase-user.js'
import { LEDGER_FILE, writeLedgerFile } from './ledger-file.js'

/**
 * Forgets again whom an older copy has brought back, before anything is loaded or answered. What fails is tried again in the
 * background, and at the next start.
 */
export async function reapplyErasures(
  engines: Engines,
  role: Role,
  stepsEnded: () => Promise<void>,
  logger: Logger
): Promise<void> {
  if (role === 'offline' || role === 'api') return
  try {
    const done = await reapplyMissingErasures({
      writes: await engines.writes(),
      tables: engines.clickhouse.control,
      stepsEnded,
      signal: new AbortController().signal,
      isAlone: role === 'all' && engines.isEmbedded
    })
    if (done > 0)
      logger.warn({ forgettings: done }, 'an older copy was put back: who was forgotten since is forgotten again')
    await writeLedgerCopy(engines)
  } catch (error) {
    logger.error(
      { err: error },
      'who was forgotten could not be compared with the tables; it is tried at the next start'
    )
  }
}

/** A copy of the ledger beside the engines' files, for the day on which an older copy of these is put back. */
export async function writeLedgerCopy({ directory, writes }: Engines): Promise<void> {
  if (directory !== undefined) await writeLedgerFile(await writes(), directory.part(LEDGER_FILE))
}
