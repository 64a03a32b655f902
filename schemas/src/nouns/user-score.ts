import { z } from 'zod'
import { PlayerBoard } from './player.js'

/** The answer of `getUserScores`. */
export const UserScores = z
  .object({
    playerName: z.string().describe('The name that is searched on boards.'),
    explicitConsoleGamertag: z.string().nullable().describe('The linked gamertag, where there is one.'),
    usingSiteUsernameFallback: z
      .boolean()
      .describe('No gamertag is linked and presence saw none: the username is searched.'),
    scores: z
      .array(
        PlayerBoard.extend({
          change30d: z
            .number()
            .nullable()
            .describe(
              'Milliseconds or points of change in 30 days; null for an entry that came since, or not a number.'
            )
        }).meta({ id: 'UserScore' })
      )
      .describe('Best rank first.')
  })
  .meta({ id: 'UserScores', description: 'The entries of the user on leaderboards.' })
export type UserScores = z.infer<typeof UserScores>
