import { leaderboardEntryTopic } from '@gamenet/schemas'
import { INSTANT_MS } from '../store/projection.js'
import { sqlProjection } from './sql-projection.js'

/** The key of an event's board, as in `boardKey` of the schemas. */
export const BOARD_KEY = `concat(e.title_id, '/', toString(e.leaderboard_id))`
export const BOARD_COLUMNS = { title_id: 'String', leaderboard_id: 'UInt32' } as const

/** Every state of every entry: one row per entry, instant and content, at the position of its first publication. */
export const leaderboardHistory = sqlProjection({
  name: 'leaderboard-history',
  version: 2,
  from: leaderboardEntryTopic,
  columns: [
    ...['title_id', 'leaderboard_id', 'player', 'occurrence', 'ts', 'content', 'player_key', 'is_gone', 'rating'],
    ...['time_ms', 'is_ascending', 'stated_rank', 'ord', 'step', 'details', 'epoch', 'partition', 'offset']
  ],
  // A hash of NULL is NULL, so absent numbers are hashed as texts.
  select: `
    SELECT e.title_id, e.leaderboard_id, e.player, e.occurrence, e.observed_at,
      sipHash64(e.change = 'removed', e.rating, ifNull(toString(e.time_ms), ''), e.is_ascending,
        ifNull(toString(e.stated_rank), ''), ifNull(toString(e.ord), ''), ifNull(toString(e.step), ''), e.details),
      e.player_key, e.change = 'removed', e.rating, e.time_ms, e.is_ascending, e.stated_rank, e.ord, e.step,
      e.details, e.epoch, e.partition, e.offset
    FROM {event_leaderboard_entry: Identifier} AS e
    WHERE {range}`,
  touches: { key: BOARD_KEY, bucketMs: INSTANT_MS }
})
