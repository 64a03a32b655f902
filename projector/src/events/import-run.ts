import { importRunTopic } from '@gamenet/schemas'
import { eventTable } from './event-table.js'

export const importRunEvents = eventTable(importRunTopic, {
  run_import_id: ['String', (event) => event.importId],
  topic: ['LowCardinality(String)', (event) => event.topic],
  file: ['String', (event) => event.file],
  rows_read: ['UInt64', (event) => event.rowsRead],
  published: ['UInt64', (event) => event.published],
  rejected: ['UInt64', (event) => event.rejected],
  finished: ['Bool', (event) => event.finished]
})
