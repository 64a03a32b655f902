import { z } from 'zod'
import { ShownInstant } from '../values/instant.js'
import { Count } from './count.js'

/** The answer of `getLeaderboardDays`. */
export const LeaderboardDays = z
  .object({
    titleId: z.string(),
    gameName: z.string(),
    leaderboardId: z.string(),
    name: z.string().describe('"" when only entries of the board are known.'),
    listed: z.boolean().describe('Whether the game still lists the board.'),
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
