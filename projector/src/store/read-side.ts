import type { DataChanges, ReadPositions, ServingTables } from '@gamenet/schemas'
import { readCheckpointsOf } from './checkpoint.js'
import { readChangesSince, readNewestBegin } from './data-change.js'
import { readPointers } from './generation.js'
import type { Store } from './operation.js'

/** Reads of bookkeeping for answers and ingest. */
export type ReadSide = {
  readonly changes: DataChanges
  /** Reads which tables are read now. */
  readonly serving: () => Promise<ServingTables>
  readonly positions: ReadPositions
}

export function readSide(store: Store): ReadSide {
  return {
    changes: {
      newestBegin: () => store.do(readNewestBegin),
      since: (version, minutesFromMs) => store.do(readChangesSince, version, minutesFromMs)
    },
    serving: async () => (await store.do(readPointers)).serving,
    positions: (serving, names) => {
      const view = { names: new Map(names.map((name) => [name, serving.checkpointOf(name)])) }
      return store.with(view).do(readCheckpointsOf, names)
    }
  }
}
