import type { AbortOptions, Parameters, ReadTables } from '@gamenet/schemas'
import type { RowBlock } from '../rows/row-writer.js'

/**
 * The interface to ClickHouse. Statements have no SETTINGS clause: the engine adds its limits.
 * Calls on one `Tables` run one after the other; the loader and the projections have one each.
 */
export type Tables = ReadTables & {
  /** Runs a statement without a result (DDL, INSERT … SELECT). */
  execute(sql: string, parameters?: Parameters, options?: AbortOptions): Promise<void>
  /** Returns rows as the UTF-8 bytes of one JSON array of objects, one per line, to be parsed in another thread. */
  json(sql: string, parameters?: Parameters, options?: AbortOptions): Promise<Uint8Array>
  /** Inserts lines of JSONCompactEachRow, or columns; all or none. Resolves when they are stored. */
  insert(table: string, columns: readonly string[], body: Uint8Array | RowBlock): Promise<void>
  /** Waits until statements of all lanes see the rows of tables that were stored before, by any replica. */
  sync?(tables: readonly string[]): Promise<void>
}
