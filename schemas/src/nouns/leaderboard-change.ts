import { z } from 'zod'
import { ShownInstant } from '../values/instant.js'
import { BOARD_CHANGES } from './leaderboard-entry.js'
import { RankedMeasures } from './ranked-measure.js'
import { shownPlace } from './shown-measure.js'

/** One change of an entry: it came, left, or its rating changed. */
export const LeaderboardChange = z
  .object({
    id: z.string().describe('Opaque; survives rebuilds.'),
    ...shownPlace,
    changeType: z.enum(BOARD_CHANGES),
    ...RankedMeasures.shape,
    isTime: z.boolean(),
    changedAt: ShownInstant
  })
  .meta({ id: 'LeaderboardChange' })
export type LeaderboardChange = z.infer<typeof LeaderboardChange>

/** The answer of `getLeaderboardChanges`. */
export const LeaderboardChanges = z
  .array(LeaderboardChange)
  .meta({ id: 'LeaderboardChanges', description: 'Changes of entries.' })
export type LeaderboardChanges = z.infer<typeof LeaderboardChanges>
