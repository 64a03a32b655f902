import { scrapeTopic } from '@gamenet/schemas'
import { INSTANT_MS, type Projection } from '../store/projection.js'

/** One row per run of a source. */
export const scrape: Projection = {
  name: 'scrape',
  from: scrapeTopic,
  into: 'scrape',
  columns: ['source', 'ts', 'duration_ms', 'outcome', 'published', 'reason', 'position'],
  select: `
    SELECT e.scrape_source, e.observed_at, e.duration_ms, e.outcome, e.published, e.reason, e.position
    FROM {event_scrape: Identifier} AS e
    WHERE {range}`,
  touches: { key: 'e.scrape_source', bucketMs: INSTANT_MS }
}
