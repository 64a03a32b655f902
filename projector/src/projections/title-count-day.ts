import { titleCountTopic } from '@gamenet/schemas'
import { DAY_MS, type Projection } from '../store/projection.js'
import { titleCountHour } from './title-count-hour.js'

/** The touched (title, UTC day) buckets, computed from hours; an hour is active if it has a sample above 0. */
export const titleCountDay: Projection = {
  name: 'title-count-day',
  from: titleCountTopic,
  into: 'title_count_day',
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
}
