import { setTimeout as wait } from 'node:timers/promises'
import {
  type DataVersions,
  EXCHANGE_QUIET_MS,
  type ExchangeCount,
  Exchanges,
  ExchangeWatch,
  newestExchange
} from '@gamenet/api'
import type { ClickHouse } from '@gamenet/engines'
import type { AroundExchange } from '@gamenet/projector'
import type { Logger } from 'pino'
import type { Config } from '../config.js'
import type { Engines } from './engines.js'

/** How readers of the tables learn of exchanges, and how one is made so that they do. */
export type TableExchanges = {
  readonly count: ExchangeCount
  readonly around: AroundExchange
  /** Keeps the count known, so that answers need not ask for it; until `stop`. */
  start(intervalMs: number): void
  stop(): Promise<void>
}

/** Of a service, by who else reads its tables. */
export function openExchanges(needs: {
  readonly config: Config
  readonly engines: Engines
  readonly dataVersions: DataVersions
  readonly logger: Logger
  readonly hasApi: boolean
}): TableExchanges {
  const { config, engines, dataVersions, logger, hasApi } = needs
  if (config.CLICKHOUSE_URL === undefined) return ownExchanges(dataVersions, logger)
  const learn = hasApi ? () => dataVersions.refresh() : async () => undefined
  return sharedExchanges(engines.clickhouse.control, learn)
}

/** This process alone reads the tables. */
function ownExchanges(dataVersions: DataVersions, logger: Logger): TableExchanges {
  const exchanges = new Exchanges({
    learn: (projections) =>
      dataVersions.refresh().catch((error: unknown) => {
        logger.warn({ err: error }, 'what changed by an exchange of tables cannot be read; all of it counts as changed')
        dataVersions.outdate(projections)
      })
  })
  return {
    count: exchanges,
    around: (projections, exchange) => exchanges.around(projections, exchange),
    start: () => undefined,
    stop: async () => undefined
  }
}

/** Other processes read the tables too: exchanges are told of in a table. */
function sharedExchanges(tables: ClickHouse['control'], learn: () => Promise<void>): TableExchanges {
  const watch = new ExchangeWatch({ tables, learn })
  return {
    count: watch,
    around: (projections, exchange) => announceExchange(tables, projections, exchange),
    start: (intervalMs) => watch.start(intervalMs),
    stop: () => watch.stop()
  }
}

/** From the announcement on nobody takes for granted that nothing is exchanged; with room for a clock that runs slowly. */
const ANNOUNCED_MS = 1.5 * EXCHANGE_QUIET_MS

/**
 * Announces an exchange, waits until everybody who answers knows of it or knows that it does not know, and makes it. One that was
 * cut off after it had begun is ended by the next, of which all are waiting.
 */
export async function announceExchange(
  tables: Pick<ClickHouse['control'], 'rows' | 'insert'>,
  projections: readonly string[],
  exchange: () => Promise<void>,
  pause: (ms: number) => Promise<unknown> = wait
): Promise<number> {
  const [row] = await tables.rows(newestExchange.sql)
  const newest = row === undefined ? undefined : newestExchange.row.parse(row)
  const id = newest === undefined ? 1 : newest.state === 'ended' ? newest.id + 1 : newest.id
  const tell = (state: string) =>
    tables.insert(
      'exchange',
      ['id', 'state', 'projections'],
      new TextEncoder().encode(`${JSON.stringify([id, state, projections])}\n`)
    )
  if (newest?.state !== 'begun') {
    await tell('announced')
    await pause(ANNOUNCED_MS)
    await tell('begun')
  }
  const begunAt = performance.now()
  // One that fails may have exchanged some of the tables: it has not ended before somebody ends it.
  await exchange()
  await tell('ended')
  return performance.now() - begunAt
}
