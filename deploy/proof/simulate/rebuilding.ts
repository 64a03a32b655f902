import type { PassLock, Projection } from '@gamenet/projector'
import { definitionOf, LOCAL_PASS_LOCK, ownerOf } from '@gamenet/projector/internals'
import { FILLS_LOCK, PASSES_LOCK } from '@gamenet/schemas'
import { sharedPasses } from '../../src/wiring/postgres-pass-lock.js'
import { newerOf } from './newer-program.js'
import type { Place } from './place.js'
import { simulatedProjections } from './simulated.js'
import type { Tables } from './store.js'

/** The locks of the processes of an installation: of passes, and of steps of rebuilds. */
export type Locks = { readonly passes: PassLock; readonly rebuilds: PassLock }

export function locksOf({ isShared, postgres }: Place): Locks {
  if (!isShared) return { passes: LOCAL_PASS_LOCK, rebuilds: LOCAL_PASS_LOCK }
  return {
    passes: sharedPasses({ locks: postgres.passes.transactions, lock: PASSES_LOCK }),
    rebuilds: sharedPasses({ locks: postgres.fills.transactions, lock: FILLS_LOCK })
  }
}

/** The definition of the generation of a projection that answers read. */
export function servingDefinition(tables: Tables, projection: Projection): string {
  const { reads } = tables.pointers.of(ownerOf(projection))
  return String(tables.written('generation_definition').get(`${projection.name}|${reads}`)?.definition)
}

/** The projections of the tables that answers read. */
export function servingProjections(tables: Tables): readonly Projection[] {
  const newer = newerOf(simulatedProjections)
  return simulatedProjections.map((each, n) => {
    const later = newer[n] ?? each
    return servingDefinition(tables, each) === definitionOf(later) ? later : each
  })
}
