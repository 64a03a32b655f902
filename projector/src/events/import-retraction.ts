import { importRetractionTopic } from '@gamenet/schemas'
import { eventTable } from './event-table.js'

export const importRetractionEvents = eventTable(importRetractionTopic, {
  retracted_import_id: ['String', (event) => event.importId],
  topic: ['LowCardinality(String)', (event) => event.topic]
})
