import { generationName } from '@gamenet/schemas'
import { type Pointer, readPointers, storePointers } from '../store/generation.js'
import type { Store } from '../store/operation.js'
import { readTablesOfRebuilds } from '../store/table.js'
import { readRebuilds } from './rebuild-record.js'

/** States of rebuilds that answers read, or read until a later one was swapped in. */
const SERVED: ReadonlySet<string> = new Set(['swapped', 'dropped'])

/**
 * Restores the pointers whose rows were lost with a damaged part: otherwise steps and answers would continue with
 * former generations, and the serving one would be dropped. Of an owner's rebuilds that were swapped in and not rolled
 * back, the newest one serves.
 */
export async function restorePointers(store: Store): Promise<void> {
  const records = await readRebuilds(store)
  const served = records.filter(({ state }) => SERVED.has(state))
  const [newest] = served
  if (newest === undefined) return
  const pointers = await store.do(readPointers)
  const existing = new Set((await store.do(readTablesOfRebuilds)).map(({ name }) => name))
  const found = new Set<string>()
  // Above all earlier counts: a swap and its rollback store an owner's pointer four times.
  const count = Math.max(pointers.version, 4 * newest.id) + 1
  const lost: Pointer[] = []
  for (const { id, waiting } of served) {
    for (const { owner, tables } of waiting) {
      if (found.has(owner) || !tables.every((table) => existing.has(generationName(table, id)))) continue
      found.add(owner)
      if (pointers.of({ owner, tables }).reads < id)
        lost.push({ owner, tables, writes: id, reads: id, readsChanged: count })
    }
  }
  if (lost.length === 0) return
  // If a record has changed, start over: a rollback by another process would be undone. It stores its record before it
  // moves pointers.
  const versions = new Map((await readRebuilds(store)).map(({ id, version }) => [id, version]))
  if (records.every(({ id, version }) => versions.get(id) === version)) await store.do(storePointers, count, lost)
  else await restorePointers(store)
}
