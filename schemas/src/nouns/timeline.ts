import { z } from 'zod'
import { ShownInstant } from '../values/instant.js'
import { NewUnlock } from './achievement.js'
import { shownMeasure, shownPlace } from './shown-measure.js'

/** The answer of `getTimeline`. */
export const Timeline = z
  .array(
    z
      .discriminatedUnion('kind', [
        z
          .object({ kind: z.literal('unlock'), at: ShownInstant, ...NewUnlock.omit({ unlockedAt: true }).shape })
          .meta({ id: 'TimelineUnlock' }),
        z
          .object({ kind: z.literal('record'), at: ShownInstant, ...shownPlace, ...shownMeasure })
          .meta({ id: 'TimelineRecord' }),
        z
          .object({
            kind: z.literal('rank'),
            at: ShownInstant,
            ...shownPlace,
            previousRank: z.int().nullable().describe('null for a player who was not on the board before.'),
            newRank: z.int(),
            ...shownMeasure
          })
          .meta({ id: 'TimelineRank' })
      ])
      .meta({ id: 'TimelineEntry' })
  )
  .meta({ id: 'Timeline', description: 'Achievements unlocked, records set and ranks gained, newest first.' })
export type Timeline = z.infer<typeof Timeline>
