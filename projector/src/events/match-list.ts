import { matchListTopic } from '@gamenet/schemas'
import { eventTable } from './event-table.js'

export const matchListEvents = eventTable(matchListTopic, {
  title_id: ['LowCardinality(String)', (event) => event.titleId],
  hosts: ['Array(String)', (event) => event.matches.map(({ hostName }) => hostName)],
  players: ['Array(UInt32)', (event) => event.matches.map(({ currentPlayers }) => currentPlayers)],
  max_players: ['Array(UInt32)', (event) => event.matches.map(({ maxPlayers }) => maxPlayers)]
})
