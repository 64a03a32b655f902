import { INSTANTS_END_MS, matchListTopic } from '@gamenet/schemas'
import { MATCH_TYPES } from '../folds/match-session.js'
import { DAY_MS, type FoldProjection, INSTANT_MS } from '../store/projection.js'
import { matchList } from './match-list.js'

/**
 * First search range for the list before the touched ones. Sources list a title every minute while it has lobbies;
 * after the final empty list they publish nothing.
 */
const RECENT_MS = 2 * DAY_MS
/** First search range for a cut; most matches are shorter. The second range is everything. */
const NEAR_MS = DAY_MS
/** After every instant; paired with the title '', so that no array is empty. */
const FAR_MS = `toInt64(${INSTANTS_END_MS})`
const RECENTLY = `arrayMin({since_ms}) - ${RECENT_MS}`

const ms = (column: string) => `toUnixTimestamp64Milli(${column})`
const time = (expression: string) => `fromUnixTimestamp64Milli(toInt64(${expression}), 'UTC')`
/**
 * The value of the title of `m` or `s` in an array parallel to one of titles; hashed, because it is evaluated per row.
 */
const of = (table: 'm' | 's', titles: string, values: string) =>
  `transform(toString(${table}.title_id), ${titles}, ${values}, toInt64(-1))`
const sinceOf = (table: 'm' | 's') => of(table, '{keys}', '{since_ms}')

/** The instant of each title's newest list before the touched ones. Reads instants only. */
const newestBefore = (titles: string, fromMs: string, isRecent = 'true') => `
  SELECT m.title_id AS title_id, max(m.ts) AS ts
  FROM {match_list: Identifier} AS m
  WHERE m.title_id IN ${titles} AND m.ts >= ${time(fromMs)} AND m.ts < ${time('arrayMax({since_ms})')}
    AND ${ms('m.ts')} < ${sinceOf('m')} AND ${isRecent}
  GROUP BY m.title_id`

/** As above, if it is recent: relative to each title's own first touched list, whatever other titles are queried. */
const recentBefore = newestBefore('{keys}', RECENTLY, `${ms('m.ts')} >= ${sinceOf('m')} - ${RECENT_MS}`)

/**
 * Whether the new lists of each key continue the stored ones: nothing stored was seen later than the list before them,
 * and exactly the lobbies of that list were seen in it.
 */
const judged = `
  SELECT k.key.1 AS title_id,
    r.found = 1 AND if(s.newest_ms = r.before_ms, s.lobbies = r.lobbies, s.newest_ms < r.before_ms AND empty(r.lobbies))
      AS is_continued
  FROM (SELECT arrayJoin(arrayZip({keys}, {since_ms})) AS key) AS k
  LEFT JOIN (
    SELECT toString(m.title_id) AS title_id, 1 AS found, ${ms('m.ts')} AS before_ms,
      arraySort(arrayZip(m.hosts, arrayEnumerateUniq(m.hosts))) AS lobbies
    FROM {match_list: Identifier} AS m FINAL
    WHERE (m.title_id, m.ts) IN (${recentBefore})) AS r ON r.title_id = k.key.1
  LEFT JOIN (
    SELECT l.title_id AS title_id, max(l.last_ms) AS newest_ms, argMax(l.lobbies, l.last_ms) AS lobbies
    FROM (
      SELECT toString(s.title_id) AS title_id, ${ms('s.last_seen')} AS last_ms,
        arraySort(groupArray((s.host, s.nth))) AS lobbies
      FROM {match_session: Identifier} AS s FINAL
      WHERE s.title_id IN {keys} AND s.last_seen >= ${time(RECENTLY)} AND NOT s.is_void
      GROUP BY title_id, last_ms) AS l
    GROUP BY l.title_id) AS s ON s.title_id = k.key.1`

/**
 * Weighs a title by the lobbies of its lists from the first touched one; titles that are not continued are set apart.
 */
const weigh = `
  SELECT j.title_id AS title_id, NOT j.is_continued AS is_apart, w.weight AS weight
  FROM (${judged}) AS j
  LEFT JOIN (
    SELECT toString(m.title_id) AS title_id, sum(length(m.hosts)) + count() AS weight
    FROM {match_list: Identifier} AS m
    WHERE m.title_id IN {keys} AND m.ts >= ${time('arrayMin({since_ms})')} AND ${ms('m.ts')} >= ${sinceOf('m')}
    GROUP BY title_id) AS w ON w.title_id = j.title_id`

/*
 * Both ways of reading begin with parallel arrays, as constants for ranges of the primary key: titles; `before`, the
 * list before the touched ones; `floors`, the last list that is not read. No list is at -1. `is_continued`: whether the
 * stored matches of the list before are continued.
 */

const continued = `
  WITH
    1 AS is_continued,
    (SELECT groupArray((toString(b.title_id), ${ms('b.ts')})) FROM (${recentBefore}) AS b) AS befores,
    arrayPushBack(arrayMap(b -> b.1, befores), '') AS titles,
    arrayPushBack(arrayMap(b -> b.2, befores), ${FAR_MS}) AS before,
    before AS floors,
    arrayMin(floors) AS floor_ms`

