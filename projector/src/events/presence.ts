import { nameKey, presenceTopic } from '@gamenet/schemas'
import { eventTable } from './event-table.js'

export const presenceEvents = eventTable(presenceTopic, {
  user_key: ['String', (event) => nameKey(event.username)],
  username: ['String', (event) => event.username],
  gamertag: ['String', (event) => event.gamertag ?? ''],
  gamertag_key: ['String', (event) => nameKey(event.gamertag ?? '')],
  is_online: ['Bool', (event) => event.state === 'online'],
  game: ['String', (event) => event.game ?? ''],
  period_s: ['UInt32', (event) => event.periodSeconds]
})
