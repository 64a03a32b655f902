import { readdir } from 'node:fs/promises'
import type { Logger } from 'pino'
import type { Config } from '../config.js'

/** Where descriptors are unlimited: more connections than streams, of some 20 kB each. */
const CONNECTIONS_BOUND = 20_000
/**
 * Descriptors for engines, files and other servers: 540 were seen on two processors, three for each of the 112
 * threads of the embedded ClickHouse, 110 for PostgreSQL. A small limit is shared, a large one leaves more, because
 * more processors have more threads.
 */
const RESERVE_MIN = 1024
const RESERVE_SHARE = { most: 0.75, least: 0.25 }

/** How many connections the public port has, and why. */
export type ConnectionLimit = {
  readonly connectionsMax: number
  /** The limit of the process's open files; infinite where there is none. */
  readonly descriptorsMax: number
}

/**
 * Returns the maximum of open connections: CONNECTIONS_MAX, but never so many that no descriptors are left for the
 * engines, which fail at the limit as the event loop does.
 */
export function connectionLimit(
  { CONNECTIONS_MAX: wanted }: Pick<Config, 'CONNECTIONS_MAX'>,
  logger: Pick<Logger, 'warn'>,
  descriptorsMax = limitOfDescriptors()
): ConnectionLimit {
  const share = (of: number): number => descriptorsMax * of
  const reserve = Math.max(Math.min(RESERVE_MIN, share(RESERVE_SHARE.most)), share(RESERVE_SHARE.least))
  const possible = Number.isFinite(descriptorsMax) ? Math.floor(descriptorsMax - reserve) : Number.POSITIVE_INFINITY
  const connectionsMax = Math.min(wanted ?? CONNECTIONS_BOUND, possible)
  if (wanted !== undefined && wanted > possible)
    logger.warn(
      `CONNECTIONS_MAX is ${wanted}, and ${descriptorsMax} open files (ulimit -n) allow ${possible} besides those of ` +
        `the engines: so many are accepted. Raise the limit of open files, or lower CONNECTIONS_MAX.`
    )
  return { connectionsMax, descriptorsMax }
}

/** Returns what `gamenet doctor` says. */
export async function connectionsText({ connectionsMax, descriptorsMax }: ConnectionLimit): Promise<string> {
  const open = await readdir('/proc/self/fd').catch(() => undefined)
  const found = open === undefined ? '' : `, of which ${open.length} are open`
  const limit = Number.isFinite(descriptorsMax) ? `${descriptorsMax}` : 'any number of'
  return `at most ${connectionsMax} at once (CONNECTIONS_MAX); the process may open ${limit} files (ulimit -n)${found}`
}

/** Node raises its limit to the hard one at the start. */
function limitOfDescriptors(): number {
  const { userLimits } = process.report.getReport() as { userLimits?: { open_files?: { soft: unknown } } }
  const soft = Number(userLimits?.open_files?.soft)
  return Number.isNaN(soft) ? Number.POSITIVE_INFINITY : soft
}
