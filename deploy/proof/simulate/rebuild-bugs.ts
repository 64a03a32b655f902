import {
  deleteImports,
  readCheckpoints,
  readRebuildRecords,
  type Store,
  storeRebuildRecord
} from '@gamenet/projector/internals'
import { type Call, through } from './through.js'

/*
 * Mistakes in rebuilds, planted in the operations of their process.
 */

function isOfLive({ operation, view }: Call): boolean {
  return operation === readCheckpoints && view.names === undefined
}

/** Where the live tables have come to is what it was when the fill ended. */
export function notCaughtUp(store: Store): Store {
  let filledAt: Promise<unknown> | undefined
  return through(store, async (call) => {
    if (isOfLive(call) && filledAt !== undefined) return await filledAt
    const result = await call.next()
    if (call.operation !== storeRebuildRecord) return result
    const { state } = JSON.parse(String(call.input[2]))
    filledAt = state === 'filled' ? (filledAt ?? store.do(readCheckpoints)) : undefined
    return result
  })
}

/** Assumes that the live tables have consumed all loaded events. */
export function aheadOfLive(store: Store, topicOf: ReadonlyMap<string, string>): Store {
  return through(store, async (call) => {
    if (!isOfLive(call)) return await call.next()
    const checkpoints = await call.base.do(readCheckpoints)
    return checkpoints.map((each) => {
      const load = `load:${topicOf.get(each.name)}`
      const loaded = checkpoints.find(({ name, epoch, partition }) => {
        return name === load && epoch === each.epoch && partition === each.partition
      })
      return loaded === undefined ? each : { ...each, next: loaded.next }
    })
  })
}

/** Nothing is deleted from a table that was loaded from the log. */
export function keepingUndone(store: Store): Store {
  return through(store, async ({ operation, view, next }) => {
    return operation === deleteImports && view.names !== undefined ? undefined : await next()
  })
}

/** Assumes that the old tables have the checkpoints of the serving ones. */
export function unchangedCheckpoint(store: Store): Store {
  const states = new Map<string, string>()
  return through(store, async ({ operation, view, next }) => {
    if (operation === readCheckpoints) {
      const state = states.get(view.names?.get('checkpoint') ?? '') ?? ''
      return await (['swapped', 'rolling-back'].includes(state) ? store.do(readCheckpoints) : next())
    }
    const result = await next()
    if (operation !== readRebuildRecords) return result
    for (const record of result as string[]) {
      const { helpers, state } = JSON.parse(record)
      states.set(helpers.checkpoint, state)
    }
    return result
  })
}
