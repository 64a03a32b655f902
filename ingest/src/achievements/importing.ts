import { headsOf, importRunTopic, type LogExtents } from '@gamenet/schemas'
import { tableProgress } from '../caught-up.js'
import type { ServedTables } from '../ports/served-tables.js'
import { EVALUATED_TOPICS } from './topic-positions.js'

/**
 * An import announces itself before its first event, every few seconds and at its end. This pause bridges the gap
 * between two files.
 */
const QUIET_MS = 60_000

/**
 * Returns whether a history of users is being imported, or was until a minute ago. Half a history looks like a pause of
 * a year, or like a board without its best entries. An import that died is awaited no longer than one that ended.
 */
export async function isImporting(
  needs: { readonly log: LogExtents; readonly now: () => number; readonly signal?: AbortSignal },
  served: ServedTables
): Promise<boolean> {
  const { log, signal } = needs
  const heads = await headsOf(log, importRunTopic.name)
  const reached = await tableProgress(served, 'import-run')
  if (!reached.has(heads)) return true
  const nowMs = needs.now()
  const rows = await served.tables.rows(
    `SELECT 1 AS is_recent FROM {import_run: Identifier} AS i
     WHERE i.topic IN {topics: Array(String)}
       AND i.ts > fromUnixTimestamp64Milli({from_ms: Int64}, 'UTC')
       AND i.ts < fromUnixTimestamp64Milli({to_ms: Int64}, 'UTC')
     LIMIT 1`,
    { topics: [...EVALUATED_TOPICS], from_ms: nowMs - QUIET_MS, to_ms: nowMs + QUIET_MS },
    signal === undefined ? {} : { signal }
  )
  return rows.length > 0
}
