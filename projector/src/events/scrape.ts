import { scrapeTopic } from '@gamenet/schemas'
import { eventTable } from './event-table.js'

export const scrapeEvents = eventTable(scrapeTopic, {
  scrape_source: (event) => event.source,
  duration_ms: (event) => event.durationMs,
  outcome: (event) => event.outcome,
  published: (event) => event.published,
  reason: (event) => event.reason ?? ''
})
