import { nameKey, presenceTopic } from '@gamenet/schemas'
import { eventTable } from './event-table.js'

export const presenceEvents = eventTable(presenceTopic, {
  user_key: (event) => nameKey(event.username),
  username: (event) => event.username,
  gamertag: (event) => event.gamertag ?? '',
  gamertag_key: (event) => nameKey(event.gamertag ?? ''),
  is_online: (event) => event.state === 'online',
  game: (event) => event.game ?? '',
  period_s: (event) => event.periodSeconds
})
