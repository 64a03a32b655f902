import { z } from 'zod'
import { ShownInstant } from '../values/instant.js'
import { Count } from './count.js'
import { RankedMeasures } from './ranked-measure.js'

/** An entry at both instants. */
export const ComparedEntry = z
  .object({
    name: z.string(),
    ...RankedMeasures.shape,
    isTime: z.boolean()
  })
  .meta({ id: 'ComparedEntry' })
export type ComparedEntry = z.infer<typeof ComparedEntry>

/** The answer of `compareLeaderboard`. An entry that rose and improved is in both lists. */
export const LeaderboardComparison = z
  .object({
    titleId: z.string(),
    gameName: z.string(),
    leaderboardId: z.string(),
    name: z.string().describe('As of the later instant; "" when only entries of the board were known.'),
    from: ShownInstant,
    to: ShownInstant.nullable().describe('null: now.'),
    counts: z
      .object({ came: Count, left: Count, rose: Count, fell: Count, improved: Count })
      .describe('Lengths of the complete lists.'),
    came: z.array(ComparedEntry),
    left: z.array(ComparedEntry),
    rose: z.array(ComparedEntry).describe('Has a better rank.'),
    fell: z.array(ComparedEntry).describe('Has a worse rank.'),
    improved: z.array(ComparedEntry).describe('Has a better time or score.')
  })
  .meta({
    id: 'LeaderboardComparison',
    description: 'The changes of the board in the order of the later board; removed entries in that of the earlier one.'
  })
export type LeaderboardComparison = z.infer<typeof LeaderboardComparison>
