import { matchListTopic } from '@gamenet/schemas'
import { DAY_MS, type FoldProjection, INSTANT_MS } from '../projection.js'
import { matchList } from './match-list.js'

/**
 * How far back the list before the touched ones is looked for. Sources list a title every minute while it has lobbies; one
 * that comes back after longer is folded from the next cut on, which is the empty list that it went with.
 */
const RECENT_MS = 2 * DAY_MS

const since = '{since_ms}[indexOf({keys}, toString(m.title_id))]'
const ms = (column: string) => `toUnixTimestamp64Milli(${column})`
const time = (expression: string) => `fromUnixTimestamp64Milli(toInt64(${expression}), 'UTC')`

/**
 * For each key whether its new lists continue what is stored: nothing that is stored was seen later than the list before
 * them, and exactly the lobbies of that list were seen in it.
 */
const judged = `
  SELECT k.key.1 AS title_id, r.before_ms AS before_ms,
    r.found = 1 AND if(s.newest_ms = r.before_ms, s.lobbies = r.lobbies, s.newest_ms < r.before_ms AND empty(r.lobbies))
      AS is_continued
  FROM (SELECT arrayJoin(arrayZip({keys}, {since_ms})) AS key) AS k
  LEFT JOIN (
    SELECT toString(m.title_id) AS title_id, 1 AS found, max(${ms('m.ts')}) AS before_ms,
      argMax(arraySort(arrayZip(m.hosts, arrayEnumerateUniq(m.hosts))), m.ts) AS lobbies
    FROM match_list AS m FINAL
    WHERE m.title_id IN {keys} AND ${ms('m.ts')} < ${since}
      AND m.ts >= ${time(`arrayMin({since_ms}) - ${RECENT_MS}`)} AND m.ts < ${time('arrayMax({since_ms})')}
    GROUP BY title_id) AS r ON r.title_id = k.key.1
  LEFT JOIN (
    SELECT l.title_id AS title_id, max(l.last_ms) AS newest_ms, argMax(l.lobbies, l.last_ms) AS lobbies
    FROM (
      SELECT toString(s.title_id) AS title_id, ${ms('s.last_seen')} AS last_ms, arraySort(groupArray((s.host, s.nth))) AS lobbies
      FROM match_session AS s FINAL
      WHERE s.title_id IN {keys} AND s.last_seen >= ${time(`arrayMin({since_ms}) - ${RECENT_MS}`)} AND NOT s.is_void
      GROUP BY title_id, last_ms) AS l
    GROUP BY l.title_id) AS s ON s.title_id = k.key.1`

/**
 * Where the lists of a key that continues nothing are cut: at the newest list that has no host of the list before the
 * touched ones, for no match that stands in that one can have begun earlier.
 */
const cuts = `
  SELECT m.title_id AS title_id, any(w.before_ms) AS before_ms,
    maxIf(${ms('m.ts')} + 1, NOT hasAny(m.hosts, w.hosts)) - 1 AS cut_ms
  FROM match_list AS m FINAL
  INNER JOIN (
    SELECT m.title_id AS title_id, max(${ms('m.ts')}) AS before_ms, argMax(m.hosts, m.ts) AS hosts
    FROM match_list AS m FINAL
    WHERE m.title_id IN refolded AND m.ts < ${time('arrayMax({since_ms})')} AND ${ms('m.ts')} < ${since}
    GROUP BY m.title_id) AS w ON w.title_id = m.title_id
  WHERE m.title_id IN refolded AND m.ts < ${time('arrayMax({since_ms})')} AND ${ms('m.ts')} < ${since}
  GROUP BY m.title_id`

/**
 * Four arrays side by side, as one constant that ranges of the primary key can be made of: the keys; the list before what
 * was touched, -1 for none; the last list that is not read; whether what is stored is continued.
 */
const bounds = `
  WITH
    (SELECT groupArray((j.title_id, j.before_ms, j.is_continued)) FROM (${judged}) AS j) AS judged,
    arrayMap(j -> j.1, arrayFilter(j -> NOT j.3, judged)) AS refolded,
    (SELECT groupArray((toString(c.title_id), c.before_ms, c.cut_ms)) FROM (${cuts}) AS c) AS cuts,
    arrayMap(j -> j.1, judged) AS titles,
    arrayMap(j -> if(j.3, (j.2, j.2, true), (
      arrayFirst(c -> c.1 = j.1, arrayPushBack(cuts, (j.1, -1, -1))).2,
      arrayFirst(c -> c.1 = j.1, arrayPushBack(cuts, (j.1, -1, -1))).3, false)), judged) AS bounds,
    arrayMin(b -> b.2, bounds) AS floor_ms`

