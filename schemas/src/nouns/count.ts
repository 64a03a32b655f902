import { z } from 'zod'

/** The largest count that the tables can store (UInt32). */
export const COUNT_MAX = 4_294_967_295

/** A number of people or lobbies. */
export const Count = z.int().min(0).max(COUNT_MAX)

/** Statistics of a bucket's samples, besides its peak; absent from the samples themselves. */
export const bucketStatistics = {
  min: Count.optional().describe('Lowest sample of the bucket.'),
  average: z.number().optional().describe('Mean of the samples of the bucket, one decimal.'),
  samples: z.int().optional().describe('Samples in the bucket.')
}
