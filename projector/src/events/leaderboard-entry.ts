import { leaderboardEntryTopic, nameKey } from '@gamenet/schemas'
import { eventTable } from './event-table.js'

export const leaderboardEntryEvents = eventTable(leaderboardEntryTopic, {
  title_id: (event) => event.titleId,
  leaderboard_id: (event) => event.leaderboardId,
  player: (event) => event.playerName,
  player_key: (event) => nameKey(event.playerName),
  occurrence: (event) => event.occurrence ?? 1,
  change: (event) => event.changeType,
  rating: (event) => event.rating ?? '',
  time_ms: (event) => event.timeMs ?? null,
  stated_rank: (event) => event.rank ?? null,
  ord: (event) => event.order ?? null,
  step: (event) => event.step ?? null,
  details: (event) => (event.details === undefined ? '' : JSON.stringify(event.details))
})
