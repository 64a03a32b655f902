import { setTimeout as wait } from 'node:timers/promises'
import { type DataVersions, SWAP_QUIET_MS, type SwapCount, Swaps, SwapWatch } from '@gamenet/api'
import {
  type Announcement,
  type AroundSwap,
  readNewestAnnouncement,
  type Store,
  storeAnnouncement
} from '@gamenet/projector'
import type { Logger } from 'pino'
import type { Config } from '../config.js'
import type { Engines } from './engines.js'

/** Announces swaps to readers of the tables. */
export type TableSwaps = {
  readonly count: SwapCount
  readonly around: AroundSwap
  /** Keeps the count of swaps current, so that answers need no query; until `stop`. */
  start(intervalMs: number): void
  stop(): Promise<void>
}

/** Returns the swaps of a service, depending on who else reads its tables. */
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
  return sharedSwaps(engines.store, learn)
}

/** For a process with exclusive use of the tables. */
function ownSwaps(dataVersions: DataVersions, logger: Logger): TableSwaps {
  const swaps = new Swaps({
    learn: (projections) =>
      dataVersions.refresh().catch((error: unknown) => {
        logger.warn({ err: error }, 'the changes of a swap of tables cannot be read; everything counts as changed')
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

/** For tables with other readers: swaps are announced in a table. */
function sharedSwaps(store: Store, learn: () => Promise<void>): TableSwaps {
  const watch = new SwapWatch({ newest: () => store.do(readNewestAnnouncement), learn })
  return {
    count: watch,
    around: (projections, swap) => announceSwap(store, projections, swap),
    start: (intervalMs) => watch.start(intervalMs),
    stop: () => watch.stop()
  }
}

/** Time from an announcement until no reader assumes unswapped tables, with a margin for slow clocks. */
const ANNOUNCED_MS = 1.5 * SWAP_QUIET_MS

/**
 * Announces a swap, waits until every reader knows of it or knows that its information is stale, then swaps. A swap
 * that was interrupted after its start is completed by the next one, which all readers wait for.
 */
export async function announceSwap(
  store: Store,
  projections: readonly string[],
  swap: () => Promise<void>,
  pause: (ms: number) => Promise<unknown> = wait
): Promise<number> {
  const newest = await store.do(readNewestAnnouncement)
  const id = newest === undefined ? 1 : newest.state === 'ended' ? newest.id + 1 : newest.id
  const announce = (state: Announcement['state']) => store.do(storeAnnouncement, { id, state }, projections)
  if (newest?.state !== 'begun') {
    await announce('announced')
    await pause(ANNOUNCED_MS)
    await announce('begun')
  }
  const begunAt = performance.now()
  // A failed swap may have exchanged some of the tables; it stays open until another call completes it.
  await swap()
  await announce('ended')
  return performance.now() - begunAt
}
