import { achievementUnlockTopic } from '@gamenet/schemas'
import { INSTANT_MS } from '../store/projection.js'
import { achievementUnlock } from './achievement-unlock.js'
import { sqlProjection } from './sql-projection.js'

const TOUCHED = 'SELECT e.user_key FROM {event_achievement_unlock: Identifier} AS e WHERE {range}'

const select = `
  SELECT u.user_key AS user_key, argMin(u.username, u.age) AS name, sum(u.points) AS score, count() AS achievements,
    max(bitNot(u.age)) AS version
  FROM {achievement_unlock: Identifier} AS u FINAL
  WHERE u.user_key IN (${TOUCHED})
  GROUP BY u.user_key`

/** The totals of the touched users' unlocks; the name is spelt as in the newest of them. */
export const achievementScore = sqlProjection({
  name: 'achievement-score',
  from: achievementUnlockTopic,
  columns: ['user_key', 'username', 'score', 'achievements', 'version'],
  after: achievementUnlock.name,
  select,
  // Of several unlocks of an achievement the first event counts, so a late event can remove the newest one.
  selectWhenLate: `
    SELECT n.user_key, n.name, n.score, n.achievements, greatest(n.version, s.version)
    FROM (${select}) AS n
    LEFT JOIN (SELECT a.* FROM {achievement_score: Identifier} AS a FINAL WHERE a.user_key IN (${TOUCHED})) AS s
    ON s.user_key = n.user_key`,
  touches: { key: 'e.user_key', bucketMs: INSTANT_MS }
})
