import { matchListTopic } from '@gamenet/schemas'
import { eventTable } from './event-table.js'

export const matchListEvents = eventTable(matchListTopic, {
  title_id: (event) => event.titleId,
  hosts: (event) => event.matches.map(({ hostName }) => hostName),
  players: (event) => event.matches.map(({ currentPlayers }) => currentPlayers),
  max_players: (event) => event.matches.map(({ maxPlayers }) => maxPlayers)
})
