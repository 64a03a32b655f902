import { type SwapCount, Swaps, SwapWatch } from '@gamenet/api'
import type { AroundSwap, PassLock, Projection } from '@gamenet/projector'
import { LOCAL_PASS_LOCK, readNewestAnnouncement } from '@gamenet/projector/internals'
import { FILLS_LOCK, PASSES_LOCK } from '@gamenet/schemas'
import { sharedPasses } from '../../src/wiring/postgres-pass-lock.js'
import { announceSwap } from '../../src/wiring/swaps.js'
import { newerOf } from './newer-program.js'
import type { Place } from './place.js'
import { simulatedProjections } from './simulated.js'
import { storeIn, type Tables } from './store.js'

/** How the processes of an installation keep swaps of tables from one another, each as one of them sees it. */
export type SwapSide = {
  readonly count: SwapCount
  readonly around: AroundSwap
  readonly passLock: PassLock
  readonly rebuildLock: PassLock
}

const WATCH_MS = 500

/** Of a process that does everything. */
export function ownSwaps(learn: (projections: readonly string[]) => Promise<void>): SwapSide {
  const swaps = new Swaps({ learn })
  const around: AroundSwap = (names, swap) => swaps.around(names, swap)
  return { count: swaps, around, passLock: LOCAL_PASS_LOCK, rebuildLock: LOCAL_PASS_LOCK }
}

/** Of one of several; `learn` where it answers. */
export function sharedSwaps(
  { world, tables, postgres }: Place,
  learn?: () => Promise<void>
): SwapSide & { stop(): Promise<void> } {
  const store = storeIn(world, tables)
  const newest = () => store.do(readNewestAnnouncement)
  const watch = new SwapWatch({ newest, learn: learn ?? (async () => undefined) })
  // A process without readers needs no notification.
  if (learn !== undefined) watch.start(WATCH_MS)
  return {
    count: watch,
    around: (names, swap) => announceSwap(store, names, swap),
    passLock: sharedPasses({ writes: async () => postgres.passes.postgres, store, lock: PASSES_LOCK }),
    rebuildLock: sharedPasses({ writes: async () => postgres.fills.postgres, store, lock: FILLS_LOCK }),
    stop: () => watch.stop()
  }
}

/** The projections of the serving tables. */
export function servingProjections(tables: Tables): readonly Projection[] {
  const newer = newerOf(simulatedProjections)
  return simulatedProjections.map((each, n) => {
    const definition = String(tables.written('projection_definition').get(each.name)?.definition)
    const later = newer[n] ?? each
    return later !== each && definition.includes(JSON.stringify((later as { select: string }).select)) ? later : each
  })
}
