import { access } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Config } from '../config.js'
import type { Role } from './component.js'

/** Whether the log can be unavailable and the configuration allows a spool. */
export function usesSpool(config: Config): boolean {
  return config.KAFKA_BROKERS !== undefined && config.SPOOL_BYTES_MAX > 0
}

export function spoolDirectory(config: Config): string {
  return join(resolve(config.DATA_DIR), 'spool')
}

/**
 * Whether this installation has a spool, and so has reached Kafka before: then it may start while Kafka is unavailable. A first
 * start that cannot reach Kafka more likely has a wrong address.
 */
export async function isSpoolKnown(config: Config, role: Role): Promise<boolean> {
  if (!usesSpool(config) || (role !== 'ingest' && role !== 'all')) return false
  return await access(join(spoolDirectory(config), 'data.mdb')).then(
    () => true,
    () => false
  )
}
