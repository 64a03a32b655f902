import { boards } from './boards.js'
import { exportApi } from './export-api.js'
import { importSpeed } from './import.js'
import type { Measurement } from './measurement.js'
import { rating } from './rating.js'
import { rebuildBoards, rebuildCounts } from './rebuild.js'
import { reload } from './reload.js'
import { repeatedAnswer } from './repeated-answer.js'
import { replicas } from './replicas.js'
import { scrapeToAnswer } from './scrape-to-answer.js'
import { search } from './search.js'
import { start } from './start.js'
import { stream } from './stream.js'
import { titleHistory } from './title-history.js'

/** All measurements, in the order in which they run. */
export const measurements: readonly Measurement[] = [
  scrapeToAnswer,
  importSpeed,
  titleHistory,
  boards,
  search,
  rating,
  rebuildCounts,
  rebuildBoards,
  exportApi,
  reload,
  repeatedAnswer,
  stream,
  replicas,
  start
]
