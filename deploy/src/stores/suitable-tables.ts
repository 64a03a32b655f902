import type { ClickHouse } from '@gamenet/engines'
import { FailureError } from '../config.js'

/** Older servers lack lightweight deletes that wait for all parts, and settings that limit statements. */
const VERSION_MIN = [24, 8] as const

/**
 * Refuses a ClickHouse server that is too old, and one whose database replicates its tables: a checkpoint could arrive
 * at a replica before its rows.
 */
export async function refuseUnsuitable(tables: Pick<ClickHouse['control'], 'rows'>): Promise<void> {
  const [row] = await tables.rows(
    'SELECT d.engine AS engine, version() AS version FROM system.databases AS d WHERE d.name = currentDatabase()'
  )
  const [major = 0, minor = 0] = String(row?.version).split('.').map(Number)
  if (major < VERSION_MIN[0] || (major === VERSION_MIN[0] && minor < VERSION_MIN[1]))
    throw new FailureError(
      `The server of CLICKHOUSE_URL is ClickHouse ${row?.version}, and this program needs ${VERSION_MIN.join('.')} ` +
        `or newer: upgrade the server.`
    )
  if (!/^(Replicated|Shared)/.test(String(row?.engine))) return
  throw new FailureError(
    `The database of CLICKHOUSE_URL has the engine ${row?.engine}, which replicates each table by itself: a ` +
      `checkpoint could be there before ` +
      'its rows, and EXCHANGE TABLES fails. Name a database of the engine Atomic on one server.'
  )
}
