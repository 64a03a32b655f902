import { achievementUnlockTopic, nameKey } from '@gamenet/schemas'
import { eventTable } from './event-table.js'

export const achievementUnlockEvents = eventTable(achievementUnlockTopic, {
  user_key: ['String', (event) => nameKey(event.username)],
  username: ['String', (event) => event.username],
  achievement_id: ['UInt16', (event) => event.achievementId],
  points: ['UInt16', (event) => event.points]
})
