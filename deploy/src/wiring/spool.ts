import { openSpool } from '@gamenet/engines/log'
import { errorMessage } from '@gamenet/schemas'
import { claimDataDirectory } from '../data-directory.js'
import type { Needs } from './service-parts.js'
import { spoolDirectory } from './spool-directory.js'
import { type SpoolingLog, spoolingLog } from './spooling-log.js'
import { VERSIONS } from './version.js'

/**
 * The log with a spool on the disk; undefined when the spool's directory is used by another process or cannot be written, in
 * which case the process scrapes without a spool.
 */
export async function openSpoolingLog({
  config,
  engines,
  registry,
  logger,
  disposers
}: Needs): Promise<SpoolingLog | undefined> {
  try {
    const directory = await claimDataDirectory(spoolDirectory(config), VERSIONS)
    disposers.add(directory, () => directory.release())
    const spool = openSpool({ path: directory.path, bytesMax: config.SPOOL_BYTES_MAX })
    return disposers.add(spoolingLog({ log: engines.log, spool, registry, logger }), (log) => log.close())
  } catch (error) {
    const reason = errorMessage(error)
    logger.warn({ reason }, 'there is no spool: events that are scraped while Kafka is unavailable are lost')
    return undefined
  }
}
