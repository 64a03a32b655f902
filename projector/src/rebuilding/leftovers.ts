import type { Tables } from '../tables.js'
import { dropTables } from './fresh-tables.js'
import { readRebuilds } from './rebuild-record.js'

/** Those whose tables are needed no more. */
const ENDED: ReadonlySet<string> = new Set(['rolled-back', 'cancelled', 'dropped'])

/**
 * Drops the tables of rebuilds that have ended, which a crash or a failure left. Where this process is alone, those too that no
 * rebuild has: samples, copies to compare, what was made for one that never came to be. For work beside no operation of this process.
 */
export async function dropLeftovers(tables: Tables, isShared: boolean): Promise<void> {
  const names = await namesOfRebuilds(tables)
  if (names.length === 0) return
  const states = new Map((await readRebuilds(tables)).map(({ id, state }) => [id, state]))
  const isLeft = (name: string) => {
    const state = states.get(Number(/__(\d+)/.exec(name)?.[1]))
    if (state !== undefined && ENDED.has(state)) return true
    // Another process may be making or comparing them now.
    return !isShared && (state === undefined || name.endsWith('_live'))
  }
  await dropTables(tables, names.filter(isLeft))
}

/** Drops what bears the names of a rebuild that is about to begin. */
export async function dropTablesOf(tables: Tables, id: number): Promise<void> {
  const ofIt = new RegExp(`__${id}(_live)?$`)
  await dropTables(
    tables,
    (await namesOfRebuilds(tables)).filter((name) => ofIt.test(name))
  )
}

async function namesOfRebuilds(tables: Tables): Promise<string[]> {
  const rows = await tables.rows(
    `SELECT t.name AS name FROM system.tables AS t
     WHERE t.database = currentDatabase() AND match(t.name, '__([0-9]+(_live)?|sample)$') ORDER BY name`
  )
  return rows.map(({ name }) => String(name))
}
