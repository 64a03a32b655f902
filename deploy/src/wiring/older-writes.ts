import { projections, storeAt, storeOver } from '@gamenet/projector'
import type { Logger } from 'pino'
import type { Dependencies } from './dependencies.js'
import type { Engines } from './engines.js'

/** For `gamenet status`, until a comparison says what is lost. */
export const OLDER_AT_START = 'PostgreSQL was older than the tables or the log at the start (docs/operators/verify.md)'

export type OlderWritesNeeds = Pick<Dependencies, 'damageMet'> & {
  readonly engines: Pick<Engines, 'postgres'> & { readonly clickhouse: Pick<Engines['clickhouse'], 'rebuild'> }
  readonly lostRows: Pick<Dependencies['lostRows'], 'whenRepaired'>
  readonly logger: Pick<Logger, 'error'>
}

/**
 * Reports a write side that is older than the tables, in the background, once all lost rows are restored: the comparison may take seconds.
 * @returns how to stop it
 */
export function compareWrites({ engines, lostRows, damageMet, logger }: OlderWritesNeeds): () => void {
  const { clickhouse, postgres } = engines
  let isStopping = false
  const compare = async () => {
    if (postgres === undefined || !(await lostRows.whenRepaired())) return
    const { findLostWrites } = await import('../operations/lost-writes.js')
    const tables = await storeAt('writes', storeOver(clickhouse.rebuild), projections)
    const { users, changes } = await findLostWrites(tables, postgres)
    if (users + changes === 0) return
    damageMet.delete(OLDER_AT_START)
    const what = `PostgreSQL lacks the keys of ${users} users, and ${changes} changes of profiles and ratings`
    damageMet.add(`${what} that the tables have (gamenet verify)`)
  }
  compare().catch((error: unknown) => {
    if (!isStopping)
      logger.error({ err: error }, 'PostgreSQL could not be compared with the tables; the next start retries')
  })
  return () => {
    isStopping = true
  }
}
