import { type Projector, RebuildRefused, unfinishedRetractions } from '@gamenet/projector'
import { encodeEvent, importRetractionTopic, instantOf, shownInstant } from '@gamenet/schemas'
import { z } from 'zod'
import { FailureError, UsageError } from '../config.js'
import type { ImportRun, RetractionProgress, RetractionReport } from '../operator/operations.js'
import type { Engines } from '../wiring/engines.js'

export type Retracting = {
  readonly engines: {
    readonly clickhouse: Pick<Engines['clickhouse'], 'control'>
    readonly log: Pick<Engines['log'], 'append'>
  }
  readonly projector: Pick<Projector, 'retractions'> | undefined
  /** Resolves when all that the log holds now, of these topics or of all, is in the tables; rejects with what stands behind. */
  readonly settled: (topics?: readonly string[]) => Promise<void>
  /** Imports that this process publishes now. */
  readonly running: ReadonlySet<string>
}

const Row = z.object({
  importId: z.string(),
  topic: z.string(),
  file: z.string(),
  newestMs: z.coerce.number(),
  rowsRead: z.coerce.number(),
  published: z.coerce.number(),
  rejected: z.coerce.number(),
  finished: z.boolean(),
  retractedMs: z.coerce.number()
})

/** Every import that the tables know, the newest first; of those that this process publishes now, that it does. */
export async function importRuns({
  engines: { clickhouse },
  running
}: {
  readonly engines: Pick<Retracting['engines'], 'clickhouse'>
  readonly running: ReadonlySet<string>
}): Promise<ImportRun[]> {
  const rows = await clickhouse.control.rows(`
    SELECT i.import_id AS importId, i.topic AS topic, i.file AS file, toUnixTimestamp64Milli(i.ts) AS newestMs,
      i.rows_read AS rowsRead, i.published AS published, i.rejected AS rejected, i.finished AS finished,
      toUnixTimestamp64Milli(r.ts) AS retractedMs
    FROM import_run AS i FINAL
    LEFT JOIN (SELECT t.import_id AS import_id, t.ts AS ts FROM import_retraction AS t FINAL) AS r ON r.import_id = i.import_id
    ORDER BY i.ts DESC, i.import_id`)
  const unfinished = new Set((await unfinishedRetractions(clickhouse.control)).map(({ importId }) => importId))
  return rows.map((row) => {
    const { newestMs, retractedMs, ...run } = Row.parse(row)
    return {
      ...run,
      newestAt: shownInstant(newestMs),
      retractedAt: retractedMs > 0 ? shownInstant(retractedMs) : null,
      isBeingPublished: running.has(run.importId),
      isBeingRetracted: unfinished.has(run.importId)
    }
  })
}

/**
 * Takes an import back: the log is told, which is what makes it last; then its events leave the tables, and all that was made of
 * them is made anew. A second call joins what the first left, or finds that nothing is left to do.
 */
export async function retractImport(
  needs: Retracting,
  importId: string,
  onProgress: (progress: RetractionProgress) => void
): Promise<RetractionReport> {
  const { engines, projector, settled, running } = needs
  if (projector === undefined) {
    throw new UsageError('This process rebuilds nothing; ask one that projects (gamenet start or projector).')
  }
  if (running.has(importId)) {
    throw new FailureError(
      `Import ${importId} is still being published; end its command first (Ctrl-C), then take it back.`
    )
  }
  onProgress({ phase: 'waiting', done: 0, total: 0, etaSeconds: null })
  await settled()
  const run = (await importRuns(needs)).find((each) => each.importId === importId)
  if (run === undefined) {
    throw new UsageError(
      `There is no import ${JSON.stringify(importId)}; gamenet import list shows all that there are.`
    )
  }
  const alreadyDone = run.retractedAt !== null && !run.isBeingRetracted
  if (alreadyDone) return { importId, topic: run.topic, published: run.published, alreadyDone }
  if (run.retractedAt === null) {
    await refusedPlainly(importId, () => projector.retractions.requireRetractable(importId, run.topic))
    const event = { importId, topic: run.topic, observedAt: instantOf(Date.now()) }
    await engines.log.append(importRetractionTopic.name, [
      encodeEvent(importRetractionTopic, event, { source: '/operator' })
    ])
    await settled()
  }
  await madeAnew(projector, importId, run.topic, onProgress)
  return { importId, topic: run.topic, published: run.published, alreadyDone }
}

/** Ends the retractions that were cut off, and those of a log that was loaded anew; gives how many. */
export async function finishRetractions({ projector, settled }: Retracting): Promise<number> {
  if (projector === undefined) return 0
  await settled([importRetractionTopic.name])
  const left = await projector.retractions.unfinishedRetractions()
  if (left.length > 0) await settled()
  for (const { importId, topic } of left) await madeAnew(projector, importId, topic, () => undefined)
  return left.length
}

async function madeAnew(
  projector: Pick<Projector, 'retractions'>,
  importId: string,
  topic: string,
  onProgress: (progress: RetractionProgress) => void
): Promise<void> {
  await refusedPlainly(importId, () =>
    projector.retractions.retract(importId, topic, ({ done, total, etaSeconds }) =>
      onProgress({ phase: 'rebuilding', done, total, etaSeconds })
    )
  )
}

async function refusedPlainly(importId: string, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!(error instanceof RebuildRefused)) throw error
    throw new FailureError(`${error.message} Then: gamenet import undo ${importId}.`)
  }
}
