import { scrapeTopic } from '@gamenet/schemas'
import { INSTANT_MS } from '../store/projection.js'
import { rowPerEvent } from './sql-projection.js'

/** One row per run of a source. */
export const scrape = rowPerEvent({
  name: 'scrape',
  from: scrapeTopic,
  columns: ['source', 'ts', 'duration_ms', 'outcome', 'published', 'reason', 'position'],
  values: { source: 'e.scrape_source' },
  touches: { key: 'e.scrape_source', bucketMs: INSTANT_MS }
})
