import { titleStatusTopic } from '@gamenet/schemas'
import { eventTable } from './event-table.js'

export const titleStatusEvents = eventTable(titleStatusTopic, {
  title_id: (event) => event.titleId,
  on_network: (event) => event.onNetwork
})
