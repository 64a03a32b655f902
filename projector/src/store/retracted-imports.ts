import type { Topic } from '@gamenet/schemas'
import { eventTableName } from '../events/event-table.js'
import type { Tables } from './tables.js'

/** Imports of a topic that were taken back, as the log says. */
export async function retractedImports(tables: Tables, topic: Topic): Promise<string[]> {
  const rows = await tables.rows(
    'SELECT r.import_id AS importId FROM import_retraction AS r FINAL WHERE r.topic = {topic: String} ORDER BY importId',
    { topic: topic.name }
  )
  return rows.map(({ importId }) => String(importId))
}

/**
 * Deletes the events of imports that were taken back from the topic's event table, whichever stands for it in `tables`. Resolves
 * when no statement sees them any more.
 */
export async function deleteRetracted(tables: Tables, topic: Topic, importIds: readonly string[]): Promise<void> {
  if (importIds.length === 0) return
  // Imports' ids are hexadecimal digits, and a statement that stays in the table's files takes no parameters.
  const ids = importIds.filter((id) => /^[0-9a-f]{32}$/.test(id)).map((id) => `'${id}'`)
  await tables.execute(`DELETE FROM ${eventTableName(topic)} WHERE import_id IN (${ids.join(', ')})`)
}
