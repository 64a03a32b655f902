import type { ReadSide } from '@gamenet/projector'
import { readUserTables, type UserTable } from '@gamenet/projector/erasure'
import {
  copyConsumed,
  dropTable,
  ownersOf,
  type Pointer,
  Pointers,
  readCheckpoints,
  readConsumed,
  readFilled,
  readKnownBatches,
  readPending,
  readPointers,
  readRebuildRecords,
  type Store,
  storeCheckpoints,
  storeConsumed,
  storeEvents,
  storePointers
} from '@gamenet/projector/internals'
import { generationName, type ServingTables } from '@gamenet/schemas'
import { intercepted } from './intercepted-store.js'
import type { AnyOperation } from './operations/implementation.js'
import { simulatedProjections } from './simulated.js'
import { baseName } from './tables/table-set.js'

/*
 * Mistakes with pointers and generations.
 */

const isMoving = (pointers: readonly Pointer[]) => pointers.some(({ writes, reads }) => writes !== reads)

/** Hides pending late batches and loaded positions, so that a swap waits for nothing. */
export function headsUnread(store: Store): Store {
  return intercepted(store, async ({ operation, view, next }) => {
    if (operation === readPending) return []
    return operation === readCheckpoints && view.names === undefined ? [] : await next()
  })
}

const KEPT_MS = 2000

/** Returns pointers that are up to two seconds old. */
export function stalePointers(store: Store): Store {
  let kept: { readonly atMs: number; readonly pointers: unknown } | undefined
  return intercepted(store, async ({ operation, next }) => {
    if (operation !== readPointers) return await next()
    if (kept === undefined || performance.now() - kept.atMs > KEPT_MS)
      kept = { atMs: performance.now(), pointers: await next() }
    return kept.pointers
  })
}

/** Moves `reads` before `writes`. */
export function readsFirst(store: Store): Store {
  return intercepted(store, async ({ operation, input, next, base }) => {
    const [version, pointers] = input as [number, readonly Pointer[]]
    if (operation !== storePointers || !isMoving(pointers)) return await next()
    const swapped = pointers.map((each) => ({ ...each, writes: each.reads, reads: each.writes, readsChanged: version }))
    return await base.do(storePointers, version, swapped)
  })
}

const ENDED = /"state":"(rolled-back|cancelled|dropped)"/

/** Hides the numbers of ended rebuilds. */
export function reusingNumbers(store: Store): Store {
  return intercepted(store, async ({ operation, next }) => {
    const result = await next()
    if (operation === readFilled) {
      const pointers = await store.do(readPointers)
      const isPointed = ({ generation }: { generation: number }) =>
        generation === 0 || pointers.all().some(({ reads, writes }) => reads === generation || writes === generation)
      return (result as { generation: number }[]).filter(isPointed)
    }
    if (operation !== readRebuildRecords) return result
    return (result as string[]).filter((record) => !ENDED.test(record) || !record.includes('"retracts":null'))
  })
}

/** Drops the generation that answers read as soon as steps write another one. */
export function droppedEarly(store: Store): Store {
  return intercepted(store, async ({ operation, input, next, base }) => {
    const result = await next()
    const [, pointers] = input as [number, readonly Pointer[]]
    if (operation !== storePointers || !isMoving(pointers)) return result
    for (const { tables, reads } of pointers)
      for (const table of tables) await base.do(dropTable, generationName(table, reads))
    return result
  })
}

const LATE: ReadonlySet<AnyOperation> = new Set([readConsumed, readKnownBatches, readPending, storeConsumed])

/** Records consumed late batches per projection instead of per generation. */
export function withoutGenerations(store: Store): Store {
  return intercepted(store, async ({ operation, input, next }) => {
    if (operation === copyConsumed) return undefined
    return await (LATE.has(operation) ? store.do(operation, ...input) : next())
  })
}

const STORED: ReadonlySet<AnyOperation> = new Set([storeEvents, storeCheckpoints])

/** A loader session keeps its position but stores into the current generation. */
export function alwaysCurrent(store: Store): Store {
  return intercepted(store, async ({ operation, input, next }) => {
    // The pointers seem unchanged at each read, so no session ends.
    if (operation === readPointers) return new Pointers([], 0)
    if (!STORED.has(operation)) return await next()
    const names = (await store.do(readPointers)).names('writes', ownersOf(simulatedProjections))
    return await store.with({ names }).do(operation, ...input)
  })
}

/** Hides tables with rows of users that answers do not read. */
export function erasedWhereRead(store: Store): Store {
  return intercepted(store, async ({ operation, next }) => {
    const result = await next()
    if (operation !== readUserTables) return result
    const { serving } = await store.do(readPointers)
    return (result as UserTable[]).filter(({ table }) => serving.nameOf(baseName(table)) === table)
  })
}

/** Adopts about half of the tables one read late. */
export function halfAdopted(): (side: ReadSide) => ReadSide {
  return (side) => {
    let before: ServingTables | undefined
    return {
      ...side,
      serving: async () => {
        const now = await side.serving()
        const former = before ?? now
        before = now
        return { ...now, nameOf: (table) => (table.length % 2 === 0 ? now : former).nameOf(table) }
      }
    }
  }
}
