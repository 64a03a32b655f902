import { ratingTopic } from '@gamenet/schemas'
import { INSTANT_MS, type Projection } from '../store/projection.js'

/** The rows of `rating`, rater first. */
export const ratingGiven: Projection = {
  name: 'rating-given',
  from: ratingTopic,
  into: 'rating_given',
  columns: ['rater_key', 'user_key', 'stars', 'ts', 'revision'],
  select: `
    SELECT e.rater_key, e.user_key, e.stars, e.observed_at, e.revision
    FROM {event_rating: Identifier} AS e
    WHERE {range}`,
  touches: { key: 'e.user_key', bucketMs: INSTANT_MS }
}
