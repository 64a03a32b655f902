import { z } from 'zod'
import { Count } from './count.js'
import { FoundEntry } from './found-entry.js'

/** The answer of `searchByTime`. */
export const FoundTimes = z
  .object({
    searchTime: z.string().meta({ description: '`M:SS.mmm`' }),
    searchTimeMs: Count,
    tolerance: Count.meta({ description: 'Milliseconds.' }),
    results: z.array(
      FoundEntry.extend({ difference_ms: Count.meta({ description: 'How far from the time that was searched.' }) })
    ),
    count: Count.meta({ description: 'Entries in `results`.' })
  })
  .meta({ description: 'The entries found, nearest first.' })
export type FoundTimes = z.infer<typeof FoundTimes>
