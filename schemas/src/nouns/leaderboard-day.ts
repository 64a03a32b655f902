import { z } from 'zod'
import { ShownInstant } from '../values/instant.js'
import { Count } from './count.js'
import { shownBoard } from './shown-measure.js'

/** The answer of `getLeaderboardDays`. */
export const LeaderboardDays = z
  .object({
    ...shownBoard,
    firstSeenAt: ShownInstant.describe('When a list or an entry first mentioned the board.'),
    days: z.array(
      z
        .object({
          date: z.iso.date().describe('A day in UTC.'),
          new: Count.describe('Entries that came.'),
          updated: Count.describe('Entries that got another rating.'),
          removed: Count.describe('Entries that left.')
        })
        .meta({ id: 'LeaderboardDay' })
    )
  })
  .meta({ id: 'LeaderboardDays', description: 'The days on which the board changed, oldest first.' })
export type LeaderboardDays = z.infer<typeof LeaderboardDays>
