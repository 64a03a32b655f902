import { z } from 'zod'
import { NoInput, type OperationNeeds, operation } from '../operation.js'
import { requireCaughtUp } from '../status/caught-up.js'
import { ImportRun, ImportUndoProgress, ImportUndoReport } from './import-run.js'
import type { ImportUndoNeeds } from './run-import-undo.js'

const CAUGHT_UP_MS_MAX = 600_000

/** All imports in the tables, newest first. */
export const listImports = operation({
  name: 'list of imports',
  route: 'GET /imports',
  input: NoInput,
  result: z.array(ImportRun),
  run: async ({ engines, importing }) => {
    const { importRuns } = await import('./run-import-undo.js')
    return await importRuns({ engines, importing })
  }
})

/** Undoes an import. An interrupted undo is completed when a service starts. */
export const undoImport = operation({
  name: 'retraction',
  route: 'POST /imports/:importId/retract',
  input: z.strictObject({ importId: z.string() }),
  progress: ImportUndoProgress,
  result: ImportUndoReport,
  needsLog: true,
  run: async (needs, { importId }, { onProgress }) => {
    const { undoImport } = await import('./run-import-undo.js')
    return await undoImport(undoNeeds(needs), importId, onProgress)
  }
})

/** Completes the undos that an earlier process left; returns how many. */
export async function finishImportUndos(needs: OperationNeeds): Promise<number> {
  const { finishUndos } = await import('./run-import-undo.js')
  return await finishUndos(undoNeeds(needs))
}

function undoNeeds(needs: OperationNeeds): ImportUndoNeeds {
  const { engines, projector, importing } = needs
  const behind = 'The tables have not caught up with the log; undo the import again later'
  const caughtUp = (topics?: readonly string[]) => requireCaughtUp(needs, behind, CAUGHT_UP_MS_MAX, topics)
  return { engines, projector, importing, caughtUp }
}
