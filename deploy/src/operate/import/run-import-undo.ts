import {
  type Projector,
  projections,
  RebuildRefused,
  readImports,
  storeAt,
  unfinishedImportUndos
} from '@gamenet/projector'
import { encodeEvent, importRetractionTopic, instantOf, shownInstant } from '@gamenet/schemas'
import { FailureError, UsageError } from '../../config.js'
import type { Engines } from '../../stores/engines.js'
import { notProjecting } from '../rebuild/operation.js'
import type { ImportRun, ImportUndoProgress, ImportUndoReport } from './import-run.js'

export type ImportUndoNeeds = {
  readonly engines: {
    readonly store: Engines['store']
    readonly log: Pick<Engines['log'], 'append'>
  }
  readonly projector: Pick<Projector, 'importUndos'> | undefined
  /**
   * Resolves when the tables contain everything that the log has now, of these topics or of all; rejects with what
   * lags.
   */
  readonly caughtUp: (topics?: readonly string[]) => Promise<void>
  /** Imports that this process is publishing. */
  readonly importing: Pick<ReadonlySet<string>, 'has'>
}

/** All imports in the tables, newest first. */
export async function importRuns({
  engines: { store },
  importing
}: {
  readonly engines: Pick<ImportUndoNeeds['engines'], 'store'>
  readonly importing: ImportUndoNeeds['importing']
}): Promise<ImportRun[]> {
  const runs = await (await storeAt('reads', store, projections)).do(readImports)
  const unfinished = new Set((await unfinishedImportUndos(store)).map(({ importId }) => importId))
  return runs.map(({ newestMs, retractedMs, ...run }) => {
    return {
      ...run,
      newestAt: shownInstant(newestMs),
      retractedAt: retractedMs > 0 ? shownInstant(retractedMs) : null,
      isBeingPublished: importing.has(run.importId),
      isBeingRetracted: unfinished.has(run.importId)
    }
  })
}

/**
 * Undoes an import. First an event in the log makes the undo permanent; then the import's events are deleted from the
 * tables and everything derived from them is rebuilt. A second call completes an interrupted undo, or finds it done.
 */
export async function undoImport(
  needs: ImportUndoNeeds,
  importId: string,
  onProgress: (progress: ImportUndoProgress) => void
): Promise<ImportUndoReport> {
  const { engines, projector, caughtUp, importing } = needs
  if (projector === undefined) throw notProjecting()
  if (importing.has(importId))
    throw new FailureError(`Import ${importId} is still being published; end its command first (Ctrl-C), then undo it.`)
  onProgress({ phase: 'waiting', done: 0, total: 0, etaSeconds: null })
  await caughtUp()
  const run = (await importRuns(needs)).find((each) => each.importId === importId)
  if (run === undefined)
    throw new UsageError(`There is no import ${JSON.stringify(importId)}; gamenet import list shows all imports.`)
  const alreadyDone = run.retractedAt !== null && !run.isBeingRetracted
  if (alreadyDone) return { importId, topic: run.topic, published: run.published, alreadyDone }
  if (run.retractedAt === null) {
    await refusalsOf(importId, () => projector.importUndos.requireUndoable(importId, run.topic))
    const event = { importId, topic: run.topic, observedAt: instantOf(Date.now()) }
    await engines.log.append(importRetractionTopic.name, [
      encodeEvent(importRetractionTopic, event, { source: '/operator' })
    ])
    await caughtUp()
  }
  await removeEvents(projector, importId, run.topic, onProgress)
  return { importId, topic: run.topic, published: run.published, alreadyDone }
}

/** Completes interrupted undos, and those of a log that was loaded again; returns how many. */
export async function finishUndos({ projector, caughtUp }: ImportUndoNeeds): Promise<number> {
  if (projector === undefined) return 0
  await caughtUp([importRetractionTopic.name])
  const left = await projector.importUndos.unfinishedImportUndos()
  if (left.length > 0) await caughtUp()
  for (const { importId, topic } of left) await removeEvents(projector, importId, topic, () => undefined)
  return left.length
}

async function removeEvents(
  projector: Pick<Projector, 'importUndos'>,
  importId: string,
  topic: string,
  onProgress: (progress: ImportUndoProgress) => void
): Promise<void> {
  const undo = () =>
    projector.importUndos.undo(importId, topic, ({ done, total, etaSeconds }) =>
      onProgress({ phase: 'rebuilding', done, total, etaSeconds })
    )
  await refusalsOf(importId, undo)
}

/** Turns refusals of the projector into sentences with an exit code. */
async function refusalsOf(importId: string, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!(error instanceof RebuildRefused)) throw error
    throw new FailureError(`${error.message} Then: gamenet import undo ${importId}.`)
  }
}
