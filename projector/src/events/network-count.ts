import { networkCountTopic } from '@gamenet/schemas'
import { eventTable } from './event-table.js'

export const networkCountEvents = eventTable(networkCountTopic, {
  registered: (event) => event.registered ?? null,
  online: (event) => event.online ?? null,
  lobbies: (event) => event.lobbies ?? null
})
