import { setTimeout as wait } from 'node:timers/promises'
import { type DataVersions, newestSwap, SWAP_QUIET_MS, type SwapCount, Swaps, SwapWatch } from '@gamenet/api'
import type { ClickHouse } from '@gamenet/engines'
import type { AroundSwap } from '@gamenet/projector'
import type { Logger } from 'pino'
import type { Config } from '../config.js'
import type { Engines } from './engines.js'

/** How readers of the tables learn of swaps, and how one is made so that they do. */
export type TableSwaps = {
  readonly count: SwapCount
  readonly around: AroundSwap
  /** Keeps the count known, so that answers need not ask for it; until `stop`. */
  start(intervalMs: number): void
  stop(): Promise<void>
}

/** Of a service, by who else reads its tables. */
export function openSwaps(needs: {
  readonly config: Config
  readonly engines: Engines
  readonly dataVersions: DataVersions
  readonly logger: Logger
  readonly hasApi: boolean
}): TableSwaps {
  const { config, engines, dataVersions, logger, hasApi } = needs
  if (config.CLICKHOUSE_URL === undefined) return ownSwaps(dataVersions, logger)
  const learn = hasApi ? () => dataVersions.refresh() : async () => undefined
  return sharedSwaps(engines.clickhouse.control, learn)
}

/** This process alone reads the tables. */
function ownSwaps(dataVersions: DataVersions, logger: Logger): TableSwaps {
  const swaps = new Swaps({
    learn: (projections) =>
      dataVersions.refresh().catch((error: unknown) => {
        logger.warn({ err: error }, 'what changed by a swap of tables cannot be read; all of it counts as changed')
        dataVersions.outdate(projections)
      })
  })
  return {
    count: swaps,
    around: (projections, swap) => swaps.around(projections, swap),
    start: () => undefined,
    stop: async () => undefined
  }
}

/** Other processes read the tables too: swaps are announced in a table. */
function sharedSwaps(tables: ClickHouse['control'], learn: () => Promise<void>): TableSwaps {
  const watch = new SwapWatch({ tables, learn })
  return {
    count: watch,
    around: (projections, swap) => announceSwap(tables, projections, swap),
    start: (intervalMs) => watch.start(intervalMs),
    stop: () => watch.stop()
  }
}

/** After the announcement no reader assumes unswapped tables; with a margin for slow clocks. */
const ANNOUNCED_MS = 1.5 * SWAP_QUIET_MS

/**
 * Announces a swap, waits until everybody who answers knows of it or knows that it does not know, and makes it. One that was
 * cut off after it had begun is ended by the next, of which all are waiting.
 */
export async function announceSwap(
  tables: Pick<ClickHouse['control'], 'rows' | 'insert'>,
  projections: readonly string[],
  swap: () => Promise<void>,
  pause: (ms: number) => Promise<unknown> = wait
): Promise<number> {
  const [row] = await tables.rows(newestSwap.sql)
  const newest = row === undefined ? undefined : newestSwap.row.parse(row)
  const id = newest === undefined ? 1 : newest.state === 'ended' ? newest.id + 1 : newest.id
  const announce = (state: string) =>
    tables.insert(
      'exchange',
      ['id', 'state', 'projections'],
      new TextEncoder().encode(`${JSON.stringify([id, state, projections])}\n`)
    )
  if (newest?.state !== 'begun') {
    await announce('announced')
    await pause(ANNOUNCED_MS)
    await announce('begun')
  }
  const begunAt = performance.now()
  // One that fails may have swapped some of the tables: it has not ended before somebody ends it.
  await swap()
  await announce('ended')
  return performance.now() - begunAt
}
