import { importRunTopic } from '@gamenet/schemas'
import { INSTANT_MS } from '../store/projection.js'
import { rowPerEvent } from './sql-projection.js'

/** The newest state of each import, in log order. */
export const importRun = rowPerEvent({
  name: 'import-run',
  from: importRunTopic,
  columns: ['import_id', 'ts', 'topic', 'file', 'rows_read', 'published', 'rejected', 'finished', 'position'],
  values: { import_id: 'e.run_import_id' },
  touches: { key: 'e.run_import_id', bucketMs: INSTANT_MS }
})
