/*
 * Parts of ingest for the simulator, which runs them on a virtual clock, log and pages, and for tests of several
 * packages.
 */

export { ruleOf, ruleStatement } from './achievements/achievement-rules.js'
export type { BoardLease, BoardLeases, VisitResult } from './boards/board-leases.js'
export { createBoardMetrics } from './boards/board-metrics.js'
export { KNOWN_LISTS, TITLES_WITH_BOARDS } from './boards/known-lists.js'
export { BOARD_STATES, LAST_BOARD } from './boards/last-board.js'
export type { PageFetcher } from './fetch/page-fetcher.js'
export type { Reader } from './fetch/reading.js'
export type { Outbox, OutboxTransaction } from './outbox/outbox.js'
export type { BoardEntry } from './pages/board-table.js'
export type { GamePage } from './pages/game-page.js'
export type { PageParsing } from './pages/page-parsing.js'
export { boardsSource } from './scrape/boards.js'
