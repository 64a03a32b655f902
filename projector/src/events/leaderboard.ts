import { leaderboardTopic } from '@gamenet/schemas'
import { eventTable } from './event-table.js'

export const leaderboardEvents = eventTable(leaderboardTopic, {
  title_id: ['LowCardinality(String)', (event) => event.titleId],
  leaderboard_id: ['UInt32', (event) => event.leaderboardId],
  name: ['String', (event) => event.name],
  listed: ['Bool', (event) => event.listed ?? true]
})
