import type { ClickHouse } from '@gamenet/engines'
import { FailureError } from '../config.js'

/** Older servers lack lightweight deletes that wait for all parts, and settings that limit statements. */
const VERSION_MIN = [24, 8] as const

/**
 * Refuses a ClickHouse server that is too old, and one whose database or tables replicate: a checkpoint could arrive at
 * a replica before its rows.
 */
export async function refuseUnsuitable(tables: Pick<ClickHouse['control'], 'rows'>): Promise<void> {
  const [row] = await tables.rows(
    `SELECT d.engine AS engine, version() AS version,
       (SELECT count() FROM system.tables AS t
        WHERE t.database = currentDatabase() AND t.engine LIKE 'Replicated%') AS replicated
     FROM system.databases AS d WHERE d.name = currentDatabase()`
  )
  const [major = 0, minor = 0] = String(row?.version).split('.').map(Number)
  if (major < VERSION_MIN[0] || (major === VERSION_MIN[0] && minor < VERSION_MIN[1]))
    throw new FailureError(
      `The server of CLICKHOUSE_URL is ClickHouse ${row?.version}, and this program needs ${VERSION_MIN.join('.')} ` +
        `or newer: upgrade the server.`
    )
  const isReplicated = /^(Replicated|Shared)/.test(String(row?.engine))
  if (!isReplicated && Number(row?.replicated ?? 0) === 0) return
  const what = isReplicated ? 'which replicates' : `and tables (${row?.replicated}) whose engines replicate`
  throw new FailureError(
    `The database of CLICKHOUSE_URL has the engine ${row?.engine}, ${what} each table by itself: a checkpoint could ` +
      'be there before its rows. Name a database of the engine Atomic, with plain tables, on one server.'
  )
}
