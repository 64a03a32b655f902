import { importRunTopic } from '@gamenet/schemas'
import { INSTANT_MS, type Projection } from '../store/projection.js'

/** The newest state of each import, in log order. */
export const importRun: Projection = {
  name: 'import-run',
  from: importRunTopic,
  into: 'import_run',
  columns: ['import_id', 'ts', 'topic', 'file', 'rows_read', 'published', 'rejected', 'finished', 'position'],
  select: `
    SELECT e.run_import_id, e.observed_at, e.topic, e.file, e.rows_read, e.published, e.rejected, e.finished, e.position
    FROM {event_import_run: Identifier} AS e
    WHERE {range}`,
  touches: { key: 'e.run_import_id', bucketMs: INSTANT_MS }
}
