import { networkCountTopic } from '@gamenet/schemas'
import { eventTable } from './event-table.js'

export const networkCountEvents = eventTable(networkCountTopic, {
  registered: ['Nullable(UInt32)', (event) => event.registered ?? null],
  online: ['Nullable(UInt32)', (event) => event.online ?? null],
  lobbies: ['Nullable(UInt32)', (event) => event.lobbies ?? null]
})
