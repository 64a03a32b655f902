import type { Tables } from '../store/tables.js'
import { readRebuilds } from './rebuild-record.js'
import { dropTables } from './rebuild-tables.js'

const SAMPLE_HOURS_MAX = 24
/** Those whose tables are needed no more. */
const ENDED: ReadonlySet<string> = new Set(['rolled-back', 'cancelled', 'dropped'])

/**
 * Drops the tables of rebuilds that have ended, which a crash or a failure left. Where this process is alone, those too that no
 * rebuild has: samples, copies to compare, what was made for one that never came to be. For work beside no operation of this process.
 */
export async function dropLeftovers(tables: Tables, isShared: boolean): Promise<void> {
  const made = await namesOfRebuilds(tables)
  if (made.length === 0) return
  const states = new Map((await readRebuilds(tables)).map(({ id, state }) => [id, state]))
  const isLeft = ({ name, hours }: OwnedTable) => {
    const state = states.get(Number(/__(\d+)/.exec(name)?.[1]))
    if (state !== undefined && ENDED.has(state)) return true
    // Another process may be making or comparing them now; but no sample takes a day.
    if (isShared) return name.includes('__sample_') && hours > SAMPLE_HOURS_MAX
    return state === undefined || name.endsWith('_live')
  }
  const left = made.filter(isLeft).map(({ name }) => name)
  await dropTables(tables, left)
}

/** Drops what bears the names of a rebuild that is about to begin. */
export async function dropTablesOf(tables: Tables, id: number): Promise<void> {
  const ofIt = new RegExp(`__${id}(_live)?$`)
  const names = (await namesOfRebuilds(tables)).map(({ name }) => name)
  await dropTables(
    tables,
    names.filter((name) => ofIt.test(name))
  )
}

/** A table that a rebuild made, and how many hours ago. */
type OwnedTable = { readonly name: string; readonly hours: number }

async function namesOfRebuilds(tables: Tables): Promise<OwnedTable[]> {
  const rows = await tables.rows(
    `SELECT t.name AS name, dateDiff('hour', t.metadata_modification_time, now()) AS hours FROM system.tables AS t
     WHERE t.database = currentDatabase() AND match(t.name, '__([0-9]+(_live)?|sample(_[0-9a-f]{8})?)$') ORDER BY name`
  )
  return rows.map(({ name, hours }) => ({ name: String(name), hours: Number(hours) }))
}
