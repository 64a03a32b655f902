import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type ClickHouse, openChdb, type Postgres } from '@gamenet/engines'
import type { LogReader } from '@gamenet/projector'
import type { Facts } from './facts.js'
import { differencesFromShown, differencesFromWritten } from './oracle.js'
import { differenceOf, differingTables, linesOf, printsOf, projectLog } from './replay.js'

/** The data of a stopped service. */
export type Stores = {
  /** Its tables, on each replica. */
  readonly tables: readonly [ClickHouse, ...ClickHouse[]]
  readonly writes: Postgres
  readonly reader: LogReader
  /** For the tables that are computed undisturbed. */
  readonly directory: string
}

const QUIET = { info: () => {}, warn: () => {}, error: () => {} }

/** Returns every difference between the stored and the expected data, as one sentence each. */
export async function differences(
  { tables, writes, reader, directory }: Stores,
  { facts, canBePartial }: { readonly facts: Facts; readonly canBePartial: boolean }
): Promise<string[]> {
  // Loads the events that were published during the stop.
  await projectLog({ tables: tables[0], reader, writes, logger: QUIET })
  const found = [
    ...(await differencesFromShown({ facts, tables: tables[0], canBePartial })),
    ...(await differencesFromWritten({ facts, tables: tables[0] }, writes))
  ]
  const path = await mkdtemp(join(directory, 'replay-'))
  const fresh = await openChdb({ path })
  try {
    await projectLog({ tables: fresh, reader, writes, logger: QUIET })
    const wanted = await printsOf(fresh)
    for (const [at, each] of tables.entries()) {
      const where = tables.length === 1 ? '' : `replica ${at + 1}: `
      for (const name of differingTables(await printsOf(each), wanted))
        found.push(where + differenceOf(name, await linesOf(each, name), await linesOf(fresh, name)))
    }
    return found
  } finally {
    await fresh.close()
    await rm(path, { recursive: true, force: true })
  }
}
