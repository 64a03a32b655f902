import { importRetractionTopic } from '@gamenet/schemas'
import { INSTANT_MS, type Projection } from '../store/projection.js'

/** All undone imports. */
export const importRetraction: Projection = {
  name: 'import-retraction',
  from: importRetractionTopic,
  into: 'import_retraction',
  columns: ['import_id', 'topic', 'ts', 'position'],
  select: `
    SELECT e.retracted_import_id, e.topic, e.observed_at, e.position
    FROM {event_import_retraction: Identifier} AS e
    WHERE {range}`,
  touches: { key: 'e.retracted_import_id', bucketMs: INSTANT_MS }
}
