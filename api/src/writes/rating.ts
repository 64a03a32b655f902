import { CHANGED_CHANNEL, instantOf, type ProfileRated, Refusal, ratingTopic } from '@gamenet/schemas'
import type { Session } from '../session/sessions.js'
import type { WriteSide } from '../write-side.js'

export type RatingWanted = {
  readonly userKey: string
  readonly rater: Pick<Session, 'userKey' | 'username'>
  readonly stars: number
  /** Trimmed; null when there is none. */
  readonly comment: string | null
  readonly nowMs: number
}

/** What came of it: it is kept when both are known. */
export type RatingKept = {
  readonly isRaterKnown: boolean
  readonly isUserKnown: boolean
  /** What the ratings of the profile come to with this one. */
  readonly ratingCount: number
  readonly starsSum: number
}

/** Keeps ratings. */
export type RatingKeeper = { keep(wanted: RatingWanted): Promise<RatingKept> }

/** A statement of so many takes an embedded PostgreSQL about 20 ms, in which nothing else is done. */
const TOGETHER_MAX = 100
const WAITING_MAX = 5000

type Waiting = {
  readonly wanted: RatingWanted
  readonly resolve: (kept: RatingKept) => void
  readonly reject: (error: unknown) => void
}

/**
 * Ratings that come while others are being kept are kept together, each whole: planning, committing and telling cost as
 * much for a hundred as for one. Each is answered when it is kept for good.
 */
export function createRatingKeeper(writes: WriteSide): RatingKeeper {
  let waiting: Waiting[] = []
  let isAtWork = false
  const work = async (): Promise<void> => {
    isAtWork = true
    while (waiting.length > 0) {
      // Others get their turn between two statements, which an embedded PostgreSQL does not give them.
      await new Promise(setImmediate)
      const taken = takeTogether(waiting)
      waiting = taken.left
      const away = await keepTogether(writes, taken.together)
      // Whoever waits has waited for the same long enough.
      if (away !== undefined) for (const { reject } of [...taken.together, ...waiting.splice(0)]) reject(away)
    }
    isAtWork = false
  }
  return {
    keep: (wanted) =>
      new Promise((resolve, reject) => {
        if (waiting.length >= WAITING_MAX) throw new Refusal('engine_busy')
        waiting.push({ wanted, resolve, reject })
        // Never rejects: each rating is told by itself.
        if (!isAtWork) void work()
      })
  }
}

/** One statement may touch a pair once: its next rating waits, and replaces the first. */
function takeTogether(waiting: readonly Waiting[]): { together: Waiting[]; left: Waiting[] } {
  const together = new Map<string, Waiting>()
  const left: Waiting[] = []
  for (const each of waiting) {
    const pair = pairOf(each.wanted.userKey, each.wanted.rater.userKey)
    if (together.size < TOGETHER_MAX && !together.has(pair)) together.set(pair, each)
    else left.push(each)
  }
  return { together: [...together.values()], left }
}

/** Tells each what came of it; gives why nothing can be kept at the moment, where that is so. */
async function keepTogether(writes: WriteSide, together: readonly Waiting[]): Promise<Refusal | undefined> {
  try {
    const kept = await keepRatings(
      writes,
      together.map(({ wanted }) => wanted)
    )
    for (const [n, { resolve, reject }] of together.entries()) {
      const own = kept[n]
      if (own === undefined) reject(new Error('keeping a rating gave no row'))
      else resolve(own)
    }
  } catch (error) {
    if (error instanceof Refusal) return error
    if (together.length === 1) together[0]?.reject(error)
    // One may have been to blame: then each is tried alone.
    else {
      for (const each of together) {
        const away = await keepTogether(writes, [each])
        if (away !== undefined) return away
      }
    }
  }
  return undefined
}

/**
 * Keeps ratings, their events and the telling of them, all in one statement: that is one round trip, and one transaction.
 * The users' rows are locked against their forgetting until it ends; on a row that is not there nothing can hang.
 */
