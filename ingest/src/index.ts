/*
 * source       a kind of page that is scraped on its own schedule; one run reads it once
 * page         the text of an answer, then the value that its parser read from it
 * reading      what one run of a source saw: events to publish, or why there are none
 * publication  events of one topic on their way to the log
 */
export { createIngest, type Ingest, type IngestOptions, type SourceStatus } from './create-ingest.js'
export type { Log } from './log.js'
export { publish } from './publish.js'
export type { Logger } from './scrape/run-source.js'
