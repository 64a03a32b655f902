import { access } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { openSpool } from '@gamenet/engines/log'
import { errorMessage } from '@gamenet/schemas'
import type { Config } from '../config.js'
import { claimDataDirectory } from '../data-directory/data-directory.js'
import { VERSIONS } from '../version.js'
import type { ProcessContext, Role } from './component.js'
import type { OpenLog } from './log.js'
import { type SpoolingLog, spoolingLog } from './spooling-log.js'

/**
 * Returns the log with a spool on the disk; undefined if the spool's directory is not writable or used by another
 * process, which then scrapes without a spool.
 */
export async function openSpoolingLog({
  config,
  engines,
  registry,
  logger,
  disposers
}: ProcessContext & { readonly engines: { readonly log: OpenLog } }): Promise<SpoolingLog | undefined> {
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

/** Returns whether the log can be unavailable and the configuration permits a spool. */
export const usesSpool = (config: Config): boolean => config.KAFKA_BROKERS !== undefined && config.SPOOL_BYTES_MAX > 0

const spoolDirectory = (config: Config): string => join(resolve(config.DATA_DIR), 'spool')

/**
 * Returns whether this installation has a spool, and so has reached Kafka before: then it may start while Kafka is
 * unavailable. A first start that cannot reach Kafka more likely has a wrong address.
 */
export async function isSpoolKnown(config: Config, role: Role): Promise<boolean> {
  if (!usesSpool(config) || (role !== 'ingest' && role !== 'all')) return false
  return await access(join(spoolDirectory(config), 'data.mdb')).then(
    () => true,
    () => false
  )
}
