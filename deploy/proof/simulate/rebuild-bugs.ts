import {
  deleteImports,
  ownersOf,
  type Pointer,
  readCheckpoints,
  readPointers,
  type Store,
  storeCheckpoints,
  storePointers,
  storeRebuildRecord
} from '@gamenet/projector/internals'
import { type Call, intercepted } from './intercepted-store.js'
import { simulatedProjections } from './simulated.js'

/*
 * Mistakes in rebuilds, planted in the operations of their process.
 */

/** Whether an operation reads checkpoints of the generations that live steps write. */
async function isOfLive({ operation, view, base }: Call): Promise<boolean> {
  return operation === readCheckpoints && view.names !== undefined && !(await showsRebuilt(base, view))
}

/** Whether a view shows some generation that live steps do not write. */
async function showsRebuilt(store: Store, { names = new Map() }: Call['view']): Promise<boolean> {
  const pointers = await store.do(readPointers)
  const written = pointers.names('writes', OWNERS)
  return OWNERS.some(({ tables: [table = ''] }) => names.get(table) !== written.get(table))
}

const OWNERS = ownersOf(simulatedProjections)

/** Returns the positions of the live tables at the end of the fill, not the current ones. */
export function notCaughtUp(store: Store): Store {
  let filledAt: Promise<unknown> | undefined
  return intercepted(store, async (call) => {
    if (filledAt !== undefined && (await isOfLive(call))) return await filledAt
    const result = await call.next()
    if (call.operation !== storeRebuildRecord) return result
    const { state } = JSON.parse(String(call.input[2]))
    const live = async () => {
      const names = (await store.do(readPointers)).names('writes', OWNERS)
      return await store.with({ names }).do(readCheckpoints)
    }
    filledAt = state === 'filled' ? (filledAt ?? live()) : undefined
    // The steps that await it fail with it.
    filledAt?.catch(() => undefined)
    return result
  })
}

/** Deletes events of undone imports only from the generation that live steps write. */
export function keepingUndone(store: Store): Store {
  return intercepted(store, async ({ operation, view, next, base }) => {
    return operation === deleteImports && (await showsRebuilt(base, view)) ? undefined : await next()
  })
}

/** Gives the former generation the checkpoints of the serving one. */
export function unchangedCheckpoint(store: Store): Store {
  return intercepted(store, async ({ operation, input, next, base }) => {
    if (operation !== storePointers) return await next()
    const before = await base.do(readPointers)
    const result = await next()
    const after = await base.do(readPointers)
    const [, pointers] = input as [number, readonly Pointer[]]
    const left = pointers.filter((owner) => before.of(owner).reads !== after.of(owner).reads)
    const serving = await base.with({ names: after.names('reads', left) }).do(readCheckpoints)
    const own = serving.filter(({ name }) => left.some(({ owner }) => owner === name))
    await base.with({ names: before.names('reads', left) }).do(storeCheckpoints, own)
    return result
  })
}
