import { z } from 'zod'
import { Count } from './count.js'

/** The answer of `getUserGames`. */
export const UserGames = z
  .object({
    games: z
      .array(
        z
          .object({
            gameName: z.string(),
            titleId: z.string().nullable().describe('null for a game that no title is known for.'),
            imageUrl: z.string().nullable(),
            totalMinutes: Count,
            lastPlayedAt: z
              .int()
              .nonnegative()
              .describe(
                'Epoch milliseconds of the newest sighting in the game; of a game known only from boards, of the ' +
                  'newest change of an entry.'
              )
          })
          .meta({ id: 'UserGame' })
      )
      .describe('Last played first.'),
    leaderboardSupplement: z
      .boolean()
      .describe('Whether a game is listed only because of an entry of the player on one of its boards.'),
    hasPlayTimeTracking: z.boolean().describe('Whether presence has ever seen the user.')
  })
  .meta({ id: 'UserGames', description: 'The games of the user.' })
export type UserGames = z.infer<typeof UserGames>
