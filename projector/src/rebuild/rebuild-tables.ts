import { createHash } from 'node:crypto'
import type { Store, TableNames } from '../store/operation.js'
import { attachPartition, createTable, dropTable, readPartitions } from '../store/table.js'

/** The table into which a process measures what stands in a table costs: others may be measuring, too. */
export function sampleName(table: string, process: string): string {
  return `${table}__sample_${createHash('sha256').update(process).digest('hex').slice(0, 8)}`
}

/** The copy of a live table with which the one that stands for it is compared. */
export function copyName(fresh: string): string {
  return `${fresh}_live`
}

/** Makes empty tables of the same structure as others: existing table → new one. */
export async function createTables(store: Store, names: TableNames): Promise<void> {
  for (const [like, fresh] of names) await store.do(createTable, fresh, like)
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