async function keepRatings(writes: WriteSide, all: readonly RatingWanted[]): Promise<RatingKept[]> {
  const rows = await writes.query<RatingKept & { user_key: string; rater_key: string }>(KEEP, [
    JSON.stringify(all.map(rowOf)),
    [...new Set(all.flatMap(({ userKey, rater }) => [userKey, rater.userKey]))],
    ratingTopic.name,
    CHANGED_CHANNEL
  ])
  const byPair = new Map(rows.map((row) => [pairOf(row.user_key, row.rater_key), row]))
  return all.flatMap(({ userKey, rater }) => byPair.get(pairOf(userKey, rater.userKey)) ?? [])
}

function rowOf({ userKey, rater, stars, comment, nowMs }: RatingWanted) {
  const ratedAt = instantOf(nowMs)
  const event: Omit<ProfileRated, 'username' | 'revision'> = { raterUsername: rater.username, stars, comment, ratedAt }
  return { user_key: userKey, rater_key: rater.userKey, event }
}

/** Names hold no control characters. */
function pairOf(userKey: string, raterKey: string): string {
  return `${userKey}\n${raterKey}`
}

// Rows are locked in the order of their keys, so that two such statements never wait for each other. The revision of a row
// that is replaced is taken when its lock is held (SET), so that revisions rise in the order of commits. What others gave
// is read as it was when the statement began.
const KEEP = `
  WITH wanted AS MATERIALIZED (
    SELECT w.user_key, w.rater_key, w.event, (w.event ->> 'stars')::int AS stars
    FROM jsonb_to_recordset($1::text::jsonb) AS w (user_key text, rater_key text, event jsonb)
  ),
  users AS MATERIALIZED (
    SELECT p.user_key, p.username
    FROM profile AS p
    WHERE p.user_key = ANY ($2::text[])
    ORDER BY p.user_key
    FOR KEY SHARE
  ),
  good AS MATERIALIZED (
    SELECT w.user_key, w.rater_key, u.username, w.event, w.stars
    FROM wanted AS w
    JOIN users AS u ON u.user_key = w.user_key
    JOIN users AS o ON o.user_key = w.rater_key
  ),
  kept AS (
    INSERT INTO rating AS r (user_key, rater_key, username, rater, stars, comment, rated_at, revision)
    SELECT g.user_key, g.rater_key, g.username, g.event ->> 'raterUsername', g.stars, g.event ->> 'comment',
      (g.event ->> 'ratedAt')::timestamptz, nextval('revision')
    FROM good AS g
    ORDER BY g.user_key, g.rater_key
    ON CONFLICT (user_key, rater_key) DO UPDATE
    SET username = excluded.username, rater = excluded.rater, stars = excluded.stars, comment = excluded.comment,
      rated_at = excluded.rated_at, revision = nextval('revision')
    RETURNING r.user_key, r.rater_key, r.revision
  ),
  told AS (
    INSERT INTO outbox (topic, people, event)
    SELECT $3::text, ARRAY[g.user_key, g.rater_key],
      g.event || jsonb_build_object('username', g.username, 'revision', k.revision)
    FROM kept AS k
    JOIN good AS g ON g.user_key = k.user_key AND g.rater_key = k.rater_key
  ),
  totals AS MATERIALIZED (
    SELECT t.user_key, count(*)::int AS rating_count, sum(t.stars)::int AS stars_sum
    FROM (
      SELECT g.user_key, g.stars
      FROM good AS g
      UNION ALL
      SELECT r.user_key, r.stars
      FROM rating AS r
      WHERE r.user_key = ANY (ARRAY(SELECT g.user_key FROM good AS g))
        AND (r.user_key, r.rater_key) NOT IN (SELECT g.user_key, g.rater_key FROM good AS g)
    ) AS t
    GROUP BY t.user_key
  )
  SELECT w.user_key, w.rater_key, o.user_key IS NOT NULL AS "isRaterKnown", u.user_key IS NOT NULL AS "isUserKnown",
    coalesce(t.rating_count, 0) AS "ratingCount", coalesce(t.stars_sum, 0) AS "starsSum",
    (
      SELECT count(pg_notify($4::text, jsonb_build_array('rating', k.user_key)::text))
      FROM (SELECT DISTINCT k.user_key FROM kept AS k) AS k
    ) AS heard
  FROM wanted AS w
  LEFT JOIN users AS u ON u.user_key = w.user_key
  LEFT JOIN users AS o ON o.user_key = w.rater_key
  LEFT JOIN totals AS t ON t.user_key = w.user_key`
