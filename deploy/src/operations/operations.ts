import { backup } from './backup.js'
import { caughtUp } from './caught-up.js'
import { dropDeadLetters, listDeadLetters, retryDeadLetters, showDeadLetter } from './dead-letters.js'
import { doctor } from './doctor.js'
import { erase, listErasures } from './erase.js'
import { exportLog } from './export-log.js'
import { acceptGap, listGaps } from './gap.js'
import { importFile } from './import.js'
import { importLog } from './import-log.js'
import { listImports, undoImport } from './import-undo.js'
import { makeAnalyst } from './make-analyst.js'
import { migrate } from './migrate.js'
import type { Operation } from './operation.js'
import { rebuild } from './rebuild.js'
import { scrape } from './scrape.js'
import { takeSqlSnapshot } from './sql-snapshot.js'
import { status } from './status.js'
import { verify } from './verify.js'

/** All operations of the operator port. */
export const operations: readonly Operation<unknown, unknown, unknown>[] = [
  status,
  doctor,
  caughtUp,
  migrate,
  scrape,
  importFile,
  listImports,
  undoImport,
  erase,
  listErasures,
  listGaps,
  acceptGap,
  listDeadLetters,
  showDeadLetter,
  retryDeadLetters,
  dropDeadLetters,
  ...Object.values(rebuild),
  backup,
  verify,
  takeSqlSnapshot,
  makeAnalyst,
  exportLog,
  importLog
]
