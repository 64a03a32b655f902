import { achievement } from './achievement.js'
import { boards } from './boards.js'
import { boardsLoad } from './boards-load.js'
import { diffSpeed } from './diff-board.js'
import { durability } from './durability.js'
import { exportApi } from './export-api.js'
import { flood } from './flood.js'
import { importSpeed } from './import.js'
import { importQuietApi } from './import-quiet-api.js'
import { logSize } from './log-size.js'
import type { Measurement } from './measurement.js'
import { pageMinute } from './page-minute.js'
import { profile } from './profile.js'
import { rating } from './rating.js'
import { ratingToTable } from './rating-to-table.js'
import { rebuildBoards, rebuildCounts } from './rebuild.js'
import { rebuildApi } from './rebuild-api.js'
import { reload } from './reload.js'
import { reloadKafka } from './reload-kafka.js'
import { notModified, repeatedAnswer } from './repeated-answer.js'
import { scrapeToAnswer } from './scrape-to-answer.js'
import { search } from './search.js'
import { sitePages } from './site-pages.js'
import { sqlApi } from './sql-api.js'
import { sqlSnapshot } from './sql-snapshot.js'
import { start } from './start.js'
import { stream, streamCatchUp, streamReconnect } from './stream.js'
import { titleCountSize } from './title-count-size.js'
import { titleHistory } from './title-history.js'
import { verifySpeed } from './verify.js'

/** All measurements, in the order in which they run. */
export const measurements: readonly Measurement[] = [
  scrapeToAnswer,
  durability,
  importSpeed,
  importQuietApi,
  reloadKafka,
  diffSpeed,
  boardsLoad,
  logSize,
  titleCountSize,
  titleHistory,
  sqlSnapshot,
  sqlApi,
  boards,
  search,
  profile,
  achievement,
  rating,
  ratingToTable,
  rebuildCounts,
  rebuildBoards,
  rebuildApi,
  exportApi,
  verifySpeed,
  reload,
  repeatedAnswer,
  notModified,
  flood,
  stream,
  streamReconnect,
  streamCatchUp,
  pageMinute,
  sitePages,
  start
]
