import { access } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { openSpool } from '@gamenet/engines/log'
import { errorMessage } from '@gamenet/schemas'
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { Config } from '../config.js'
import { claimDataDirectory } from '../data-directory.js'
import type { Disposers } from './disposers.js'
import { type SpoolingLog, spoolingLog } from './spooling-log.js'
import { VERSIONS } from './version.js'

/** Of processes that scrape; an embedded log is never away. */
function hasSpool(config: Config, role: string): boolean {
  return config.KAFKA_BROKERS !== undefined && config.SPOOL_BYTES_MAX > 0 && (role === 'ingest' || role === 'all')
}

function directoryOf(config: Config): string {
  return join(resolve(config.DATA_DIR), 'spool')
}

/**
 * Whether this installation has a spool already, and so has reached Kafka before: then it may start while Kafka is away. A
 * first start that cannot reach it has more likely a wrong address.
 */
export async function isSpoolKnown(config: Config, role: string): Promise<boolean> {
  if (!hasSpool(config, role)) return false
  return await access(join(directoryOf(config), 'data.mdb')).then(
    () => true,
    () => false
  )
}

/**
 * The log as scrapers write it: through a spool on the disk where there may be one, else undefined. A directory that
 * another process uses, or that cannot be written, is no reason not to scrape.
 */
export async function openSpoolingLog(needs: {
  readonly config: Config
  readonly role: string
  readonly engines: Pick<Parameters<typeof spoolingLog>[0], 'log'>
  readonly registry: Registry
  readonly logger: Logger
  readonly disposers: Disposers
}): Promise<SpoolingLog | undefined> {
  const { config, role, engines, registry, logger, disposers } = needs
  if (!hasSpool(config, role)) return undefined
  try {
    const directory = await claimDataDirectory(directoryOf(config), VERSIONS)
    disposers.add(directory, () => directory.release())
    const spool = openSpool({ path: directory.path, bytesMax: config.SPOOL_BYTES_MAX })
    return disposers.add(spoolingLog({ log: engines.log, spool, registry, logger }), (log) => log.close())
  } catch (error) {
    const reason = errorMessage(error)
    logger.warn({ reason }, 'there is no spool: while Kafka is away, what is scraped is lost')
    return undefined
  }
}
