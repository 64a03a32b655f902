import { scrapeTopic } from '@gamenet/schemas'
import { eventTable } from './event-table.js'

export const scrapeEvents = eventTable(scrapeTopic, {
  scrape_source: ['LowCardinality(String)', (event) => event.source],
  duration_ms: ['UInt32', (event) => event.durationMs],
  outcome: ['LowCardinality(String)', (event) => event.outcome],
  published: ['UInt32', (event) => event.published],
  reason: ['String', (event) => event.reason ?? '']
})
