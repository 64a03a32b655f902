import { z } from 'zod'
import { Instant, ShownInstant } from '../values/instant.js'
import { Username } from '../values/username.js'
import { topic } from '../wire/topic.js'
import { Count } from './count.js'

export const COMMENT_LENGTH_MAX = 500
/** The prior of every profile: 10 votes of 5 stars (the contract, 2.5). */
export const PRIOR_VOTES = 10
export const PRIOR_STARS = 50

/** One user's rating of another's profile; a later one of the same two users replaces it. */
export const ProfileRated = z.object({
  /** The rated profile. */
  username: Username,
  raterUsername: Username,
  stars: z.int().min(1).max(5),
  comment: z
    .string()
    .min(1)
    .max(2 * COMMENT_LENGTH_MAX)
    .nullable(),
  /** Rises with every change of the write side. */
  revision: z.int().min(1),
  ratedAt: Instant
})
export type ProfileRated = z.infer<typeof ProfileRated>

export const ratingTopic = topic({
  name: 'rating',
  event: ProfileRated,
  people: (event) => [event.username, event.raterUsername],
  identity: (event) => String(event.revision),
  instant: (event) => event.ratedAt
})

/** Returns a profile's average with the prior, two decimals: (50 + Σ stars) / (ratings + 10) (the contract, 2.5). */
export function averageOf(starsSum: number, ratingCount: number): number {
  // Hundredths before the division: 4.225 * 100 is slightly less than 422.5.
  return Math.round((100 * (PRIOR_STARS + starsSum)) / (ratingCount + PRIOR_VOTES)) / 100
}

const Verdict = z
  .object({
    stars: z.int().min(1).max(5),
    comment: z.string().nullable(),
    createdAt: ShownInstant
  })
  .meta({ id: 'GivenRating' })

/** The totals of a profile's ratings. */
export const ReputationTotals = z
  .object({
    average: z.number().describe('With a prior of 10 ratings of 5 stars, two decimals.'),
    ratingCount: Count,
    effectiveVotes: Count.describe('`ratingCount` and the 10 votes of the prior.'),
    priorOnly: z.boolean()
  })
  .meta({ id: 'ReputationTotals' })
export type ReputationTotals = z.infer<typeof ReputationTotals>

/** The answer of `getReputation`. */
export const Reputation = ReputationTotals.extend({
  feedback: z.array(Verdict.extend({ raterUsername: z.string() }).meta({ id: 'Feedback' })).describe('Newest first.'),
  viewer: Verdict.nullable().describe('The rating of the signed-in viewer; null otherwise.')
}).meta({ id: 'Reputation', description: 'The reputation of the profile.' })
export type Reputation = z.infer<typeof Reputation>

/** The answer of `rateProfile`. */
export const RatingGiven = z
  .object({ success: z.literal(true), reputation: ReputationTotals, viewer: Verdict })
  .meta({ id: 'RatingGiven', description: 'The rating is stored.' })
export type RatingGiven = z.infer<typeof RatingGiven>
