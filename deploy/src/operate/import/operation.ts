import { makeFolder } from '@gamenet/engines/files'
import type { KnownImport, Ratings } from '@gamenet/ingest'
import { ImportProgress, ImportReport } from '@gamenet/ingest/import'
import { errorCode, importRetractionTopic, importRunTopic, isFailure } from '@gamenet/schemas'
import { z } from 'zod'
import { FailureError, UsageError } from '../../config.js'
import type { Disk } from '../../data-directory/disk.js'
import type { Engines } from '../../stores/engines.js'
import { type OperationNeeds, operation, type RunContext } from '../operation.js'
import { requireCaughtUp } from '../status/caught-up.js'

const KNOWN_WITHIN_MS = 60_000
/** Rejected rows that a report can keep: some 15 MB. */
export const REJECTS_MAX = 100_000

export const RATINGS = [
  'time',
  'seconds',
  'milliseconds',
  'score',
  'score-ascending'
] as const satisfies readonly Ratings[]

/** How a file spells its values, where it does not say it by itself. */
export const ImportSpelling = z.object({
  ratings: z.enum(RATINGS).optional(),
  tz: z.string().optional(),
  timeFormat: z.string().optional(),
  delimiter: z.string().length(1).optional()
})
export type ImportSpelling = z.infer<typeof ImportSpelling>

export const ImportRequest = z.object({
  topic: z.string(),
  file: z.string().min(1).max(1024),
  columns: z.record(z.string(), z.string()),
  set: z.record(z.string(), z.string()),
  strict: z.boolean(),
  spelling: ImportSpelling.optional(),
  faultsMax: z.int().min(0).max(REJECTS_MAX).optional()
})
export type ImportRequest = z.infer<typeof ImportRequest>

const ImportInput = z.strictObject({
  request: z.preprocess((given) => (typeof given === 'string' ? JSON.parse(given) : given), ImportRequest),
  content: z.custom<AsyncIterable<Uint8Array>>()
})
type ImportInput = z.infer<typeof ImportInput>

/** Publishes a file. The run ends with its client; the same request resumes it. */
export const importFile = operation({
  name: 'import',
  route: 'POST /import',
  input: ImportInput,
  inputRule: 'The query parameter request must be the JSON of an import request',
  body: { as: 'stream', field: 'content' },
  progress: ImportProgress,
  result: ImportReport,
  needsLog: true,
  run: publishFile
})

async function publishFile(
  needs: OperationNeeds,
  { request, content }: ImportInput,
  { onProgress, signal }: RunContext<ImportProgress>
): Promise<ImportReport> {
  const { topic, file, columns, set, strict, spelling, faultsMax } = request
  const { appendPacked, importInWorker } = await import('@gamenet/ingest')
  let importing: string | undefined
  const { disk, log } = needs.engines
  const requireFree = () => disk.requireSpace(0, `The import of ${file}`)
  try {
    await requireFree()
    const input = whileSpace(content, disk)
    const result = await importInWorker(
      { topic, input, fileName: file, columns, set, strict, spelling, faultsMax, ...spoolOf(needs.engines) },
      {
        log: {
          append: (name, messages) => requireFree().then(() => log.append(name, messages)),
          appendPacked: (name, packed) => requireFree().then(() => appendPacked(log, name, packed))
        },
        people: needs.people,
        known: async (importId) => {
          const known = await knownImport(needs, importId)
          if (known?.isRetracted !== true) {
            if (importing !== importId && needs.importing.has(importId))
              throw new FailureError(concurrent(file, importId))
            importing = importId
            needs.importing.set(importId, 0)
          }
          return known
        },
        onProgress: (progress) => {
          const { bytesRead, bytesTotal } = progress
          if (importing !== undefined) needs.importing.set(importing, bytesRead / Math.max(1, bytesTotal))
          onProgress(progress)
        },
        signal: AbortSignal.any([needs.stopping, signal])
      }
    )
    return { ...result, published: result.alreadyDone ? 0 : result.published }
  } catch (error) {
    if (signal.aborted && !needs.stopping.aborted)
      throw new FailureError(`The import of ${file} ended with its command; the same command resumes it.`)
    if (isFailure(error, 'import_refused')) throw new UsageError(error.message)
    if (isFailure(error, 'import_cut_off')) throw new FailureError(error.message)
    if (/^(ENOSPC|EDQUOT)$/.test(errorCode(error)))
      throw new FailureError(
        `The disk that stores the upload of ${file} is full; free some space and import again: published events ` +
          `stay, the rest follows.`
      )
    throw error
  } finally {
    if (importing !== undefined) needs.importing.delete(importing)
  }
}

/** Returns the state of an import, once the tables contain all events of imports. */
async function knownImport(needs: OperationNeeds, importId: string): Promise<KnownImport | undefined> {
  const topics = [importRunTopic.name, importRetractionTopic.name]
  await requireCaughtUp(needs, 'It is unknown whether this was imported before', KNOWN_WITHIN_MS, topics)
  const { projections, readImports, storeAt } = await import('@gamenet/projector')
  const [run] = await (await storeAt('reads', needs.engines.store, projections)).do(readImports, importId)
  return run === undefined ? undefined : { ...run, isRetracted: run.retractedMs > 0 }
}

function concurrent(file: string, importId: string): string {
  return (
    `${file} is already being imported as ${importId}: gamenet import list shows when that has ended. This ` +
    `command published nothing.`
  )
}

/** Yields the chunks of an upload, which is stored before it is imported; refuses when the disk is low. */
async function* whileSpace(content: AsyncIterable<Uint8Array>, disk: Disk): AsyncGenerator<Uint8Array> {
  for await (const chunk of content) {
    if (disk.isLow()) await disk.requireSpace(0, 'The upload')
    yield chunk
  }
}

/** Returns the folder for uploads, on the disk of the engines, so that one check of free space covers both. */
function spoolOf({ directory }: Engines): { spoolDirectory?: string } {
  if (directory === undefined) return {}
  const spoolDirectory = directory.part('uploads')
  makeFolder(spoolDirectory)
  return { spoolDirectory }
}
