import { z } from 'zod'
import { Count } from './count.js'
import { LeaderboardId } from './leaderboard.js'

/** The answer of `comparePlayers`. */
export const PlayerComparison = z
  .object({
    players: z
      .array(
        z.object({
          playerName: z.string().meta({ description: 'As it was asked for.' }),
          leaderboardsOn: Count.meta({ description: 'Boards that the player stands on, shared or not.' }),
          leads: Count.meta({ description: 'Shared boards on which the player has the better rank.' })
        })
      )
      .meta({ description: 'In the order of the question.' }),
    total: Count.meta({ description: 'Boards that both stand on.' }),
    ties: Count.meta({ description: 'Shared boards on which both have the same rank.' }),
    boards: z.array(
      z.object({
        leaderboardId: LeaderboardId,
        leaderboardName: z.string(),
        titleId: z.string(),
        gameName: z.string(),
        leader: z.string().nullable().meta({ description: 'As it was asked for; null where both share a rank.' }),
        gap: z.number().nullable().meta({
          description: 'Milliseconds or points between the entries; null where either is not a number.'
        }),
        entries: z
          .array(
            z.object({
              playerName: z.string().meta({ description: 'As the board shows it.' }),
              rank: z.int(),
              rating: z.string().meta({ description: 'The raw text that the board shows.' }),
              timeMs: Count.meta({ description: 'Milliseconds; 0 for a score.' }),
              timeFormatted: z.string().meta({ description: '`M:SS.mmm`; "" for a score.' }),
              isTime: z.boolean()
            })
          )
          .meta({ description: 'The best entry of each, in the order of the question.' })
      })
    )
  })
  .meta({
    id: 'PlayerComparison',
    description: 'The boards that both players stand on, the best rank of either first.'
  })
export type PlayerComparison = z.infer<typeof PlayerComparison>
