import { z } from 'zod'
import { Count } from './count.js'

/** The rank and measure of an entry before and after; null if it was not on the board. */
export const RankedMeasures = z.object({
  previousRank: z.int().nullable(),
  newRank: z.int().nullable(),
  previousRating: z.string().nullable(),
  newRating: z.string().nullable(),
  previousTimeMs: Count.nullable(),
  newTimeMs: Count.nullable()
})
