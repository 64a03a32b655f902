import { z } from 'zod'
import { type LostPart, TABLE_UUID } from '../store/table.js'
import type { Tables } from '../store/tables.js'

/** A part that a table was made of. Merges replace it by parts that hold the same range of blocks. */
export const ListedPart = z.object({
  /** UUID of its table: another table may get the same name. */
  table: z.string(),
  partition: z.string(),
  part: z.string(),
  firstBlock: z.number(),
  lastBlock: z.number(),
  /** Absent in lists of earlier programs. */
  rows: z.number().optional()
})
export type ListedPart = z.infer<typeof ListedPart>

/** A part that its table no longer has, or has with another number of rows, and the folder of the table. */
export type VanishedPart = LostPart & { readonly path: string; readonly isMiscounted: boolean }

const PART_COLUMNS = `${TABLE_UUID} AS table, p.partition_id AS partition, p.name AS part,
  toFloat64(p.min_block_number) AS firstBlock, toFloat64(p.max_block_number) AS lastBlock`
const OF_TABLE = 'INNER JOIN system.tables AS t ON t.database = p.database AND t.name = p.table'

/** The parts that these tables, and the tables that rebuilds fill for them, are made of now. */
export async function listParts(tables: Pick<Tables, 'rows'>, names: readonly string[]): Promise<ListedPart[]> {
  const rows = await tables.rows(
    `SELECT ${PART_COLUMNS}, toFloat64(p.rows) AS rows FROM system.parts AS p ${OF_TABLE}
     WHERE p.database = currentDatabase() AND p.active AND splitByString('__', p.table)[1] IN {names: Array(String)}
     ORDER BY table, partition, firstBlock`,
    { names }
  )
  return rows.map((row) => ListedPart.parse(row))
}

/**
 * The listed parts of tables that still exist whose blocks are in no part of these tables now, neither in an active part nor in one
 * that was set aside; and those whose number of rows is another one: the engine does not verify it, and neither reads nor merges the rows
 * behind it.
 */
export async function vanishedParts(
  tables: Pick<Tables, 'rows'>,
  listed: readonly ListedPart[],
  names: readonly string[]
): Promise<VanishedPart[]> {
  const setAside = await tables.rows(
    `SELECT ${PART_COLUMNS} FROM system.detached_parts AS p ${OF_TABLE}
     WHERE p.database = currentDatabase() AND p.reason LIKE '%broken%'`
  )
  const active = await listParts(tables, names)
  const held = [...active, ...setAside.map((row) => ListedPart.parse(row))]
  const existing = await tables.rows(
    `SELECT ${TABLE_UUID} AS id, t.name AS table, t.data_paths[1] AS path FROM system.tables AS t
     WHERE t.database = currentDatabase()`
  )
  return listed.flatMap(({ table: uuid, partition, part, firstBlock, lastBlock, rows }) => {
    const now = active.find((each) => each.table === uuid && each.part === part)
    const isMiscounted = now !== undefined && rows !== undefined && now.rows !== rows
    const table = existing.find((each) => each.id === uuid)
    const isHeld = held.some(
      (each) =>
        each.table === uuid &&
        each.partition === partition &&
        each.firstBlock <= firstBlock &&
        lastBlock <= each.lastBlock
    )
    if (table === undefined || (isHeld && !isMiscounted)) return []
    return [{ table: String(table.table), part, path: String(table.path), isMiscounted }]
  })
}
