/*
 * source       a kind of page that is scraped on its own schedule; one run reads it once
 * page         the text of an answer, then the value that its parser read from it
 * reading      what one run of a source saw: events to publish, or why there are none
 * publication  events of one topic on their way to the log
 * turn         when a board is visited next, and who visits it; one visit reads its page once
 */
export { diffBoard, type KnownEntry } from './boards/diff-board.js'
export {
  createIngest,
  type Ingest,
  type IngestOptions,
  type ScrapeProgress,
  type SourceStatus
} from './create-ingest.js'
export { ImportCutOff, ImportRefused } from './import/import-refused.js'
export {
  type ImportFault,
  type ImportNeeds,
  type ImportProgress,
  type ImportRequest,
  type ImportResult,
  type KnownImport,
  runImport
} from './import/import-run.js'
export { importInWorker } from './import/import-worker.js'
export type { Log, LogExtents } from './log.js'
export { publish } from './publish.js'
export type { ReadTables } from './read-tables.js'
export type { Logger } from './scrape/run-source.js'
export type { WriteSide } from './write-side.js'
