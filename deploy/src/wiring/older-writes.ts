import { projections, storeAt, storeOver } from '@gamenet/projector'
import { backoffMs, pause } from '@gamenet/schemas'
import type { Logger } from 'pino'
import type { Dependencies } from './dependencies.js'
import type { Engines } from './engines.js'
import { failureSince } from './failure-since.js'

/** For `gamenet status`, until a comparison says what is lost. */
export const OLDER_AT_START = 'PostgreSQL was older than the tables or the log at the start (docs/operators/verify.md)'

const CATCH_UP_MS_MAX = 86_400_000
const RETRY = { firstMs: 5000, maxMs: 600_000 }

export type OlderWritesNeeds = Pick<Dependencies, 'damageMet'> & {
  readonly engines: Pick<Engines, 'postgres' | 'store' | 'log'> & {
    readonly clickhouse: Pick<Engines['clickhouse'], 'rebuild'>
  }
  readonly projector: Dependencies['projector']
  readonly lostRows: Pick<Dependencies['lostRows'], 'whenRepaired'>
  readonly logger: Pick<Logger, 'error'>
}

/**
 * Reports a write side that is older than the tables, and one that is newer than tables and log, in the background,
 * once all lost rows are restored: each comparison may take seconds.
 * @returns how to stop it
 */
export function compareWrites({ engines, projector, lostRows, damageMet, logger }: OlderWritesNeeds): () => void {
  const { clickhouse, postgres } = engines
  const stop = new AbortController()
  let lacking = ''
  const compare = async () => {
    if (postgres === undefined || !(await lostRows.whenRepaired())) return
    const [{ findLostWrites, keepLostUsers }, { findLostEvents }, { waitUntilCaughtUp }] = await Promise.all([
      import('../operations/lost-writes.js'),
      import('../operations/lost-events.js'),
      import('../operations/caught-up.js')
    ])
    const tables = await storeAt('writes', storeOver(clickhouse.rebuild), projections)
    const { users, changes } = await findLostWrites(tables, postgres)
    await keepLostUsers(postgres, users)
    damageMet.delete(lacking)
    if (users + changes > 0) {
      damageMet.delete(OLDER_AT_START)
      const what = [
        ...(users > 0 ? [`the keys of at least ${users} users`] : []),
        ...(changes > 0 ? [`${changes} changes of profiles and ratings that the tables have`] : [])
      ]
      lacking = `PostgreSQL lacks ${what.join(' and ')} (gamenet verify)`
      damageMet.add(lacking)
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
  const report = failureSince(damageMet, 'PostgreSQL cannot be compared with the tables')
  const untilCompared = async () => {
    for (let tries = 1; !stop.signal.aborted; tries += 1) {
      try {
        await compare()
        return report()
      } catch (error) {
        if (stop.signal.aborted) return
        logger.error({ err: error }, 'PostgreSQL cannot be compared with the tables; retrying')
        report(error)
        await pause(backoffMs(RETRY, tries), stop.signal)
      }
    }
  }
  void untilCompared()
  return () => stop.abort()
}
