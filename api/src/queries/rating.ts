import type { WriteSide } from '@gamenet/schemas'
import { z } from 'zod'

const Given = z.object({ stars: z.int(), comment: z.string().nullable(), atMs: z.int() })

const ReputationRow = z.object({
  isKnown: z.boolean(),
  ratingCount: z.int(),
  starsSum: z.int(),
  feedback: z.array(Given.extend({ rater: z.string() })),
  viewer: Given.nullable()
})
export type ReputationRow = z.infer<typeof ReputationRow>

/**
 * Reads the totals of a profile's ratings, the newest `limit` of them, and a viewer's rating; `isKnown`: whether
 * the user has a row. One statement, so that totals and list have the same instant.
 */
export async function reputationOf(
  writes: Pick<WriteSide, 'query'>,
  request: { readonly userKey: string; readonly limit: number; readonly viewerKey: string | null }
): Promise<ReputationRow> {
  const [row] = await writes.query(REPUTATION, [request.userKey, request.limit, request.viewerKey])
  return ReputationRow.parse(row)
}

const AT_MS = '(extract(epoch FROM r.rated_at) * 1000)::bigint'

const REPUTATION = `
  SELECT EXISTS (SELECT FROM profile AS p WHERE p.user_key = $1) AS "isKnown",
    t.rating_count AS "ratingCount", t.stars_sum AS "starsSum",
    (
      SELECT coalesce(json_agg(json_build_object('rater', f.rater, 'stars', f.stars, 'comment', f.comment, 'atMs',
        f.at_ms)
        ORDER BY f.at_ms DESC, f.revision DESC), '[]')
      FROM (
        SELECT r.rater, r.stars, r.comment, ${AT_MS} AS at_ms, r.revision
        FROM rating AS r
        WHERE r.user_key = $1
        ORDER BY r.rated_at DESC, r.revision DESC
        LIMIT $2
      ) AS f
    ) AS feedback,
    (
      SELECT json_build_object('stars', r.stars, 'comment', r.comment, 'atMs', ${AT_MS})
      FROM rating AS r
      WHERE r.user_key = $1 AND r.rater_key = $3::text
    ) AS viewer
  FROM (
    SELECT count(*)::int AS rating_count, coalesce(sum(r.stars), 0)::int AS stars_sum
    FROM rating AS r
    WHERE r.user_key = $1
  ) AS t`