/**
 * The cuts of titles that are folded again: the newest list that has no host of the list before the touched ones,
 * because no match in that list can have begun earlier.
 */
const cuts = (titles: string, fromMs: string) => `
  SELECT toString(m.title_id) AS title_id, max(${ms('m.ts')}) AS cut_ms
  FROM {match_list: Identifier} AS m FINAL
  INNER JOIN (SELECT b.1 AS title_id, b.2 AS before_ms, b.3 AS hosts FROM (SELECT arrayJoin(befores) AS b)) AS w
    ON w.title_id = toString(m.title_id)
  WHERE m.title_id IN {keys} AND has(${titles}, toString(m.title_id)) AND m.ts >= ${time(fromMs)}
    AND m.ts < ${time('arrayMax({since_ms})')} AND ${ms('m.ts')} <= w.before_ms AND NOT hasAny(m.hosts, w.hosts)
  GROUP BY title_id`

const refolded = `
  WITH
    0 AS is_continued,
    (SELECT groupArray((toString(m.title_id), ${ms('m.ts')}, m.hosts)) FROM {match_list: Identifier} AS m FINAL
      WHERE (m.title_id, m.ts) IN (${newestBefore('{keys}', '-1')})) AS befores,
    arrayPushBack(arrayMap(b -> b.1, befores), '') AS titles,
    arrayPushBack(arrayMap(b -> b.2, befores), ${FAR_MS}) AS before,
    (SELECT groupArray((c.title_id, c.cut_ms))
      FROM (${cuts('titles', `arrayMin(before) - ${NEAR_MS}`)}) AS c) AS near_cuts,
    arrayFilter(title -> title != '' AND NOT has(arrayMap(c -> c.1, near_cuts), title), titles) AS uncut,
    (SELECT groupArray((c.title_id, c.cut_ms)) FROM (${cuts('uncut', '-1')}) AS c) AS far_cuts,
    arrayConcat(near_cuts, far_cuts, [('', ${FAR_MS})]) AS cuts,
    arrayMap(title -> if(has(arrayMap(c -> c.1, cuts), title),
      cuts[indexOf(arrayMap(c -> c.1, cuts), title)].2, toInt64(-1)), titles) AS floors,
    if(length(befores) < length({keys}), toInt64(-1), arrayMin(floors)) AS floor_ms`

/** Lobbies by title and hour, which limits the groups, each as its runs in the lists. */
const listsFrom = (bounds: string) => `${bounds}
  SELECT h.title_id AS title_id, transform(h.title_id, titles, before, toInt64(-1)) AS before_ms,
    is_continued, h.newest AS newest, h.instants AS instants,
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
      FROM {match_list: Identifier} AS m FINAL
      ARRAY JOIN arrayPushFront(arrayZip(m.hosts, arrayEnumerateUniq(m.hosts), m.players, m.max_players),
        ('', toUInt32(0), toUInt32(0), toUInt32(0))) AS lobby
      WHERE m.title_id IN {keys} AND m.ts > ${time('floor_ms')}
        AND ${ms('m.ts')} > ${of('m', 'titles', 'floors')}
      GROUP BY title_id, hour, host, nth) AS g
    GROUP BY g.title_id, g.hour) AS h
  ORDER BY h.title_id, h.hour`

/** Rows that the matches of these lists could replace. */
const storedFrom = (bounds: string) => `${bounds}
  SELECT s.title_id AS title_id, s.host AS host, s.nth AS nth, s.is_void AS is_void,
    toFloat64(${ms('s.first_seen')}) AS first_ms, toFloat64(${ms('s.last_seen')}) AS last_ms,
    s.peak_players AS peak_players, s.max_players AS max_players, toFloat64(s.players_sum) AS players_sum,
    s.sightings AS sightings, s.version AS version
  FROM {match_session: Identifier} AS s FINAL
  WHERE s.title_id IN {keys} AND s.last_seen >= ${time('floor_ms')}
    AND ${ms('s.last_seen')} >= ${of('s', 'titles', 'floors')}`

/**
 * Matches of the touched titles. Lists in order continue the stored ones, one list at a time; a late, replaced or
 * repeated list folds the title again from the cut before it.
 */
export const matchSession: FoldProjection = {
  name: 'match-session',
  form: 'fold',
  from: matchListTopic,
  after: matchList.name,
  key: { title_id: 'String' },
  into: { match_session: Object.keys(MATCH_TYPES) },
  weigh,
  reads: { lists: listsFrom(continued), stored: storedFrom(continued) },
  readsApart: { lists: listsFrom(refolded), stored: storedFrom(refolded) },
  voids: { match_session: 'r.is_void' },
  touches: { key: 'e.title_id', bucketMs: INSTANT_MS, isLasting: true }
}
