import { ImportCutOff, ImportRefused, type Ingest, importInWorker, type KnownImport } from '@gamenet/ingest'
import { migrate, type Projector } from '@gamenet/projector'
import { instantOf, SCRAPE_SOURCES, type ScrapeSource } from '@gamenet/schemas'
import { z } from 'zod'
import { FailureError, UsageError } from '../config.js'
import type {
  ImportProgress,
  ImportReport,
  ImportRequest,
  Operations,
  SettledReport,
  Status
} from '../operator/operations.js'
import type { Demo } from './demo.js'
import type { Engines } from './engines.js'
import { VERSION } from './version.js'

type Needs = {
  readonly engines: Engines
  readonly projector: Projector | undefined
  readonly ingest: Ingest | undefined
  readonly demo: Demo | undefined
}

/** What operators may ask, answered by this process's own parts and, for what other processes do, by the tables. */
export function serviceOperations(needs: Needs): Operations {
  const { engines, projector, ingest } = needs
  const startedAt = instantOf(Date.now())
  return {
    status: async () => ({ ...(await statusOf(needs)), startedAt }),
    settled: async (timeoutMs) => settled(projector, timeoutMs),
    scrape: (source) => {
      if (ingest === undefined)
        throw new UsageError('This process does not scrape; ask one that does (gamenet start or ingest).')
      if (source !== 'all' && !isSource(source)) {
        throw new UsageError(
          `There is no source ${JSON.stringify(source)}; there are ${SCRAPE_SOURCES.join(', ')} and all.`
        )
      }
      return ingest.runNow(source)
    },
    import: (request, content, onProgress) => runImport(needs, request, content, onProgress),
    migrate: () => migrate(engines.clickhouse.control)
  }
}

function isSource(name: string): name is ScrapeSource {
  return SCRAPE_SOURCES.some((source) => source === name)
}

async function settled(projector: Projector | undefined, timeoutMs: number): Promise<SettledReport> {
  if (projector === undefined)
    throw new UsageError('This process does not load the log; ask one that does (gamenet start or projector).')
  const begun = performance.now()
  const waitedMs = () => Math.round(performance.now() - begun)
  try {
    await projector.settled({ signal: AbortSignal.timeout(Math.max(1, timeoutMs)), standstillMs: timeoutMs })
    return { settled: true, waitedMs: waitedMs(), behind: [] }
  } catch (error) {
    return { settled: false, waitedMs: waitedMs(), behind: [error instanceof Error ? error.message : String(error)] }
  }
}

async function statusOf({ engines, projector, ingest, demo }: Needs): Promise<Omit<Status, 'startedAt'>> {
  const [runs, progress] = await Promise.all([newestRuns(engines), projector?.status()])
  return {
    version: VERSION,
    engines: { ...engines.names },
    sources: SCRAPE_SOURCES.map((source) => ({
      source,
      periodSeconds: ingest?.status().find((each) => each.source === source)?.periodSeconds ?? 0,
      lastRun: runs.get(source) ?? null
    })),
    topics: (progress?.topics ?? []).flatMap(({ topic, partitions, parked }) =>
      partitions.map(({ epoch, partition, head, loaded }) => ({ topic, epoch, partition, head, loaded, parked }))
    ),
    projections: (progress?.projections ?? []).map(({ projection, state, lag, reason }) => ({
      projection,
      state,
      lagEvents: lag,
      reason
    })),
    trouble: progress?.loaderTrouble ?? null,
    background: [demo?.progress() ?? []].flat().filter((work) => work.total > 0)
  }
}

const Run = z.object({
  source: z.string(),
  observedAtMs: z.coerce.number(),
  outcome: z.string(),
  durationMs: z.int(),
  published: z.int(),
  reason: z.string()
})

/** The last run of every source that the tables know, whoever ran it. */
async function newestRuns({
  clickhouse
}: Engines): Promise<Map<string, NonNullable<Status['sources'][number]['lastRun']>>> {
  const rows = await clickhouse.control.rows(`
    SELECT s.source AS source, toUnixTimestamp64Milli(s.ts) AS observedAtMs, s.outcome AS outcome,
           s.duration_ms AS durationMs, s.published AS published, s.reason AS reason
    FROM scrape AS s FINAL ORDER BY s.source, s.ts DESC LIMIT 1 BY s.source`)
  return new Map(
    rows.map((row) => {
      const { source, observedAtMs, ...run } = Run.parse(row)
      return [source, { observedAt: instantOf(observedAtMs), ...run }]
    })
  )
}

const Known = z.object({
  rowsRead: z.coerce.number(),
  published: z.coerce.number(),
  rejected: z.coerce.number(),
  finished: z.boolean()
})

/** How far an import has come, once everything that the log says of imports is in the tables. */
async function knownImport({ engines, projector }: Needs, importId: string): Promise<KnownImport | undefined> {
  await projector?.settled()
  const [row] = await engines.clickhouse.control.rows(
    `SELECT i.rows_read AS rowsRead, i.published AS published, i.rejected AS rejected, i.finished AS finished
     FROM import_run AS i FINAL WHERE i.import_id = {importId: String}`,
    { importId }
  )
  return row === undefined ? undefined : Known.parse(row)
}

async function runImport(
  needs: Needs,
  request: ImportRequest,
  content: AsyncIterable<Uint8Array>,
  onProgress: (progress: ImportProgress) => void
): Promise<ImportReport> {
  const { topic, file, columns, set, strict } = request
  try {
    return await importInWorker(
      { topic, input: content, fileName: file, columns, set, strict },
      { log: needs.engines.log, known: (importId) => knownImport(needs, importId), onProgress }
    )
  } catch (error) {
    if (error instanceof ImportRefused) throw new UsageError(error.message)
    if (error instanceof ImportCutOff) throw new FailureError(error.message)
    throw error
  }
}
