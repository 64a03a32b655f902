import { z } from 'zod'
import { Count } from './count.js'
import { EntryMatch } from './entry-match.js'
import { LeaderboardId } from './leaderboard.js'

/** The answer of `searchPlayer` and of `searchPlayers`. */
export const EntryMatches = z
  .object({ results: z.array(EntryMatch), count: Count.describe('Number of entries in `results`.') })
  .meta({ id: 'EntryMatches', description: 'The entries found, best rank first.' })
export type EntryMatches = z.infer<typeof EntryMatches>

/** The answer of `searchRoster`. */
export const RosterMatches = z
  .object({
    results: z.array(
      z.object({
        leaderboard_id: LeaderboardId,
        leaderboard_name: z.string(),
        title_id: z.string(),
        game_name: z.string(),
        players: z.array(EntryMatch).describe('The entry of each player, in the order of the request.')
      })
    ),
    count: Count.describe('Number of boards in `results`.')
  })
  .meta({
    id: 'RosterMatches',
    description: 'The boards on which all players have their ranks, the closest first.'
  })
export type RosterMatches = z.infer<typeof RosterMatches>
