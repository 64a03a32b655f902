import { titleCountTopic } from '@gamenet/schemas'
import { eventTable } from './event-table.js'

export const titleCountEvents = eventTable(titleCountTopic, {
  title_id: (event) => event.titleId,
  online: (event) => event.online,
  sessions: (event) => event.sessions ?? null,
  lobby_players: (event) => event.lobbyPlayers ?? null
})
