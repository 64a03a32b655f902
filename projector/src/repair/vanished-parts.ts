import { z } from 'zod'
import { type LostPart, TABLE_UUID } from '../store/table.js'
import type { Tables } from '../store/tables.js'

/** An active part with rows of a table at some instant. Merges replace it by a part with a range of blocks that includes its own. */
export const ListedPart = z.object({
  /** UUID of its table: another table may get the same name. */
  table: z.string(),
  partition: z.string(),
  /** Becomes the name of a folder. */
  part: z.string().regex(/^[\w-]+$/),
  firstBlock: z.number(),
  lastBlock: z.number(),
  /** Absent in lists of earlier programs. */
  rows: z.number().optional()
})
export type ListedPart = z.infer<typeof ListedPart>

/** A part that its table lacks; `path` is the table's directory. `part` is undefined if the folder of all tables is lost. */
export type VanishedPart = {
  readonly table: string
  readonly part: string | undefined
  readonly path: string
}

/** A part with another number of rows than listed (`rows`). */
export type MiscountedPart = LostPart & { readonly path: string; readonly rows: number }

const PART_COLUMNS = `${TABLE_UUID} AS table, p.partition_id AS partition, p.name AS part,
  toFloat64(p.min_block_number) AS firstBlock, toFloat64(p.max_block_number) AS lastBlock`
const OF_TABLE = 'INNER JOIN system.tables AS t ON t.database = p.database AND t.name = p.table'

/**
 * Reads the active parts of all generations of these tables. The engine removes parts without rows; a part with deleted rows may become
 * one when it is merged.
 */
export async function listParts(tables: Pick<Tables, 'rows'>, names: readonly string[]): Promise<ListedPart[]> {
  const rows = await tables.rows(
    `SELECT ${PART_COLUMNS}, toFloat64(p.rows) AS rows FROM system.parts AS p ${OF_TABLE}
     WHERE p.database = currentDatabase() AND p.active AND p.rows > 0 AND NOT p.has_lightweight_delete
       AND splitByString('__', p.table)[1] IN {names: Array(String)}
     ORDER BY table, partition, firstBlock`,
    { names }
  )
  return rows.map((row) => ListedPart.parse(row))
}

/**
 * Returns the listed parts whose number of rows in the engine differs: the engine does not verify that number, and neither reads nor
 * merges the rows beyond it. `path` is the part's directory.
 */
export async function miscountedParts(
  tables: Pick<Tables, 'rows'>,
  listed: readonly ListedPart[]
): Promise<MiscountedPart[]> {
  const rowsOf = new Map(listed.map(({ table, part, rows }) => [`${table}/${part}`, rows]))
  const active = await tables.rows(
    `SELECT ${TABLE_UUID} AS uuid, t.name AS table, p.name AS part, p.path AS path, toFloat64(p.rows) AS rows
     FROM system.parts AS p ${OF_TABLE} WHERE p.database = currentDatabase() AND p.active`
  )
  return active.flatMap(({ uuid, table, part, path, rows: held }) => {
    const rows = rowsOf.get(`${uuid}/${part}`)
    return rows === undefined || rows === held
      ? []
      : [{ table: String(table), part: String(part), path: String(path), rows }]
  })
}

/** Returns the listed parts that vanished from existing tables: no active and no detached part has their blocks. */
export async function vanishedParts(
  tables: Pick<Tables, 'rows'>,
  listed: readonly ListedPart[],
  names: readonly string[]
): Promise<VanishedPart[]> {
  const held = await tables.rows(
    `SELECT ${PART_COLUMNS} FROM system.parts AS p ${OF_TABLE} WHERE p.database = currentDatabase() AND p.active
     UNION ALL
     SELECT ${PART_COLUMNS} FROM system.detached_parts AS p ${OF_TABLE}
     WHERE p.database = currentDatabase() AND p.reason LIKE '%broken%'`
  )
  const parts = held.map((row) => ListedPart.parse(row))
  const existing = await tables.rows(
    `SELECT ${TABLE_UUID} AS id, t.name AS table, t.data_paths[1] AS path FROM system.tables AS t
     WHERE t.database = currentDatabase() AND t.engine LIKE '%MergeTree'`
  )
  if (listed.length > 0 && !listed.some(({ table }) => existing.some(({ id }) => id === table))) {
    // These are new.
    return existing
      .filter(({ table }) => names.includes(String(table).split('__')[0] ?? ''))
      .map(({ table, path }) => ({ table: String(table), part: undefined, path: String(path) }))
  }
  return listed.flatMap(({ table: uuid, partition, part, firstBlock, lastBlock }) => {
    const table = existing.find((each) => each.id === uuid)
    const isHeld = parts.some(
      (each) =>
        each.table === uuid &&
        each.partition === partition &&
        each.firstBlock <= firstBlock &&
        lastBlock <= each.lastBlock
    )
    if (table === undefined || isHeld) return []
    // Of checkpoints, the engine also drops a part in which all rows were deleted.
    if (table.table === 'checkpoint' && parts.some((each) => each.table === uuid)) return []
    return [{ table: String(table.table), part, path: String(table.path) }]
  })
}
