import { z } from 'zod'
import { query } from './query.js'

const Ms = z.int().nonnegative()
const OfUser = z.object({ userKey: z.string() })

/** The newest presence of a user: each field separately, with the instant of its sighting. */
export const PRESENCE_FIELDS = ['username', 'seen', 'period', 'online', 'game', 'gamertag'] as const

/**
 * Selects a user's newest sightings before `nowEnd`, one row per field; see the table. Names are the newest of all. A
 * later sighting (a clock was ahead) hides an earlier one, which is then found among all sightings; the count is a
 * constant, so that nothing is read there otherwise.
 */
export const presenceFacts = query({
  params: OfUser.extend({ nowEnd: Ms }),
  row: z.object({ field: z.enum(PRESENCE_FIELDS), value: z.string(), valueKey: z.string(), atMs: Ms }),
  sql: `
    WITH (
      SELECT count() FROM {presence_latest: Identifier} AS a
      WHERE a.user_key = {userKey: String} AND a.ts >= fromUnixTimestamp64Milli({nowEnd: Int64}, 'UTC')
    ) AS ahead
    SELECT l.field AS field, l.value AS value, l.value_key AS valueKey, toFloat64(toUnixTimestamp64Milli(l.ts)) AS atMs
    FROM {presence_latest: Identifier} AS l FINAL
    WHERE l.user_key = {userKey: String}
      AND (l.ts < fromUnixTimestamp64Milli({nowEnd: Int64}, 'UTC') OR l.field IN ('username', 'gamertag'))
    UNION ALL
    SELECT v.1 AS field, argMax(v.2, p.ts) AS value, '' AS valueKey,
      toFloat64(toUnixTimestamp64Milli(max(p.ts))) AS atMs
    FROM {presence: Identifier} AS p FINAL
    ARRAY JOIN arrayFilter(x -> x.3, [
      ('seen', if(p.is_online, 'online', 'offline'), true), ('period', toString(p.period_s), p.is_online),
      ('online', p.game, p.is_online), ('game', p.game, p.is_online AND p.game != '')]) AS v
    WHERE ahead > 0
      AND p.user_key = {userKey: String}
      AND p.ts < fromUnixTimestamp64Milli({nowEnd: Int64}, 'UTC')
      AND v.1 NOT IN (
        SELECT l.field FROM {presence_latest: Identifier} AS l FINAL
        WHERE l.user_key = {userKey: String} AND l.ts < fromUnixTimestamp64Milli({nowEnd: Int64}, 'UTC')
      )
    GROUP BY field`
})

/** Selects the totals over all days of a user. */
export const playTotals = query({
  params: OfUser,
  row: z.object({ seconds: z.int(), daysSeen: z.int() }),
  sql: `
    SELECT
      toFloat64(sum(arraySum(mapValues(d.seconds)))) AS seconds,
      toUInt32(countIf(d.online_sightings > 0)) AS daysSeen
    FROM {presence_day: Identifier} AS d FINAL
    WHERE d.user_key = {userKey: String}`
})

/** Selects the days of a window on which a user was seen or played, oldest first; whole seconds by game. */
export const playDays = query({
  params: OfUser.extend({ fromDay: z.iso.date(), toDay: z.iso.date() }),
  row: z.object({
    day: z.iso.date(),
    isSeen: z.coerce.boolean(),
    games: z.array(z.string()),
    seconds: z.array(z.int())
  }),
  sql: `
    SELECT
      toString(d.day) AS day,
      d.online_sightings > 0 AS isSeen,
      mapKeys(d.seconds) AS games,
      mapValues(d.seconds) AS seconds
    FROM {presence_day: Identifier} AS d FINAL
    WHERE d.user_key = {userKey: String}
      AND d.day >= {fromDay: Date}
      AND d.day < {toDay: Date}
      AND (d.sightings > 0 OR notEmpty(d.seconds))
    ORDER BY d.day`
})
