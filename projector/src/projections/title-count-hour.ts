import { titleCountTopic } from '@gamenet/schemas'
import { HOUR_MS, type Projection } from '../store/projection.js'
import { titleCount } from './title-count.js'

/**
 * The (title, hour) buckets that events touched: `max_at` is the first instant of the maximum. PREWHERE filters by key
 * before `FINAL` merges, and by hour alone first: a granule of a title covers five days.
 */
export const titleCountHour: Projection = {
  name: 'title-count-hour',
  from: titleCountTopic,
  into: 'title_count_hour',
  columns: ['title_id', 'hour', 'min', 'max', 'max_at', 'sum', 'samples', 'position'],
  after: titleCount.name,
  select: `
    SELECT c.title_id, toStartOfHour(c.ts), min(c.online), max(c.online), argMin(c.ts, (-toInt64(c.online), c.ts)),
      sum(c.online), count(), max(c.position)
    FROM {title_count: Identifier} AS c FINAL
    PREWHERE toStartOfHour(c.ts) IN (
      SELECT toStartOfHour(e.observed_at) FROM {event_title_count: Identifier} AS e WHERE {range})
    AND (c.title_id, toStartOfHour(c.ts)) IN (
      SELECT e.title_id, toStartOfHour(e.observed_at) FROM {event_title_count: Identifier} AS e WHERE {range})
    GROUP BY c.title_id, toStartOfHour(c.ts)`,
  touches: { key: 'e.title_id', bucketMs: HOUR_MS }
}
