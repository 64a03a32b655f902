import { z } from 'zod'
import { Count } from './count.js'
import { EntryMatch } from './entry-match.js'

/** The answer of `searchByTime`. */
export const TimeMatches = z
  .object({
    searchTime: z.string().describe('`M:SS.mmm`'),
    searchTimeMs: z.int().nonnegative(),
    tolerance: Count.describe('Milliseconds.'),
    results: z.array(
      EntryMatch.extend({
        difference_ms: Count.describe('Difference from the requested time.')
      }).meta({ id: 'TimeMatch' })
    ),
    count: Count.describe('Number of entries in `results`.')
  })
  .meta({ id: 'TimeMatches', description: 'The entries found, nearest first.' })
export type TimeMatches = z.infer<typeof TimeMatches>
