import {
  countUserRows,
  deleteUserRows,
  readDroppedTables,
  readMutations,
  readOldParts,
  readRunningInserts,
  readUserTables,
  removeMaskedRows,
  resetOldParts,
  shortenOldParts,
  type UserTable
} from '@gamenet/projector/erasure'
import type { Row } from '../tables/replacing-table.js'
import { baseName } from '../tables/table-set.js'
import { always, changingWhole, type Implementation, reading } from './implementation.js'

/*
 * Rows about users. Simulated deletions finish at once and leave no old parts.
 */

/** Columns with a user_key, by the tables that have some. */
export const USER_COLUMNS: Readonly<Record<string, readonly string[]>> = {
  event_rating: ['user_key', 'rater_key'],
  rating: ['user_key', 'rater_key']
}

export const userRows: readonly Implementation[] = [
  reading(
    readUserTables,
    ({ tables }) =>
      tables.names
        .flatMap((table) => {
          const columns = USER_COLUMNS[baseName(table)]
          return columns === undefined ? [] : [{ table, columns }]
        })
        .sort((a, b) => Number(b.table.startsWith('event_')) - Number(a.table.startsWith('event_'))),
    always
  ),
  // The engine may have merged duplicates.
  reading(
    countUserRows,
    ({ tables }, rows, userKey) => tables.table(rows.table).rows.filter(isAbout(rows, userKey)).length,
    always
  ),
  changingWhole(deleteUserRows, ({ tables }, rows, userKey) => {
    tables.written(rows.table).delete(isAbout(rows, userKey))
  }),
  // Simulated deletions mask no row.
  reading(removeMaskedRows, () => undefined, always),
  reading(readMutations, () => ({ unfinished: 0, failure: '' }), always),
  reading(readRunningInserts, ({ machine }) => machine.runningInserts(), always),
  changingWhole(shortenOldParts, ({ tables }, name) => void tables.written(name)),
  changingWhole(resetOldParts, ({ tables }, name) => void tables.written(name), { freesSpace: true }),
  reading(readOldParts, () => [], always),
  reading(readDroppedTables, () => [], always)
]

function isAbout({ columns, projections }: UserTable, userKey: string): (row: Row) => boolean {
  return (row) =>
    columns.some((column) => row[column] === userKey) && projections?.includes(String(row.projection)) !== false
}
