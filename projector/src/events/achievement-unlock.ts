import { achievementUnlockTopic, nameKey } from '@gamenet/schemas'
import { eventTable } from './event-table.js'

export const achievementUnlockEvents = eventTable(achievementUnlockTopic, {
  user_key: (event) => nameKey(event.username),
  username: (event) => event.username,
  achievement_id: (event) => event.achievementId,
  points: (event) => event.points
})
