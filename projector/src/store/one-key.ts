import { operation } from './operation.js'
import type { KeyCondition } from './projection.js'

/** Returns whether a table has a row of a key. */
export const hasKey = operation('looks for a key', async (tables, table: string, key: KeyCondition) => {
  const rows = await tables.rows(`SELECT 1 AS one FROM {${table}: Identifier} AS r WHERE ${key('r.')} LIMIT 1`)
  return rows.length > 0
})

/** Deletes the rows of a key from a table; resolves when no statement sees them any more. */
export const deleteOfKey = operation('deletes the rows of a key', async (tables, table: string, key: KeyCondition) => {
  await tables.execute(`DELETE FROM ${tables.target(table)} WHERE ${key('')}`)
})
