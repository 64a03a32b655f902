import { leaderboardEntryTopic, nameKey } from '@gamenet/schemas'
import { eventTable } from './event-table.js'

export const leaderboardEntryEvents = eventTable(leaderboardEntryTopic, {
  title_id: ['LowCardinality(String)', (event) => event.titleId],
  leaderboard_id: ['UInt32', (event) => event.leaderboardId],
  player: ['String', (event) => event.playerName],
  player_key: ['String', (event) => nameKey(event.playerName)],
  occurrence: ['UInt16', (event) => event.occurrence ?? 1],
  change: ['LowCardinality(String)', (event) => event.changeType],
  rating: ['String', (event) => event.rating ?? ''],
  time_ms: ['Nullable(UInt32)', (event) => event.timeMs ?? null],
  is_ascending: ['Bool', (event) => event.isAscending ?? false],
  stated_rank: ['Nullable(Int32)', (event) => event.rank ?? null],
  ord: ['Nullable(Int64)', (event) => event.order ?? null],
  step: ['Nullable(Int64)', (event) => event.step ?? null],
  details: ['String', (event) => (event.details === undefined ? '' : JSON.stringify(event.details))]
})
