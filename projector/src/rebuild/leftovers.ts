import { generationName } from '@gamenet/schemas'
import { ownerOf } from '../generations/generations.js'
import { discardCheckpoints, readCheckpoints } from '../store/checkpoint.js'
import { eventOwner, readFilled, readPointers } from '../store/generation.js'
import { discardBatchConsumers, readBatchConsumers } from '../store/late-batch.js'
import type { Store } from '../store/operation.js'
import type { Projection } from '../store/projection.js'
import { type OwnedTable, readTablesOfRebuilds } from '../store/table.js'
import { type RebuildContext, waitingTables } from './context.js'
import { readRebuilds } from './rebuild-record.js'
import { dropTables } from './rebuild-tables.js'
import { tablesToDrop } from './swap.js'

/** Longer than another process takes for a sample, or for the tables of a rebuild before its record. */
const MAKING_HOURS_MAX = 24
/** States of rebuilds whose tables are no longer needed. */
const ENDED: ReadonlySet<string> = new Set(['rolled-back', 'cancelled', 'dropped'])

/**
 * Drops the tables of rebuilds that have ended, unless an answer may still read them, and tables without a rebuild:
 * samples, and those of an attempt that stored no record, whose number another rebuild may have; after a day if other
 * processes may be creating them. A table that a pointer names is not dropped. Call it while no operation of this
 * process runs.
 * @returns the ms until there is more to drop; undefined if there is nothing
 */
export async function dropLeftovers({
  store,
  projections,
  isShared,
  longestAnswerMs
}: Pick<RebuildContext, 'store' | 'projections' | 'isShared' | 'longestAnswerMs'>): Promise<number | undefined> {
  const existing = await store.do(readTablesOfRebuilds)
  const records = await readRebuilds(store)
  const pointed = await pointedTables(store)
  const needed = new Set(
    records
      .filter(({ state }) => !ENDED.has(state))
      // The tables that an interrupted swap replaces wait until it is completed.
      .flatMap((record) => [
        ...tablesToDrop(record),
        ...Object.values(waitingTables({ waiting: record.replaces ?? [] }))
      ])
  )
  /** When the tables of ended rebuilds may be dropped, in ms since 1970. */
  const dueAt = new Map(
    records
      .filter(({ state }) => ENDED.has(state))
      .flatMap((record) =>
        tablesToDrop(record).map((table) => {
          // Answers never read the tables of a cancelled rebuild.
          const wait = record.state === 'cancelled' ? 0 : longestAnswerMs
          return [table, Date.parse(record.changedAt) + wait] as const
        })
      )
  )
  const isLeft = ({ name, hours }: OwnedTable) => {
    if (pointed(name) || needed.has(name)) return false
    if (dueAt.has(name)) return (dueAt.get(name) ?? 0) <= Date.now()
    return !isShared || hours > MAKING_HOURS_MAX
  }
  await dropTables(
    store,
    existing.filter(isLeft).map(({ name }) => name)
  )
  await discardProgress(store, projections)
  const later = existing.flatMap(({ name }) => (pointed(name) || needed.has(name) ? [] : (dueAt.get(name) ?? [])))
  const waits = later.map((at) => at - Date.now()).filter((ms) => ms > 0)
  // At most the longest answer: the clock may have been set back since the rebuild ended.
  return waits.length === 0 ? undefined : Math.min(...waits, longestAnswerMs)
}

/** Names of checkpoints: of loaders, of projections, and of slices that a rebuild has filled. */
const READER = /^(load|kept|project|slices):(.+?)(?:__(\d+))?$/

/**
 * Discards checkpoints of dropped generations and their records of consumed late batches; also those that an
 * interrupted drop or a late step has left. Nothing reads them, because no generation's number is used twice.
 */
async function discardProgress(store: Store, projections: readonly Projection[]): Promise<void> {
  // Read before the tables: a generation has tables before its first checkpoint.
  const read = (await store.do(readCheckpoints)).map(({ name }) => name)
  const took = await store.do(readBatchConsumers)
  const existing = new Set((await store.do(readTablesOfRebuilds)).map(({ name }) => name))
  const pointers = await store.do(readPointers)
  const isGone = (reader: string) => {
    const [, kind = '', name = '', digits = '0'] = READER.exec(reader) ?? []
    const generation = Number(digits)
    const known = projections.find((each) => each.name === name)
    const isOfTopic = kind === 'load' || kind === 'kept'
    const owner = isOfTopic ? eventOwner({ name }) : known && ownerOf(known)
    if (kind === '' || owner === undefined) return false
    const { writes, reads } = pointers.of(owner)
    if (writes === generation || reads === generation) return false
    return !owner.tables.some((table) => existing.has(generationName(table, generation)))
  }
  const consumers = took.filter(isGone)
  if (consumers.length > 0) await store.do(discardBatchConsumers, consumers)
  const readers = [...new Set(read)].filter(isGone)
  if (readers.length > 0) await store.do(discardCheckpoints, readers)
}

/** Returns whether a pointer names a table, to write or to read. */
async function pointedTables(store: Store): Promise<(name: string) => boolean> {
  const pointers = await store.do(readPointers)
  const written = new Set(pointers.names('writes', pointers.all()).values())
  return (name) => {
    const [, bare, generation] = /^(.+)__(\d+)$/.exec(name) ?? []
    return (
      bare !== undefined && generation !== undefined && (written.has(name) || pointers.serving.nameOf(bare) === name)
    )
  }
}

/** Returns the number of the next rebuild, which no earlier attempt had: each stores first what fills it. */
export async function nextId(store: Store): Promise<number> {
  const records = await readRebuilds(store)
  const filled = await store.do(readFilled)
  return Math.max(0, ...records.map(({ id }) => id), ...filled.map(({ generation }) => generation)) + 1
}
