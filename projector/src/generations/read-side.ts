import { type DataChanges, projectionCheckpoint, type ReadPositions, type ServingTables } from '@gamenet/schemas'
import { projections } from '../projections/projections.js'
import { readCheckpointsOf } from '../store/checkpoint.js'
import { readChangesSince, readNewestBegin } from '../store/data-change.js'
import { readPointers } from '../store/generation.js'
import type { Store } from '../store/operation.js'
import { ownersOf } from './generations.js'

/** Reads of bookkeeping for answers and ingest. */
export type ReadSide = {
  readonly changes: DataChanges
  /** Reads which tables are read now. */
  readonly serving: () => Promise<ServingTables>
  /** Resolves when queries see the rows that were stored before; those of tables on replicas may arrive later. */
  readonly arrived: (serving: ServingTables, projections: readonly string[] | 'all') => Promise<void>
  /** Resolves with positions when queries see the rows before them. */
  readonly positions: ReadPositions
}

export function readSide(store: Store): ReadSide {
  const sync = (serving: ServingTables, owners: readonly string[]) =>
    store.sync(owners.flatMap((owner) => tablesByOwner.get(owner) ?? []).map(serving.nameOf))
  return {
    changes: {
      newestBegin: () => store.do(readNewestBegin),
      since: (version, minutesFromMs) => store.do(readChangesSince, version, minutesFromMs)
    },
    serving: async () => (await store.do(readPointers)).serving,
    arrived: (serving, names) =>
      sync(serving, names === 'all' ? [...tablesByOwner.keys()] : names.map(projectionCheckpoint)),
    positions: async (serving, names) => {
      const view = { names: new Map(names.map((name) => [name, serving.checkpointOf(name)])) }
      // A checkpoint of the loader is stored before the change that made the caller look.
      await store.sync(['checkpoint'])
      const positions = await store.with(view).do(readCheckpointsOf, names)
      await sync(serving, names)
      return positions
    }
  }
}

const tablesByOwner = new Map(ownersOf(projections).map(({ owner, tables }) => [owner, tables]))
