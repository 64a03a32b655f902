import { generationName } from '@gamenet/schemas'
import { ownerOf, projectionOf } from '../generations/generations.js'
import {
  eventOwner,
  type Owner,
  type Pointer,
  readDefinitions,
  readPointers,
  storePointers
} from '../store/generation.js'
import type { Store } from '../store/operation.js'
import { readTablesOfRebuilds } from '../store/table.js'
import { readRebuilds } from './rebuild-record.js'

/** States of rebuilds that answers read, or read until a later one was swapped in. */
const SERVED: ReadonlySet<string> = new Set(['swapped', 'dropped'])

/**
 * Restores the pointers whose rows were lost with a damaged part: otherwise steps and answers would continue with former generations, and
 * the serving one would be dropped. Of an owner's rebuilds that were swapped in and not rolled back, the newest one serves.
 */
export async function restorePointers(store: Store): Promise<void> {
  const records = await readRebuilds(store)
  const served = records.filter(({ state }) => SERVED.has(state))
  const [newest] = served
  if (newest === undefined) return
  const pointers = await store.do(readPointers)
  const existing = new Set((await store.do(readTablesOfRebuilds)).map(({ name }) => name))
  const definitions = await store.do(readDefinitions)
  const found = new Set<string>()
  // Above all earlier counts: a swap and its rollback store an owner's pointer four times.
  const count = Math.max(pointers.version, 4 * newest.id) + 1
  const lost: Pointer[] = []
  for (const { id, unit, isFromLog } of served) {
    const own = definitions
      .filter(({ projection, generation }) => generation === id && unit.includes(projection))
      .map(({ definition }) => projectionOf(definition))
    const reloaded = isFromLog ? own.map(({ from }) => from) : []
    const owners = new Map<string, Owner>(
      [...reloaded.map(eventOwner), ...own.map(ownerOf)].map((each) => [each.owner, each])
    )
    for (const owner of owners.values()) {
      if (found.has(owner.owner) || !owner.tables.every((table) => existing.has(generationName(table, id)))) continue
      found.add(owner.owner)
      if (pointers.of(owner).reads < id) lost.push({ ...owner, writes: id, reads: id, readsChanged: count })
    }
  }
  if (lost.length === 0) return
  // If a record has changed, start over: a rollback by another process would be undone. It stores its record before it moves pointers.
  const versions = new Map((await readRebuilds(store)).map(({ id, version }) => [id, version]))
  if (records.every(({ id, version }) => versions.get(id) === version)) await store.do(storePointers, count, lost)
  else await restorePointers(store)
}
