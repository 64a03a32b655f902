import { PRESENCE_PERIOD_SECONDS_MAX, presenceTopic } from '@gamenet/schemas'
import { DAY_MS, INSTANT_MS } from '../store/projection.js'
import { rowPerEvent, sqlProjection } from './sql-projection.js'

/** One row per user and instant; of two sightings of one instant the later event counts. */
export const presence = rowPerEvent({
  name: 'presence',
  from: presenceTopic,
  columns: ['user_key', 'ts', 'is_online', 'game', 'period_s', 'position'],
  touches: { key: 'e.user_key', bucketMs: INSTANT_MS }
})

/** One row per user and field, each from the newest sighting with that field. */
export const presenceLatest = sqlProjection({
  name: 'presence-latest',
  from: presenceTopic,
  columns: ['user_key', 'field', 'value', 'value_key', 'ts', 'version'],
  select: `
    SELECT f.user_key, f.field, f.newest.1, f.newest.2, f.newest.3, f.version
    FROM (
      SELECT e.user_key AS user_key, v.1 AS field, argMax((v.2, v.3, e.observed_at), e.version) AS newest,
        max(e.version) AS version
      FROM {event_presence: Identifier} AS e
      ARRAY JOIN arrayFilter(x -> x.4, [
        ('username', e.username, '', true),
        ('seen', if(e.is_online, 'online', 'offline'), '', true),
        ('period', toString(e.period_s), '', e.is_online),
        ('online', e.game, '', e.is_online),
        ('game', e.game, '', e.is_online AND e.game != ''),
        ('gamertag', e.gamertag, e.gamertag_key, e.gamertag != '')]) AS v
      WHERE {range}
      GROUP BY user_key, field) AS f`,
  touches: { key: 'e.user_key', bucketMs: INSTANT_MS }
})

/** All gamertags of each user. */
export const userGamertag = sqlProjection({
  name: 'user-gamertag',
  from: presenceTopic,
  columns: ['gamertag_key', 'user_key'],
  select: `
    SELECT DISTINCT e.gamertag_key, e.user_key
    FROM {event_presence: Identifier} AS e
    WHERE {range} AND e.gamertag != ''`,
  touches: { key: 'e.user_key', bucketMs: INSTANT_MS }
})

/** The longest interval that counts: a sighting changes play time within this distance, in whole days. */
const REACH_DAYS = Math.ceil((3 * PRESENCE_PERIOD_SECONDS_MAX) / 86_400)
/** A touched day is within reach of a touched sighting, and what counts in it is within reach of the day. */
const READ_DAYS = 2 * REACH_DAYS + 1
const REACH_S = REACH_DAYS * 86_400

const dayNumber = (instant: string) => `toUInt32(toDate(${instant}))`
const days = (from: string, to: string) => `range(${dayNumber(from)}, ${dayNumber(to)} + 1)`
/** Whole seconds of the interval from the sighting before `s` to `s` that lie in day number `d`. */
const SECONDS = `toUInt32(greatest(0,
  least(toInt64(toUnixTimestamp(s.ts)), toInt64(d + 1) * 86400) -
  greatest(toInt64(toUnixTimestamp(s.before.1)), toInt64(d) * 86400)))`

/**
 * The (user, day) buckets whose play time may have changed by these sightings: from the day of the sighting before each
 * to the day of the one after it. Two successive sightings in one game are an interval of play if they are at most
 * three periods of the later one apart; it is cut at midnight, UTC.
 *
 * A bucket depends on all sightings within reach of its day, so its version is the newest position of these, whether
 * they count in it or not: the version of only those that count could fall when a new sighting ends an interval.
 */
export const presenceDay = sqlProjection({
  name: 'presence-day',
  from: presenceTopic,
  columns: ['user_key', 'day', 'sightings', 'online_sightings', 'last_at', 'seconds', 'position'],
  after: presence.name,
  select: `
    SELECT b.user_key, toDate(b.day), b.sightings, b.online_sightings,
      if(b.sightings > 0, b.last_seen, toDateTime64(toDate(b.day) + 1, 3, 'UTC')), b.seconds, b.position
    FROM (
      SELECT c.user_key AS user_key, c.day AS day, c.sightings AS sightings, c.online_sightings AS online_sightings,
        c.last_seen AS last_seen, c.seconds AS seconds, c.is_touched AS is_touched,
        max(c.newest) OVER (PARTITION BY c.user_key ORDER BY c.day
          RANGE BETWEEN ${REACH_DAYS} PRECEDING AND ${REACH_DAYS} FOLLOWING) AS position
      FROM (
        SELECT s.user_key AS user_key, d.1 AS day, sum(d.2) AS sightings, sum(d.3) AS online_sightings,
          maxIf(s.ts, d.2 > 0) AS last_seen, maxIf(s.position, d.2 > 0) AS newest, max(d.6) AS is_touched,
          CAST(sumMapIf(map(d.4, d.5), d.5 > 0), 'Map(String, UInt32)') AS seconds
        FROM (
          SELECT p.user_key AS user_key, p.ts AS ts, p.is_online AS is_online, toString(p.game) AS game,
            p.period_s AS period_s, p.position AS position,
            lagInFrame((p.ts, p.is_online, toString(p.game)), 1, (p.ts, false, '')) OVER around AS before,
            leadInFrame(p.ts, 1, p.ts) OVER around AS behind,
            (p.user_key, p.ts) IN (
              SELECT e.user_key, e.observed_at FROM {event_presence: Identifier} AS e WHERE {range}) AS is_touched
          FROM {presence: Identifier} AS p FINAL
          WHERE p.user_key IN (SELECT e.user_key FROM {event_presence: Identifier} AS e WHERE {range})
            AND p.ts >= (SELECT min(e.observed_at) FROM {event_presence: Identifier} AS e WHERE {range})
              - INTERVAL ${READ_DAYS} DAY
            AND p.ts <= (SELECT max(e.observed_at) FROM {event_presence: Identifier} AS e WHERE {range})
              + INTERVAL ${READ_DAYS} DAY
          WINDOW around AS (PARTITION BY p.user_key ORDER BY p.ts
            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
        ) AS s
        ARRAY JOIN arrayConcat(
          [(${dayNumber('s.ts')}, 1, toUInt8(s.is_online), '', toUInt32(0), false)],
          if(s.is_online AND s.before.2 AND s.game != '' AND s.game = s.before.3
              AND dateDiff('millisecond', s.before.1, s.ts) <= 3000 * toInt64(s.period_s),
            arrayMap(d -> (d, 0, 0, s.game, ${SECONDS}, false), ${days('s.before.1', 's.ts')}), []),
          if(s.is_touched,
            arrayMap(d -> (d, 0, 0, '', toUInt32(0), true), ${days(
              `greatest(s.before.1, s.ts - INTERVAL ${REACH_S} SECOND)`,
              `least(s.behind, s.ts + INTERVAL ${REACH_S} SECOND)`
            )}), [])) AS d
        GROUP BY s.user_key, d.1) AS c) AS b
    WHERE b.is_touched`,
  voids: { presence_day: 'r.sightings = 0 AND empty(r.seconds)' },
  touches: { key: 'e.user_key', bucketMs: DAY_MS, reachMs: REACH_DAYS * DAY_MS }
})
