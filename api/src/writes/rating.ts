import { CHANGED_CHANNEL, instantOf, type ProfileRated, ratingTopic } from '@gamenet/schemas'
import type { Session } from '../session/sessions.js'
import type { WriteSide } from '../write-side.js'

export type RatingWanted = {
  readonly userKey: string
  readonly rater: Session
  readonly stars: number
  /** Trimmed; null when there is none. */
  readonly comment: string | null
  readonly nowMs: number
}

/** What came of it. With neither `isRaterKnown` nor `isUserKnown` missing it is kept. */
export type RatingKept = {
  readonly isRaterKnown: boolean
  readonly isUserKnown: boolean
  /** What the ratings of the profile come to with this one. */
  readonly ratingCount: number
  readonly starsSum: number
}

/**
 * Keeps a rating, its event and the telling of it, all in one statement: that is one round trip, and one transaction.
 * Both users' rows are locked against their forgetting until it ends; a row that is not there, nothing can hang on.
 */
export async function keepRating(writes: WriteSide, wanted: RatingWanted): Promise<RatingKept> {
  const { userKey, rater, stars, comment, nowMs } = wanted
  const ratedAt = instantOf(nowMs)
  const event: Omit<ProfileRated, 'username' | 'revision'> = { raterUsername: rater.username, stars, comment, ratedAt }
  const [kept] = await writes.query<RatingKept>(KEEP, [
    userKey,
    rater.userKey,
    rater.username,
    stars,
    comment,
    ratedAt,
    ratingTopic.name,
    JSON.stringify(event),
    CHANGED_CHANNEL,
    JSON.stringify(['rating', userKey])
  ])
  if (kept === undefined) throw new Error('keeping a rating gave no row')
  return kept
}

// Revisions: the one of a replaced row is taken when its lock is held (SET), so that they rise in the order of commits.
// What others gave is read as it was when the statement began, before this rating.
const KEEP = `
  WITH users AS MATERIALIZED (
    SELECT p.user_key, p.username
    FROM profile AS p
    WHERE p.user_key IN ($1, $2)
    ORDER BY p.user_key
    FOR KEY SHARE
  ),
  kept AS (
    INSERT INTO rating AS r (user_key, rater_key, username, rater, stars, comment, rated_at, revision)
    SELECT u.user_key, o.user_key, u.username, $3::text, $4::smallint, $5::text, $6::text::timestamptz,
      nextval('revision')
    FROM users AS u, users AS o
    WHERE u.user_key = $1 AND o.user_key = $2
    ON CONFLICT (user_key, rater_key) DO UPDATE
    SET username = excluded.username, rater = excluded.rater, stars = excluded.stars, comment = excluded.comment,
      rated_at = excluded.rated_at, revision = nextval('revision')
    RETURNING r.username, r.revision
  ),
  told AS (
    INSERT INTO outbox (topic, people, event)
    SELECT $7::text, ARRAY[$1, $2], $8::text::jsonb || jsonb_build_object('username', k.username, 'revision', k.revision)
    FROM kept AS k
  )
  SELECT EXISTS (SELECT FROM users AS u WHERE u.user_key = $2) AS "isRaterKnown",
    EXISTS (SELECT FROM users AS u WHERE u.user_key = $1) AS "isUserKnown",
    (SELECT count(*) FROM rating AS r WHERE r.user_key = $1 AND r.rater_key <> $2)::int + 1 AS "ratingCount",
    (SELECT coalesce(sum(r.stars), 0) FROM rating AS r WHERE r.user_key = $1 AND r.rater_key <> $2)::int + $4::smallint
      AS "starsSum",
    (SELECT pg_notify($9, $10) FROM kept) AS told`
