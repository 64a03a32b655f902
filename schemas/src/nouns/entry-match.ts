import { z } from 'zod'
import { Count } from './count.js'
import { LeaderboardId } from './leaderboard.js'

/** One entry in the result of a search. */
export const EntryMatch = z
  .object({
    id: z.string().describe('Opaque; the same entry of the same board has the same id.'),
    leaderboard_id: LeaderboardId,
    leaderboard_name: z.string(),
    title_id: z.string(),
    game_name: z.string(),
    player_name: z.string(),
    rank: z.int(),
    rating: z.string(),
    time_ms: Count,
    time_formatted: z.string(),
    is_time: z.boolean()
  })
  .meta({ id: 'EntryMatch' })
export type EntryMatch = z.infer<typeof EntryMatch>
