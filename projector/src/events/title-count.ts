import { titleCountTopic } from '@gamenet/schemas'
import { eventTable } from './event-table.js'

export const titleCountEvents = eventTable(titleCountTopic, {
  title_id: ['LowCardinality(String)', (event) => event.titleId],
  online: ['UInt32', (event) => event.online],
  sessions: ['Nullable(UInt32)', (event) => event.sessions ?? null],
  lobby_players: ['Nullable(UInt32)', (event) => event.lobbyPlayers ?? null]
})
