import { leaderboardTopic } from '@gamenet/schemas'
import { eventTable } from './event-table.js'

export const leaderboardEvents = eventTable(leaderboardTopic, {
  title_id: (event) => event.titleId,
  leaderboard_id: (event) => event.leaderboardId,
  name: (event) => event.name,
  listed: (event) => event.listed ?? true
})
