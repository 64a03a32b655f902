import { z } from 'zod'
import { ShownInstant } from '../values/instant.js'
import { NewUnlock } from './achievement.js'
import { Count } from './count.js'
import { LeaderboardId } from './leaderboard.js'

const board = {
  at: ShownInstant,
  titleId: z.string(),
  gameName: z.string(),
  leaderboardId: LeaderboardId,
  leaderboardName: z.string(),
  playerName: z.string()
}
const measure = {
  rating: z.string().meta({ description: 'The raw text that the board shows.' }),
  timeMs: Count.meta({ description: 'Milliseconds; 0 for a score.' }),
  timeFormatted: z.string().meta({ description: '`M:SS.mmm`; "" for a score.' }),
  isTime: z.boolean()
}

/** The answer of `getTimeline`. */
export const Timeline = z
  .array(
    z
      .discriminatedUnion('kind', [
        z
          .object({ kind: z.literal('unlock'), at: ShownInstant, ...NewUnlock.omit({ unlockedAt: true }).shape })
          .meta({ id: 'TimelineUnlock' }),
        z.object({ kind: z.literal('record'), ...board, ...measure }).meta({ id: 'TimelineRecord' }),
        z
          .object({
            kind: z.literal('rank'),
            ...board,
            previousRank: z
              .int()
              .nullable()
              .meta({ description: 'null for a player who was not on the board before.' }),
            newRank: z.int(),
            ...measure
          })
          .meta({ id: 'TimelineRank' })
      ])
      .meta({ id: 'TimelineEntry' })
  )
  .meta({ id: 'Timeline', description: 'Achievements unlocked, records set and ranks gained, newest first.' })
export type Timeline = z.infer<typeof Timeline>
