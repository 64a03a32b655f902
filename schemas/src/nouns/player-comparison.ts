import { z } from 'zod'
import { Count } from './count.js'
import { LeaderboardId } from './leaderboard.js'
import { shownMeasure } from './shown-measure.js'

/** The answer of `comparePlayers`. */
export const PlayerComparison = z
  .object({
    players: z
      .array(
        z.object({
          playerName: z.string().describe('As requested.'),
          leaderboardsOn: Count.describe('Boards with an entry of the player, shared or not.'),
          leads: Count.describe('Shared boards on which the player has the better rank.')
        })
      )
      .describe('In the order of the request.'),
    total: Count.describe('Boards with entries of both.'),
    ties: Count.describe('Shared boards on which both have the same rank.'),
    boards: z.array(
      z.object({
        leaderboardId: LeaderboardId,
        leaderboardName: z.string(),
        titleId: z.string(),
        gameName: z.string(),
        leader: z.string().nullable().describe('As requested; null if both share a rank.'),
        gap: z
          .number()
          .nullable()
          .describe('Milliseconds or points between the entries; null if either is not a number.'),
        entries: z
          .array(
            z.object({
              playerName: z.string().describe('As the board shows it.'),
              rank: z.int(),
              ...shownMeasure
            })
          )
          .describe('The best entry of each, in the order of the request.')
      })
    )
  })
  .meta({
    id: 'PlayerComparison',
    description: 'The boards with entries of both players, the best rank of either first.'
  })
export type PlayerComparison = z.infer<typeof PlayerComparison>
