import { backup } from '../operate/backup/operation.js'
import {
  dropDeadLetters,
  listDeadLetters,
  retryDeadLetters,
  showDeadLetter
} from '../operate/dead-letters/operation.js'
import { doctor } from '../operate/doctor/operation.js'
import { erase, listErasures } from '../operate/erase/operation.js'
import { exportLog } from '../operate/export/operation.js'
import { acceptGap, listGaps } from '../operate/gap/operation.js'
import { importLog } from '../operate/import/import-log.js'
import { importFile } from '../operate/import/operation.js'
import { listImports, undoImport } from '../operate/import/undo-operation.js'
import { makeAnalyst } from '../operate/migrate/make-analyst.js'
import { migrate } from '../operate/migrate/operation.js'
import type { Operation } from '../operate/operation.js'
import { rebuild } from '../operate/rebuild/operation.js'
import { scrape } from '../operate/scrape/operation.js'
import { takeSqlSnapshot } from '../operate/sql/operation.js'
import { caughtUp } from '../operate/status/caught-up.js'
import { status } from '../operate/status/operation.js'
import { verify } from '../operate/verify/operation.js'

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
