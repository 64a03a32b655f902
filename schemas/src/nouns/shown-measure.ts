import { z } from 'zod'
import { Count } from './count.js'

/** Score or time of an entry: fields of answers. */
export const shownMeasure = {
  rating: z.string().meta({ description: 'The raw text that the board shows.' }),
  timeMs: Count.meta({ description: 'Milliseconds; 0 for a score.' }),
  timeFormatted: z.string().meta({ description: '`M:SS.mmm`; "" for a score.' }),
  isTime: z.boolean()
}
