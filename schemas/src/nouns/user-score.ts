import { z } from 'zod'
import { ShownInstant } from '../values/instant.js'
import { Count } from './count.js'
import { LeaderboardId } from './leaderboard.js'

/** The answer of `getUserScores`. */
export const UserScores = z
  .object({
    playerName: z.string().meta({ description: 'The name that is searched on boards.' }),
    explicitConsoleGamertag: z.string().nullable().meta({ description: 'The linked gamertag, where there is one.' }),
    usingSiteUsernameFallback: z
      .boolean()
      .meta({ description: 'No gamertag is linked and presence saw none: the username is searched.' }),
    scores: z
      .array(
        z
          .object({
            leaderboardId: LeaderboardId,
            leaderboardName: z.string(),
            titleId: z.string(),
            gameName: z.string(),
            rank: z.int(),
            rating: z.string().meta({ description: 'The raw text that the board shows.' }),
            timeMs: Count.meta({ description: 'Milliseconds; 0 for a score.' }),
            timeFormatted: z.string().meta({ description: '`M:SS.mmm`; "" for a score.' }),
            isTime: z.boolean(),
            observedAt: ShownInstant.meta({ description: 'When this entry last changed.' })
          })
          .meta({ id: 'UserScore' })
      )
      .meta({ description: 'Best rank first.' })
  })
  .meta({ id: 'UserScores', description: 'The entries of the user on leaderboards.' })
export type UserScores = z.infer<typeof UserScores>