/** Lobbies by title and hour, which bounds what is grouped together, each as the runs in which it stands in the lists. */
const lists = `${bounds}
  SELECT h.title_id AS title_id, bounds[indexOf(titles, h.title_id)].1 AS before_ms,
    bounds[indexOf(titles, h.title_id)].3 AS is_continued, h.newest AS newest, h.instants AS instants,
    arrayMap(l -> (l.1, l.2, arrayMap(
      run -> (run[1].1, run[-1].1, arrayMax(s -> s.2, run), arrayMax(s -> s.3, run), toFloat64(arraySum(s -> s.2, run)),
        toUInt32(length(run))),
      arraySplit((s, at, before) -> at != before + 1, l.3, arrayMap(s -> indexOf(h.instants, s.1), l.3),
        arrayPopBack(arrayPushFront(arrayMap(s -> indexOf(h.instants, s.1), l.3), 0))))), h.lobbies) AS lobbies
  FROM (
    SELECT g.title_id AS title_id, g.hour AS hour, max(g.newest) AS newest,
      anyIf(arrayMap(s -> s.1, g.sights), g.nth = 0) AS instants,
      groupArrayIf((g.host, g.nth, g.sights), g.nth > 0) AS lobbies
    FROM (
      SELECT toString(m.title_id) AS title_id, toStartOfHour(m.ts) AS hour, lobby.1 AS host, lobby.2 AS nth,
        max(m.position) AS newest, arraySort(groupArray((toFloat64(${ms('m.ts')}), lobby.3, lobby.4))) AS sights
      FROM match_list AS m FINAL
      ARRAY JOIN arrayPushFront(arrayZip(m.hosts, arrayEnumerateUniq(m.hosts), m.players, m.max_players),
        ('', toUInt32(0), toUInt32(0), toUInt32(0))) AS lobby
      WHERE m.title_id IN {keys} AND m.ts > ${time('floor_ms')}
        AND ${ms('m.ts')} > bounds[indexOf(titles, toString(m.title_id))].2
      GROUP BY title_id, hour, host, nth) AS g
    GROUP BY g.title_id, g.hour) AS h
  ORDER BY h.title_id, h.hour`

const stored = `${bounds}
  SELECT s.title_id AS title_id, s.host AS host, s.nth AS nth, s.is_void AS is_void,
    toFloat64(${ms('s.first_seen')}) AS first_ms, toFloat64(${ms('s.last_seen')}) AS last_ms,
    s.peak_players AS peak_players, s.max_players AS max_players, toFloat64(s.players_sum) AS players_sum,
    s.sightings AS sightings, s.version AS version
  FROM match_session AS s FINAL
  WHERE s.title_id IN {keys} AND s.last_seen >= ${time('floor_ms')}
    AND ${ms('s.last_seen')} >= bounds[indexOf(titles, toString(s.title_id))].2`

/**
 * Matches of the touched titles. Lists that come in order continue what is stored, one list at a time; a late, replaced or
 * repeated one folds the title again from the cut before it on.
 */
export const matchSession: FoldProjection = {
  name: 'match-session',
  form: 'fold',
  from: matchListTopic,
  after: matchList.name,
  key: { title_id: 'String' },
  into: {
    match_session: [
      'title_id',
      'first_seen',
      'host',
      'nth',
      'is_void',
      'last_seen',
      'peak_players',
      'max_players',
      'players_sum',
      'sightings',
      'version'
    ]
  },
  weigh: `
    SELECT m.title_id AS title_id, sum(length(m.hosts)) + count() AS weight
    FROM match_list AS m
    WHERE m.title_id IN {keys} AND m.ts >= ${time('arrayMin({since_ms})')} AND ${ms('m.ts')} >= ${since}
    GROUP BY m.title_id`,
  reads: { lists, stored },
  touches: { key: 'e.title_id', bucketMs: INSTANT_MS, isLasting: true }
}
