import { importRetractionTopic } from '@gamenet/schemas'
import { INSTANT_MS } from '../store/projection.js'
import { rowPerEvent } from './sql-projection.js'

/** All undone imports. */
export const importRetraction = rowPerEvent({
  name: 'import-retraction',
  from: importRetractionTopic,
  columns: ['import_id', 'topic', 'ts', 'position'],
  values: { import_id: 'e.retracted_import_id' },
  touches: { key: 'e.retracted_import_id', bucketMs: INSTANT_MS }
})
