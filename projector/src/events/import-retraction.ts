import { importRetractionTopic } from '@gamenet/schemas'
import { eventTable } from './event-table.js'

export const importRetractionEvents = eventTable(importRetractionTopic, {
  retracted_import_id: (event) => event.importId,
  topic: (event) => event.topic
})
