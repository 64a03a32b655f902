import { titleCountTopic } from '@gamenet/schemas'
import { DAY_MS, HOUR_MS, INSTANT_MS } from '../store/projection.js'
import { rowPerEvent, sqlProjection } from './sql-projection.js'

/** One row per title and instant; a later event of the same instant replaces the whole row. */
export const titleCount = rowPerEvent({
  name: 'title-count',
  from: titleCountTopic,
  columns: ['title_id', 'ts', 'online', 'sessions', 'lobby_players', 'position'],
  touches: { key: 'e.title_id', bucketMs: INSTANT_MS }
})

/**
 * The newest counts of each title, imported ones separate from scraped ones: the newest instant wins, of equal instants
 * the later event.
 */
export const titleLatest = sqlProjection({
  name: 'title-latest',
  from: titleCountTopic,
  columns: ['imported', 'title_id', 'ts', 'online', 'sessions', 'lobby_players', 'version'],
  select: `
    SELECT t.imported, t.title_id, t.newest.1, t.newest.2, t.newest.3, t.newest.4, t.version
    FROM (
      SELECT e.import_id != '' AS imported, e.title_id AS title_id,
        argMax((e.observed_at, e.online, e.sessions, e.lobby_players), e.version) AS newest, max(e.version) AS version
      FROM {event_title_count: Identifier} AS e
      WHERE {range}
      GROUP BY imported, e.title_id) AS t`,
  touches: { key: 'e.title_id', bucketMs: INSTANT_MS }
})

/** PREWHERE filters by key before `FINAL` merges, and by hour alone first. */
const fromCounts = (condition: string) => `
    SELECT c.title_id, toStartOfHour(c.ts), min(c.online), max(c.online), argMin(c.ts, (-toInt64(c.online), c.ts)),
      sum(c.online), count(), max(c.position)
    FROM {title_count: Identifier} AS c FINAL
    PREWHERE toStartOfHour(c.ts) IN (
      SELECT toStartOfHour(e.observed_at) FROM {event_title_count: Identifier} AS e WHERE {range})
    AND (c.title_id, toStartOfHour(c.ts)) IN (
      SELECT e.title_id, toStartOfHour(e.observed_at) FROM {event_title_count: Identifier} AS e WHERE {range})
    ${condition}
    GROUP BY c.title_id, toStartOfHour(c.ts)`

/**
 * The (title, hour) buckets that events touched: `max_at` is the first instant of the maximum.
 *
 * Events within two hours, as live ones are: from the events of these hours, up to the newest of the range in each
 * bucket. The event table is in the order of the log and has an index on instants, so that a pass reads these hours
 * and nothing before: 60 to 150 rows per event with a sample each minute. `title_count` is in the order of titles: a
 * granule of a title covers five days, 1,440 rows per event at the end of the first.
 *
 * Other ranges, and late events, which are followed by others in their hours: from `title_count`.
 */
export const titleCountHour = sqlProjection({
  name: 'title-count-hour',
  version: 2,
  from: titleCountTopic,
  columns: ['title_id', 'hour', 'min', 'max', 'max_at', 'sum', 'samples', 'position'],
  after: titleCount.name,
  select: `
    WITH (
        SELECT (toStartOfHour(min(e.observed_at)), toStartOfHour(max(e.observed_at)) + INTERVAL 1 HOUR)
        FROM {event_title_count: Identifier} AS e WHERE {range}) AS span,
      span.2 <= span.1 + INTERVAL 2 HOUR AS is_short
    SELECT h.title_id, h.hour, arrayMin(h.counts), arrayMax(h.counts),
      h.samples[indexOf(h.counts, arrayMax(h.counts))].1, arraySum(h.counts), length(h.counts), h.position
    FROM (
      SELECT s.title_id AS title_id, k.hour AS hour, max(s.position) AS position,
        arraySort(groupArray((s.observed_at, s.position, s.online))) AS seen,
        arrayFilter((sample, next) -> sample.1 != next, seen,
          arrayPushBack(arrayPopFront(seen.1), toDateTime64(0, 3, 'UTC'))) AS samples,
        samples.3 AS counts
      FROM {event_title_count: Identifier} AS s
      INNER JOIN (
        SELECT e.title_id AS title_id, toStartOfHour(e.observed_at) AS hour, max(e.position) AS newest
        FROM {event_title_count: Identifier} AS e WHERE {range}
        GROUP BY e.title_id, hour) AS k
      ON s.title_id = k.title_id AND toStartOfHour(s.observed_at) = k.hour
      WHERE is_short AND s.observed_at >= span.1 AND s.observed_at < span.2 AND s.position <= k.newest
      GROUP BY s.title_id, k.hour) AS h
    UNION ALL
    ${fromCounts('WHERE NOT is_short')}`,
  selectWhenLate: fromCounts(''),
  touches: { key: 'e.title_id', bucketMs: HOUR_MS }
})

/** The touched (title, UTC day) buckets, computed from hours; an hour is active if it has a sample above 0. */
export const titleCountDay = sqlProjection({
  name: 'title-count-day',
  from: titleCountTopic,
  columns: ['day', 'title_id', 'min', 'max', 'max_at', 'sum', 'samples', 'active_hours', 'position'],
  after: titleCountHour.name,
  select: `
    SELECT toDate(h.hour), h.title_id, min(h.min), max(h.max), argMin(h.max_at, (-toInt64(h.max), h.max_at)),
      sum(h.sum), sum(h.samples), countIf(h.max > 0), max(h.position)
    FROM {title_count_hour: Identifier} AS h FINAL
    PREWHERE (h.title_id, toDate(h.hour)) IN (
      SELECT e.title_id, toDate(e.observed_at) FROM {event_title_count: Identifier} AS e WHERE {range})
    GROUP BY toDate(h.hour), h.title_id`,
  touches: { key: 'e.title_id', bucketMs: DAY_MS }
})
