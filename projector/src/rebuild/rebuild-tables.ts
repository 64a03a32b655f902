import { createHash } from 'node:crypto'
import type { Store, TableNames } from '../store/operation.js'
import {
  attachPartition,
  createTable,
  dropTable,
  exchangeTables,
  readPartitions,
  readTableUuids
} from '../store/table.js'

/** The table of a rebuild that stands for a live one. */
export function freshName(table: string, id: number): string {
  return `${table}__${id}`
}

/** The table into which a process measures what stands in a table costs: others may be measuring, too. */
export function sampleName(table: string, process: string): string {
  return `${table}__sample_${createHash('sha256').update(process).digest('hex').slice(0, 8)}`
}

/** The copy of a live table with which the one that stands for it is compared. */
export function copyName(fresh: string): string {
  return `${fresh}_live`
}

/** Makes empty tables of the same structure. */
export async function createTables(store: Store, names: TableNames): Promise<void> {
  for (const [live, fresh] of names) await store.do(createTable, fresh, live)
}

/** Drops tables and views; those that are gone already are no trouble. */
export async function dropTables(store: Store, names: Iterable<string>): Promise<void> {
  for (const name of names) await store.do(dropTable, name)
}

/** Copies tables as they stand, in an instant whatever their size. */
export async function cloneTables(store: Store, names: TableNames): Promise<void> {
  for (const [source, clone] of names) {
    await store.do(dropTable, clone)
    await store.do(createTable, clone, source)
    for (const partition of await store.do(readPartitions, source))
      await store.do(attachPartition, clone, source, partition)
  }
}

/**
 * Swaps each live table with the one that stands for it, unless that was done: `liveUuids` are those from before, so that a
 * swap that was cut off is ended instead of undone.
 */
export async function swapTables(
  store: Store,
  names: TableNames,
  liveUuids: Readonly<Record<string, string>>
): Promise<void> {
  const now = await store.do(readTableUuids, [...names.keys()])
  const left = [...names].filter(([live]) => now.get(live) === liveUuids[live])
  if (left.length > 0) await store.do(exchangeTables, left)
}
