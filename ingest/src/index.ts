/*
 * source       a kind of page that is scraped on its own schedule; one run reads it once
 * page         the text of an answer, then the value that its parser returns
 * reading      the result of one run of a source: events to publish, or a reason why there are none
 * publication  events of one topic on their way to the log
 * seal         the keys with which the events of one person are encrypted; see `@gamenet/schemas`
 * outbox       changes of the write side that the log may lack; the relay publishes them
 * lease        the right of one process to visit a board; one visit reads its page once
 * unlock       an achievement that a user has reached; evaluating finds those that are new
 */

export { type EvaluationNeeds, evaluateOnce } from './achievements/evaluate.js'
export { diffBoard } from './boards/diff-board.js'
export {
  createIngest,
  type Ingest,
  type IngestOptions,
  type ScrapeProgress,
  type SourceStatus
} from './create-ingest.js'
export { checkedChunks, withImportFile } from './import/import-file.js'
export {
  type ImportRequest,
  type ImportResult,
  type KnownImport,
  runImport
} from './import/import-run.js'
export { importInWorker } from './import/import-worker.js'
export type { Ratings } from './import/spelling.js'
export { createRelay } from './outbox/create-relay.js'
export { outboxOf } from './outbox/outbox.js'
export { createPeople, type People, sealKeys } from './people/people.js'
export { endLeases } from './ports/leases.js'
export { appendPacked, type Log } from './ports/log.js'
export { publish } from './publish/publish.js'
