import { z } from 'zod'
import { operation } from './operation.js'

/*
 * Imports, in the read tables `import_run` and `import_retraction`.
 */

/** Reads the ids of a topic's undone imports, in their order. */
export const readRetractedImports = operation('reads undone imports of a topic', async (tables, topic: string) => {
  const rows = await tables.rows(
    `SELECT r.import_id AS importId FROM {import_retraction: Identifier} AS r FINAL
     WHERE r.topic = {topic: String} ORDER BY importId`,
    { topic }
  )
  return rows.map(({ importId }) => String(importId))
})

/** Reads all undone imports. */
export const readRetractions = operation('reads undone imports', async (tables) => {
  const rows = await tables.rows(
    'SELECT r.import_id AS importId, r.topic AS topic FROM {import_retraction: Identifier} AS r FINAL'
  )
  return rows.map(({ importId, topic }) => ({ importId: String(importId), topic: String(topic) }))
})

/** An import by its newest event. Instants in ms since 1970; `retractedMs` is 0 if it was not undone. */
export const StoredImport = z.object({
  importId: z.string(),
  topic: z.string(),
  file: z.string(),
  newestMs: z.coerce.number(),
  rowsRead: z.coerce.number(),
  published: z.coerce.number(),
  rejected: z.coerce.number(),
  finished: z.boolean(),
  retractedMs: z.coerce.number()
})
export type StoredImport = z.infer<typeof StoredImport>

/** Reads all imports, the newest first; with an id, that one. */
export const readImports = operation('reads imports', async (tables, importId = ''): Promise<StoredImport[]> => {
  const rows = await tables.rows(
    `SELECT i.import_id AS importId, i.topic AS topic, i.file AS file, toUnixTimestamp64Milli(i.ts) AS newestMs,
       i.rows_read AS rowsRead, i.published AS published, i.rejected AS rejected, i.finished AS finished,
       toUnixTimestamp64Milli(r.ts) AS retractedMs
     FROM {import_run: Identifier} AS i FINAL
     LEFT JOIN (SELECT t.import_id AS import_id, t.ts AS ts FROM {import_retraction: Identifier} AS t FINAL) AS r
     ON r.import_id = i.import_id
     WHERE {importId: String} IN ('', i.import_id)
     ORDER BY i.ts DESC, i.import_id`,
    { importId }
  )
  return rows.map((row) => StoredImport.parse(row))
})
