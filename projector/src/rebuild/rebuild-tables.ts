import { createHash } from 'node:crypto'
import type { Store, TableNames } from '../store/operation.js'
import { attachPartition, createTable, dropTable, readPartitions } from '../store/table.js'

/** Returns the name of a process's sample of a table: other processes may measure at once. */
export function sampleName(table: string, process: string): string {
  return `${table}__sample_${createHash('sha256').update(process).digest('hex').slice(0, 8)}`
}

/** Returns the name of the copy of a live table that a rebuilt one is compared with. */
export const copyName = (fresh: string): string => `${fresh}_live`

/** Creates empty tables with the structure of others: existing table → new one. */
export async function createTables(store: Store, names: TableNames): Promise<void> {
  for (const [like, fresh] of names) await store.do(createTable, fresh, like)
}

/** Drops tables and views, if they exist. */
export async function dropTables(store: Store, names: Iterable<string>): Promise<void> {
  for (const name of names) await store.do(dropTable, name)
}

/** Clones tables: links their parts, in milliseconds for any size. */
export async function cloneTables(store: Store, names: TableNames): Promise<void> {
  await dropTables(store, names.values())
  await createTables(store, names)
  await linkParts(store, names)
}

/** Links the parts of tables into empty ones: source → clone. */
export async function linkParts(store: Store, names: TableNames): Promise<void> {
  // A replica links the parts that it has.
  await store.sync([...names.keys()])
  for (const [source, clone] of names) {
    for (const partition of await store.do(readPartitions, source))
      await store.do(attachPartition, clone, source, partition)
  }
}
