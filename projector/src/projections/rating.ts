import { ratingTopic } from '@gamenet/schemas'
import { INSTANT_MS, type Projection } from '../store/projection.js'

/** The valid rating of every rater and profile: that with the write side’s highest revision. */
export const rating: Projection = {
  name: 'rating',
  from: ratingTopic,
  into: 'rating',
  columns: ['user_key', 'rater_key', 'username', 'rater', 'stars', 'comment', 'ts', 'revision'],
  select: `
    SELECT e.user_key, e.rater_key, e.username, e.rater, e.stars, e.comment, e.observed_at, e.revision
    FROM {event_rating: Identifier} AS e
    WHERE {range}`,
  touches: { key: 'e.user_key', bucketMs: INSTANT_MS }
}

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
