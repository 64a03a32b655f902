import { titleCountTopic } from '@gamenet/schemas'
import { HOUR_MS, type Projection } from '../store/projection.js'
import { titleCount } from './title-count.js'

/**
 * The (title, hour) buckets that events touched: `max_at` is the first instant of the maximum.
 *
 * Events within two hours, as live ones are: from the events of these hours, up to the newest of the range in each
 * bucket. The event table is in the order of the log and has an index on instants, so that a pass reads these hours
 * and nothing before: 60 to 150 rows per event with a sample each minute. `title_count` is in the order of titles: a
 * granule of a title covers five days, 1,440 rows per event at the end of the first.
 *
 * Other ranges: from `title_count`. PREWHERE filters by key before `FINAL` merges, and by hour alone first.
 */
export const titleCountHour: Projection = {
  name: 'title-count-hour',
  version: 2,
  from: titleCountTopic,
  into: 'title_count_hour',
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
    SELECT c.title_id, toStartOfHour(c.ts), min(c.online), max(c.online), argMin(c.ts, (-toInt64(c.online), c.ts)),
      sum(c.online), count(), max(c.position)
    FROM {title_count: Identifier} AS c FINAL
    PREWHERE toStartOfHour(c.ts) IN (
      SELECT toStartOfHour(e.observed_at) FROM {event_title_count: Identifier} AS e WHERE {range})
    AND (c.title_id, toStartOfHour(c.ts)) IN (
      SELECT e.title_id, toStartOfHour(e.observed_at) FROM {event_title_count: Identifier} AS e WHERE {range})
    WHERE NOT is_short
    GROUP BY c.title_id, toStartOfHour(c.ts)`,
  touches: { key: 'e.title_id', bucketMs: HOUR_MS }
}
