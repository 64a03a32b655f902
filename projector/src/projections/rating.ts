import { ratingTopic } from '@gamenet/schemas'
import { INSTANT_MS } from '../store/projection.js'
import { rowPerEvent } from './sql-projection.js'

/** The valid rating of every rater and profile: that with the write side’s highest revision. */
export const rating = rowPerEvent({
  name: 'rating',
  from: ratingTopic,
  columns: ['user_key', 'rater_key', 'username', 'rater', 'stars', 'comment', 'ts', 'revision'],
  touches: { key: 'e.user_key', bucketMs: INSTANT_MS }
})

/** The rows of `rating`, rater first. */
export const ratingGiven = rowPerEvent({
  name: 'rating-given',
  from: ratingTopic,
  columns: ['rater_key', 'user_key', 'stars', 'ts', 'revision'],
  touches: { key: 'e.user_key', bucketMs: INSTANT_MS }
})
