import { z } from 'zod'
import { Count } from './count.js'
import { EntryMatch } from './entry-match.js'

/** The answer of `searchByTime`. */
export const TimeMatches = z
  .object({
    searchTime: z.string().meta({ description: '`M:SS.mmm`' }),
    searchTimeMs: z.int().nonnegative(),
    tolerance: Count.meta({ description: 'Milliseconds.' }),
    results: z.array(
      EntryMatch.extend({
        difference_ms: Count.meta({ description: 'Difference from the requested time.' })
      }).meta({ id: 'TimeMatch' })
    ),
    count: Count.meta({ description: 'Number of entries in `results`.' })
  })
  .meta({ id: 'TimeMatches', description: 'The entries found, nearest first.' })
export type TimeMatches = z.infer<typeof TimeMatches>
