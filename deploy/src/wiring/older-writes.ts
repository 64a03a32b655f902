import { projections, storeAt, storeOver } from '@gamenet/projector'
import type { Logger } from 'pino'
import type { Dependencies } from './dependencies.js'
import { failureText } from './engine-failures.js'
import type { Engines } from './engines.js'

/** For `gamenet status`, until a comparison says what is lost. */
export const OLDER_AT_START = 'PostgreSQL was older than the tables or the log at the start (docs/operators/verify.md)'

const CATCH_UP_MS_MAX = 86_400_000

export type OlderWritesNeeds = Pick<Dependencies, 'damageMet'> & {
  readonly engines: Pick<Engines, 'postgres' | 'store' | 'log'> & {
    readonly clickhouse: Pick<Engines['clickhouse'], 'rebuild'>
  }
  readonly projector: Dependencies['projector']
  readonly lostRows: Pick<Dependencies['lostRows'], 'whenRepaired'>
  readonly logger: Pick<Logger, 'error'>
}

/**
 * Reports a write side that is older than the tables, and one that is newer than tables and log, in the background, once all lost rows are
 * restored: each comparison may take seconds.
 * @returns how to stop it
 */
export function compareWrites({ engines, projector, lostRows, damageMet, logger }: OlderWritesNeeds): () => void {
  const { clickhouse, postgres } = engines
  const stop = new AbortController()
  const compare = async () => {
    if (postgres === undefined || !(await lostRows.whenRepaired())) return
    const [{ findLostWrites }, { findLostEvents }, { waitUntilCaughtUp }] = await Promise.all([
      import('../operations/lost-writes.js'),
      import('../operations/lost-events.js'),
      import('../operations/caught-up.js')
    ])
    const tables = await storeAt('writes', storeOver(clickhouse.rebuild), projections)
    const { users, changes } = await findLostWrites(tables, postgres)
    if (users + changes > 0) {
      damageMet.delete(OLDER_AT_START)
      const what = [
        ...(users > 0 ? [`the keys of ${users} users`] : []),
        ...(changes > 0 ? [`${changes} changes of profiles and ratings that the tables have`] : [])
      ]
      damageMet.add(`PostgreSQL lacks ${what.join(' and ')} (gamenet verify)`)
    }
    const waiting = { engines, projector, onChange: async () => undefined, stopping: stop.signal }
    const haveCaughtUp = async (topics: readonly string[]) =>
      (await waitUntilCaughtUp(waiting, CATCH_UP_MS_MAX, topics)).settled
    const lost = await findLostEvents(tables, postgres, { haveCaughtUp })
    if (lost === undefined || lost.length === 0) return
    const found = `The log and the tables are older than PostgreSQL: they lack ${lost.length} of its changes of profiles and ratings`
    logger.error(
      { changes: lost.length },
      `${found}, and perhaps other events (gamenet verify says what to do before more is recorded)`
    )
    damageMet.add(`${found[0]?.toLowerCase()}${found.slice(1)} (gamenet verify)`)
  }
  compare().catch((error: unknown) => {
    if (stop.signal.aborted) return
    logger.error({ err: error }, 'PostgreSQL could not be compared with the tables; the next start retries')
    damageMet.add(`PostgreSQL could not be compared with the tables at the start: ${failureText(error)}`)
  })
  return () => stop.abort()
}
