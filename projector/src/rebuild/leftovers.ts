import type { Store } from '../store/operation.js'
import { type OwnedTable, readTablesOfRebuilds } from '../store/table.js'
import { readRebuilds } from './rebuild-record.js'
import { dropTables } from './rebuild-tables.js'

const SAMPLE_HOURS_MAX = 24
/** Those whose tables are needed no more. */
const ENDED: ReadonlySet<string> = new Set(['rolled-back', 'cancelled', 'dropped'])

/**
 * Drops the tables of rebuilds that have ended, which a crash or a failure left. Where this process is alone, those too that no
 * rebuild has: samples, copies to compare, what was made for one that never came to be. For work beside no operation of this process.
 */
export async function dropLeftovers(store: Store, isShared: boolean): Promise<void> {
  const made = await store.do(readTablesOfRebuilds)
  if (made.length === 0) return
  const states = new Map((await readRebuilds(store)).map(({ id, state }) => [id, state]))
  const isLeft = ({ name, hours }: OwnedTable) => {
    const state = states.get(Number(/__(\d+)/.exec(name)?.[1]))
    if (state !== undefined && ENDED.has(state)) return true
    // Another process may be making or comparing them now; but no sample takes a day.
    if (isShared) return name.includes('__sample_') && hours > SAMPLE_HOURS_MAX
    return state === undefined || name.endsWith('_live')
  }
  const left = made.filter(isLeft).map(({ name }) => name)
  await dropTables(store, left)
}

/** Drops what bears the names of a rebuild that is about to begin. */
export async function dropTablesOf(store: Store, id: number): Promise<void> {
  const ofIt = new RegExp(`__${id}(_live)?$`)
  const names = (await store.do(readTablesOfRebuilds)).map(({ name }) => name)
  await dropTables(
    store,
    names.filter((name) => ofIt.test(name))
  )
}
