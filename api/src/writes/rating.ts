import { CHANGED_CHANNEL, instantOf, type ProfileRated, Refusal, ratingTopic, type WriteSide } from '@gamenet/schemas'
import type { Session } from '../session/sessions.js'

export type RatingRequest = {
  readonly userKey: string
  readonly rater: Pick<Session, 'userKey' | 'username'>
  readonly stars: number
  /** Trimmed; null without one. */
  readonly comment: string | null
  readonly nowMs: number
}

/** The result of a write: the rating is stored when both users are known. */
export type RatingResult = {
  readonly isRaterKnown: boolean
  readonly isUserKnown: boolean
  /** Totals of the profile's ratings, including this one. */
  readonly ratingCount: number
  readonly starsSum: number
}

export type RatingWriter = { write(request: RatingRequest): Promise<RatingResult> }

/** A statement with this many ratings blocks an embedded PostgreSQL for about 20 ms. */
const BATCH_MAX = 100
const WAITING_MAX = 5000

type Waiting = {
  readonly request: RatingRequest
  readonly resolve: (result: RatingResult) => void
  readonly reject: (error: unknown) => void
}

/**
 * Writes ratings in batches: requests that arrive during a write form the next batch, because planning, committing and
 * notifying cost as much for one rating as for a hundred. A promise resolves when its rating is committed.
 */
export function createRatingWriter(writes: WriteSide): RatingWriter {
  let waiting: Waiting[] = []
  let isWriting = false
  const writeAll = async (): Promise<void> => {
    isWriting = true
    while (waiting.length > 0) {
      // An embedded PostgreSQL runs other statements only between two of ours.
      await new Promise(setImmediate)
      const { batch, rest } = nextBatch(waiting)
      waiting = rest
      const refusal = await writeBatch(writes, batch)
      if (refusal !== undefined) for (const { reject } of [...batch, ...waiting.splice(0)]) reject(refusal)
    }
    isWriting = false
  }
  return {
    write: (request) =>
      new Promise((resolve, reject) => {
        if (waiting.length >= WAITING_MAX) throw new Refusal('engine_busy')
        waiting.push({ request, resolve, reject })
        // Never rejects: each rating has its own promise.
        if (!isWriting) void writeAll()
      })
  }
}

/**
 * Takes a batch from the queue. One statement may touch a pair once, so a second rating of a pair waits for the next
 * batch.
 */
function nextBatch(waiting: readonly Waiting[]): { batch: Waiting[]; rest: Waiting[] } {
  const batch = new Map<string, Waiting>()
  const rest: Waiting[] = []
  for (const each of waiting) {
    const pair = pairOf(each.request.userKey, each.request.rater.userKey)
    if (batch.size < BATCH_MAX && !batch.has(pair)) batch.set(pair, each)
    else rest.push(each)
  }
  return { batch: [...batch.values()], rest }
}

/** Settles the promise of each rating. Returns the refusal if the engine accepts no writes at the moment. */
async function writeBatch(writes: WriteSide, batch: readonly Waiting[]): Promise<Refusal | undefined> {
  try {
    const results = await upsertRatings(
      writes,
      batch.map(({ request }) => request)
    )
    for (const [n, { resolve, reject }] of batch.entries()) {
      const result = results[n]
      if (result === undefined) reject(new Error('the statement that writes a rating returned no row'))
      else resolve(result)
    }
  } catch (error) {
    if (error instanceof Refusal) return error
    if (batch.length === 1) batch[0]?.reject(error)
    // One rating may have caused the failure: each is written alone.
    else {
      for (const each of batch) {
        const refusal = await writeBatch(writes, [each])
        if (refusal !== undefined) return refusal
      }
    }
  }
  return undefined
}

/**
 * Writes ratings, their outbox rows and the notification in one statement: one round trip and one transaction. Row
 * locks on the users block an erasure until it ends; nothing can refer to a row that does not exist.
 */
