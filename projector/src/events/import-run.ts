import { importRunTopic } from '@gamenet/schemas'
import { eventTable } from './event-table.js'

export const importRunEvents = eventTable(importRunTopic, {
  run_import_id: (event) => event.importId,
  topic: (event) => event.topic,
  file: (event) => event.file,
  rows_read: (event) => event.rowsRead,
  published: (event) => event.published,
  rejected: (event) => event.rejected,
  finished: (event) => event.finished
})
