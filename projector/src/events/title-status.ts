import { titleStatusTopic } from '@gamenet/schemas'
import { eventTable } from './event-table.js'

export const titleStatusEvents = eventTable(titleStatusTopic, {
  title_id: ['LowCardinality(String)', (event) => event.titleId],
  on_network: ['Bool', (event) => event.onNetwork]
})
