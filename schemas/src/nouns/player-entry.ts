import { z } from 'zod'
import { Count } from './count.js'
import { FoundEntry } from './found-entry.js'
import { LeaderboardId } from './leaderboard.js'

/** The answer of `searchPlayer` and of `searchPlayers`. */
export const FoundEntries = z
  .object({ results: z.array(FoundEntry), count: Count.meta({ description: 'Entries in `results`.' }) })
  .meta({ description: 'The entries found, best rank first.' })
export type FoundEntries = z.infer<typeof FoundEntries>

/** The answer of `searchRoster`. */
export const FoundRosters = z
  .object({
    results: z.array(
      z.object({
        leaderboard_id: LeaderboardId,
        leaderboard_name: z.string(),
        title_id: z.string(),
        game_name: z.string(),
        players: z.array(FoundEntry).meta({ description: 'The entry of each player, in the order of the question.' })
      })
    ),
    count: Count.meta({ description: 'Boards in `results`.' })
  })
  .meta({ description: 'The boards on which all players stand at their ranks, the closest first.' })
export type FoundRosters = z.infer<typeof FoundRosters>
