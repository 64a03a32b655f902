import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type ClickHouse, openChdb, type Postgres } from '@gamenet/engines'
import type { LogReader } from '@gamenet/projector'
import type { Facts } from './facts.js'
import { differencesFromShown, differencesFromWritten } from './oracle.js'
import { differenceOf, differingTables, linesOf, printsOf, projectLog } from './replay.js'

/** The data of a stopped service. */
export type Stores = {
  /** The directory of its ClickHouse. */
  readonly tables: string
  readonly writes: Postgres
  readonly reader: LogReader
}

const QUIET = { info: () => {}, warn: () => {}, error: () => {} }

/**
 * Returns every difference between the stored and the expected data, as one sentence each. A process can open only one
 * directory of ClickHouse at a time.
 */
export async function differences(
  { tables, writes, reader }: Stores,
  { facts, canBePartial }: { readonly facts: Facts; readonly canBePartial: boolean }
): Promise<string[]> {
  const first = await using(tables, async (opened) => {
    // Loads the events that were published during the stop.
    await projectLog({ tables: opened, reader, writes, logger: QUIET })
    const found = [
      ...(await differencesFromShown({ facts, tables: opened, canBePartial })),
      ...(await differencesFromWritten({ facts, tables: opened }, writes))
    ]
    return { prints: await printsOf(opened), found }
  })
  const directory = await mkdtemp(join(tables, '..', 'replay-'))
  try {
    const wanted = await using(directory, async (fresh) => {
      await projectLog({ tables: fresh, reader, writes, logger: QUIET })
      const names = differingTables(first.prints, await printsOf(fresh))
      return new Map(await Promise.all(names.map(async (name) => [name, await linesOf(fresh, name)] as const)))
    })
    if (wanted.size === 0) return first.found
    return await using(tables, async (opened) => [
      ...first.found,
      ...(await Promise.all(
        [...wanted].map(async ([name, lines]) => differenceOf(name, await linesOf(opened, name), lines))
      ))
    ])
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

async function using<Result>(path: string, use: (tables: ClickHouse) => Promise<Result>): Promise<Result> {
  const tables = await openChdb({ path })
  try {
    return await use(tables)
  } finally {
    await tables.close()
  }
}
