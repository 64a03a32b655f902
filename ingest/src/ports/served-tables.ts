import { type ReadPositions, type ReadTables, type ServingTables, withServing } from '@gamenet/schemas'

/** The tables that are read, at one instant: a comparison of several statements uses one to its end. */
export type ServedTables = {
  readonly tables: ReadTables
  /** Reads the positions of readers of the log in these tables. */
  positions(names: readonly string[]): ReturnType<ReadPositions>
}

/** The access of ingest to the tables. */
export type TableAccess = {
  readonly tables: ReadTables
  /** Reads which tables are read now. */
  readonly serving: () => Promise<ServingTables>
  readonly positions: ReadPositions
}

/** Returns the tables that are read now. */
export async function servedTables({ tables, serving, positions }: TableAccess): Promise<ServedTables> {
  const now = await serving()
  return { tables: withServing(tables, now), positions: (names) => positions(now, names) }
}