async function upsertRatings(writes: WriteSide, requests: readonly RatingRequest[]): Promise<RatingResult[]> {
  const rows = await writes.query<RatingResult & { user_key: string; rater_key: string }>(UPSERT, [
    JSON.stringify(requests.map(rowOf)),
    [...new Set(requests.flatMap(({ userKey, rater }) => [userKey, rater.userKey]))],
    ratingTopic.name,
    CHANGED_CHANNEL
  ])
  const byPair = new Map(rows.map((row) => [pairOf(row.user_key, row.rater_key), row]))
  return requests.flatMap(({ userKey, rater }) => byPair.get(pairOf(userKey, rater.userKey)) ?? [])
}

function rowOf({ userKey, rater, stars, comment, nowMs }: RatingRequest) {
  const ratedAt = instantOf(nowMs)
  const event: Omit<ProfileRated, 'username' | 'revision'> = { raterUsername: rater.username, stars, comment, ratedAt }
  return { user_key: userKey, rater_key: rater.userKey, event }
}

/** A key for a pair of users; names contain no control characters. */
const pairOf = (userKey: string, raterKey: string): string => `${userKey}\n${raterKey}`

// Rows are locked in key order, so two statements cannot deadlock. A replaced row gets its revision under its lock
// (SET), so revisions rise in commit order. Other ratings are read from the snapshot of the statement's start.
const UPSERT = `
  WITH request AS MATERIALIZED (
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
  valid AS MATERIALIZED (
    SELECT w.user_key, w.rater_key, u.username, w.event, w.stars
    FROM request AS w
    JOIN users AS u ON u.user_key = w.user_key
    JOIN users AS o ON o.user_key = w.rater_key
  ),
  stored AS (
    INSERT INTO rating AS r (user_key, rater_key, username, rater, stars, comment, rated_at, revision)
    SELECT g.user_key, g.rater_key, g.username, g.event ->> 'raterUsername', g.stars, g.event ->> 'comment',
      (g.event ->> 'ratedAt')::timestamptz, nextval('revision')
    FROM valid AS g
    ORDER BY g.user_key, g.rater_key
    ON CONFLICT (user_key, rater_key) DO UPDATE
    SET username = excluded.username, rater = excluded.rater, stars = excluded.stars, comment = excluded.comment,
      rated_at = excluded.rated_at, revision = nextval('revision')
    RETURNING r.user_key, r.rater_key, r.revision
  ),
  published AS (
    INSERT INTO outbox (topic, people, event)
    SELECT $3::text, ARRAY[g.user_key, g.rater_key],
      g.event || jsonb_build_object('username', g.username, 'revision', k.revision)
    FROM stored AS k
    JOIN valid AS g ON g.user_key = k.user_key AND g.rater_key = k.rater_key
  ),
  totals AS MATERIALIZED (
    SELECT t.user_key, count(*)::int AS rating_count, sum(t.stars)::int AS stars_sum
    FROM (
      SELECT g.user_key, g.stars
      FROM valid AS g
      UNION ALL
      SELECT r.user_key, r.stars
      FROM rating AS r
      WHERE r.user_key = ANY (ARRAY(SELECT g.user_key FROM valid AS g))
        AND (r.user_key, r.rater_key) NOT IN (SELECT g.user_key, g.rater_key FROM valid AS g)
    ) AS t
    GROUP BY t.user_key
  )
  SELECT w.user_key, w.rater_key, o.user_key IS NOT NULL AS "isRaterKnown", u.user_key IS NOT NULL AS "isUserKnown",
    coalesce(t.rating_count, 0) AS "ratingCount", coalesce(t.stars_sum, 0) AS "starsSum",
    (
      SELECT count(pg_notify($4::text, jsonb_build_array('rating', k.user_key)::text))
      FROM (SELECT DISTINCT k.user_key FROM stored AS k) AS k
    ) AS notified
  FROM request AS w
  LEFT JOIN users AS u ON u.user_key = w.user_key
  LEFT JOIN users AS o ON o.user_key = w.rater_key
  LEFT JOIN totals AS t ON t.user_key = w.user_key`
