import type { ClickHouse } from '@gamenet/engines'
import { FailureError } from '../config.js'

/** Refuses a ClickHouse whose database replicates its tables: a checkpoint could arrive at a replica before its rows. */
export async function refuseReplicated(tables: Pick<ClickHouse['control'], 'rows'>): Promise<void> {
  const [row] = await tables.rows(
    'SELECT d.engine AS engine FROM system.databases AS d WHERE d.name = currentDatabase()'
  )
  if (!/^(Replicated|Shared)/.test(String(row?.engine))) return
  throw new FailureError(
    `The database of CLICKHOUSE_URL has the engine ${row?.engine}, which replicates each table by itself: a checkpoint could be there before ` +
      'its rows, and tables cannot be exchanged. Name a database of the engine Atomic on one server.'
  )
}
