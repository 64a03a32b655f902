import { readDefinitions, readPointers } from '../store/generation.js'
import type { Store } from '../store/operation.js'
import { type OwnedTable, readTablesOfRebuilds } from '../store/table.js'
import type { RebuildContext } from './context.js'
import { readRebuilds } from './rebuild-record.js'
import { dropTables } from './rebuild-tables.js'
import { tablesToDrop } from './swap.js'

const SAMPLE_HOURS_MAX = 24
/** Those whose tables are needed no more. */
const ENDED: ReadonlySet<string> = new Set(['rolled-back', 'cancelled', 'dropped'])

/**
 * Drops the tables of rebuilds that have ended, unless an answer may still read them. Where this process is alone, those too that no
 * rebuild has: samples, copies to compare, what was made for one that never came to be. No table that a pointer names is dropped. For
 * work beside no operation of this process.
 * @returns after how many ms there will be more to drop; undefined where there is none
 */
export async function dropLeftovers({
  store,
  isShared,
  longestAnswerMs
}: Pick<RebuildContext, 'store' | 'isShared' | 'longestAnswerMs'>): Promise<number | undefined> {
  const made = await store.do(readTablesOfRebuilds)
  const records = await readRebuilds(store)
  const pointed = await pointedTables(store)
  const needed = new Set(
    records
      .filter(({ state }) => !ENDED.has(state))
      // What an interrupted swap replaces waits once it is completed.
      .flatMap((record) => [...tablesToDrop(record), ...Object.values(record.replaces?.tables ?? {})])
  )
  /** When the tables of rebuilds that have ended may be dropped, in ms since 1970. */
  const dueAt = new Map(
    records
      .filter(({ state }) => ENDED.has(state))
      .flatMap((record) =>
        tablesToDrop(record).map((table) => {
          // What was cancelled was never read.
          const wait = record.state === 'cancelled' ? 0 : longestAnswerMs
          return [table, Date.parse(record.changedAt) + wait] as const
        })
      )
  )
  const isLeft = ({ name, hours }: OwnedTable) => {
    if (pointed(name) || needed.has(name)) return false
    if (dueAt.has(name)) return (dueAt.get(name) ?? 0) <= Date.now()
    // Another process may be making or comparing them now; but no sample takes a day.
    return isShared ? name.includes('__sample_') && hours > SAMPLE_HOURS_MAX : true
  }
  await dropTables(
    store,
    made.filter(isLeft).map(({ name }) => name)
  )
  const later = made.flatMap(({ name }) => (pointed(name) || needed.has(name) ? [] : (dueAt.get(name) ?? [])))
  const waits = later.map((at) => at - Date.now()).filter((ms) => ms > 0)
  // The clock may have gone back since.
  return waits.length === 0 ? undefined : Math.min(...waits, longestAnswerMs)
}

/** Whether a pointer names a table, to write or to read. */
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

/** The number of the next rebuild: no attempt to begin one had it, since each stores its definitions first and for good. */
export async function nextId(store: Store): Promise<number> {
  const records = await readRebuilds(store)
  const definitions = await store.do(readDefinitions)
  return Math.max(0, ...records.map(({ id }) => id), ...definitions.map(({ generation }) => generation)) + 1
}
