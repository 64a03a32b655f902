import { instantOf, ratingTopic, type WriteTransactions } from '@gamenet/schemas'
import { addToOutbox } from './outbox.js'
import { type ProfileState, publishProfile } from './user.js'

/** A profile, or a rating of it. */
export type ChangedRow = {
  readonly userKey: string
  /** Null for a profile. */
  readonly raterKey: string | null
}

type RatingState = {
  user_key: string
  username: string
  rater: string
  stars: number
  comment: string | null
  rated_at: Date
  revision: string
}

const ROWS_PER_TRANSACTION = 500

/**
 * Publishes the current state of rows again, for a log that lost it; the events have the ids of the lost ones. The
 * locks delay a change and an erasure of these rows until the end; the erasure then deletes the events, too.
 */
export async function publishAgain(writes: WriteTransactions, rows: readonly ChangedRow[]): Promise<void> {
  for (let first = 0; first < rows.length; first += ROWS_PER_TRANSACTION) {
    const some = rows.slice(first, first + ROWS_PER_TRANSACTION)
    const ratings = some.filter(({ raterKey }) => raterKey !== null)
    const profiles = some.filter(({ raterKey }) => raterKey === null)
    await writes.transaction(async (transaction) => {
      const states = await transaction.query<ProfileState>(
        'SELECT p.* FROM profile AS p WHERE p.user_key = ANY ($1::text[]) ORDER BY p.user_key FOR SHARE',
        [profiles.map(({ userKey }) => userKey)]
      )
      for (const state of states) await publishProfile(transaction, state)
      const rated = await transaction.query<RatingState>(LOCK_RATINGS, [
        ratings.map(({ userKey }) => userKey),
        ratings.map(({ raterKey }) => raterKey)
      ])
      for (const { user_key, rater, stars, comment, rated_at, revision, username } of rated) {
        const ratedAt = instantOf(rated_at.getTime())
        const event = { username, raterUsername: rater, stars, comment, revision: Number(revision), ratedAt }
        await addToOutbox(transaction, ratingTopic, event, ['rating', user_key])
      }
    })
  }
}

const LOCK_RATINGS = `
  SELECT r.user_key, r.username, r.rater, r.stars, r.comment, r.rated_at, r.revision
  FROM unnest($1::text[], $2::text[]) AS n (user_key, rater_key)
  JOIN rating AS r ON r.user_key = n.user_key AND r.rater_key = n.rater_key
  ORDER BY r.user_key, r.rater_key
  FOR SHARE OF r`
