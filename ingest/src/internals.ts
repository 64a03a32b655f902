/*
 * Parts of ingest for the simulator, which runs them on a virtual clock, log and pages, and for tests of several
 * packages.
 */

export * from './achievements/achievement-rules.js'
export * from './boards/board-leases.js'
export * from './boards/board-metrics.js'
export * from './boards/known-lists.js'
export * from './boards/last-board.js'
export * from './fetch/page-fetcher.js'
export * from './fetch/reading.js'
export * from './outbox/outbox.js'
export * from './pages/board-table.js'
export * from './pages/game-page.js'
export * from './pages/page-parsing.js'
export * from './scrape/boards.js'
