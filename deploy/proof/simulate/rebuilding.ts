import type { Division, Parts, PassLock, Projection } from '@gamenet/projector'
import { LOCAL_PASS_LOCK, ownerOf, statementsOf, UNDIVIDED } from '@gamenet/projector/internals'
import { FILLS_LOCK, PASSES_LOCK } from '@gamenet/schemas'
import { dividedPasses } from '../../src/stores/divided-passes.js'
import { sharedPasses } from '../../src/stores/postgres-pass-lock.js'
import { filledIn } from './operations/bookkeeping.js'
import type { Place } from './place.js'
import { simulatedProjections } from './simulated.js'
import type { Tables } from './store.js'
import { newerOf } from './tables/newer-program.js'

/** The locks of the processes of an installation: of passes, of steps of rebuilds, and of topics. */
export type Locks = {
  readonly passes: PassLock
  readonly rebuilds: PassLock
  readonly division: (parts: Parts) => Division
}

export function locksOf({ isShared, isDivided, postgres }: Place): Locks {
  const division = isDivided ? dividedPasses(postgres.topics.begin, postgres.topics.nextProjector()) : () => UNDIVIDED
  if (!isShared) return { passes: LOCAL_PASS_LOCK, rebuilds: LOCAL_PASS_LOCK, division }
  return {
    division,
    passes: sharedPasses({ locks: postgres.passes.transactions, lock: PASSES_LOCK }),
    rebuilds: sharedPasses({ locks: postgres.fills.transactions, lock: FILLS_LOCK })
  }
}

/** The projections of the tables that answers read. */
export function servingProjections(tables: Tables): readonly Projection[] {
  const newer = newerOf(simulatedProjections)
  return simulatedProjections.map((each, n) => {
    const later = newer[n] ?? each
    const { reads } = tables.pointers.of(ownerOf(each))
    const filled = filledIn(tables).find(
      ({ projection, generation }) => projection === each.name && generation === reads
    )
    return filled?.version === statementsOf(later).version ? later : each
  })
}
