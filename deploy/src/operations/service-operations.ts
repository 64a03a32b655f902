import { mkdir } from 'node:fs/promises'
import {
  ImportCutOff,
  ImportRefused,
  type Ingest,
  importInWorker,
  type KnownImport,
  type People
} from '@gamenet/ingest'
import { migrate, type Projector, readProgress, type Target, waitForProgress } from '@gamenet/projector'
import {
  errorCode,
  errorMessage,
  importRetractionTopic,
  importRunTopic,
  millisecondsOf,
  SCRAPE_SOURCES,
  type ScrapeRan,
  type ScrapeSource,
  shownInstant,
  Username
} from '@gamenet/schemas'
import { z } from 'zod'
import type { Demo } from '../../demo/demo.js'
import { FailureError, UsageError } from '../config.js'
import type { Disk } from '../disk/disk.js'
import { eraseUser, finishErasures } from '../erasure/erase-user.js'
import { readLedger } from '../erasure/ledger.js'
import { writeLedgerCopy } from '../erasure/reapply-erasures.js'
import type {
  ForgetProgress,
  ForgetReport,
  ImportProgress,
  ImportReport,
  ImportRequest,
  Operations,
  ScrapeProgress,
  ScrapeReport,
  SettledReport,
  Status
} from '../operator/operations.js'
import type { Engines } from '../wiring/engines.js'
import type { LostRows } from '../wiring/lost-rows.js'
import type { SpoolingLog } from '../wiring/spooling-log.js'
import { abortedAfter } from '../wiring/time-limit.js'
import { VERSION } from '../wiring/version.js'
import { backupOperation } from './backup-operation.js'
import { deadLetterOperations } from './dead-letter-operations.js'
import { gapOperations, stallStatus } from './gap-operations.js'
import { finishRetractions, importRuns, type Retracting, retractImport } from './import-retraction.js'
import { leftOf, rebuildOperations, requireRepaired } from './rebuild-operations.js'
import { verify } from './verify.js'

type Needs = {
  readonly engines: Engines
  /** False in a process that answers alone, which was not told where the log is: what it opened is nobody's. */
  readonly hasLog: boolean
  readonly projector: Projector | undefined
  /** Resolves when the steps that write rows and have begun by now, of all processes, have ended. */
  readonly stepsEnded: () => Promise<void>
  readonly inStep: Projector['inStep']
  readonly ingest: Ingest | undefined
  readonly people: People
  readonly demo: Demo | undefined
  readonly spooling: SpoolingLog | undefined
  readonly lostRows: Pick<LostRows, 'status' | 'repairing'>
  /** Whether no process reads the log meanwhile: a stopped service whose engines a command has opened. */
  readonly isUnread: boolean
  /** Learns what has changed in the tables, for the answers of this process. */
  readonly onChange: () => Promise<unknown>
  /** Migrations that opening the engines has applied, told to the first who asks for migrations. */
  readonly applied: readonly string[]
  /** Aborts when the service stops. */
  readonly signal: AbortSignal
  /** Ids of the imports that are being published here. */
  readonly importing: Set<string>
}

/** Ending what an earlier process left undone; each gives how many there were. */
export type Unfinished = {
  forgettings(): Promise<number>
  retractions(): Promise<number>
}

/** The operations, and how what is under way of them is ended before the parts that it needs are closed. */
export type ServiceOperations = {
  readonly operations: Operations
  /** Of no use to others, so these are no operations. */
  readonly cutOff: Unfinished
  stop(): Promise<void>
}

/** What operators may ask, answered by this process's own parts and, for what other processes do, by the tables. */
export function serviceOperations(needs: Omit<Needs, 'signal' | 'importing'>): ServiceOperations {
  const startedAt = shownInstant(Date.now())
  const stopping = new AbortController()
  const applied = [...needs.applied]
  const underWay = new Set<Promise<unknown>>()
  const all = { ...needs, signal: stopping.signal, importing: new Set<string>() }
  const backup = backupOperation(needs.engines, stopping.signal)
  const tracked = async <Answer>(work: Promise<Answer>): Promise<Answer> => {
    underWay.add(work)
    try {
      return await work
    } finally {
      underWay.delete(work)
    }
  }
  const trackedWithLog = async <Answer>(work: () => Promise<Answer>): Promise<Answer> => {
    if (!needs.hasLog) {
      throw new UsageError(
        'This process does not know the log (KAFKA_BROKERS); ask one of gamenet ingest or projector.'
      )
    }
    return await tracked(work())
  }
  const deadLetters = deadLetterOperations(all)
  return {
    operations: {
      status: async () => ({ ...(await statusOf(all)), startedAt }),
      settled: (timeoutMs) => trackedWithLog(() => settled(all, timeoutMs)),
      scrape: async (source, onProgress) => await scrape(needs.ingest, source, onProgress),
      forget: (username, options, onProgress) => trackedWithLog(() => forgetUser(all, username, options, onProgress)),
      backup: (directory, onProgress) => tracked(backup(directory, onProgress)),
      forgettings: async () =>
        (await readLedger(await needs.engines.writes())).map(({ nameHash, forgottenAt, doneAt, returnedAt }) => ({
          nameHash,
          forgottenAt: forgottenAt.toISOString(),
          doneAt: doneAt?.toISOString() ?? null,
          returnedAt: returnedAt?.toISOString() ?? null
        })),
      import: (request, content, onProgress, isLeft) =>
        trackedWithLog(() => runImport(all, request, content, { onProgress, isLeft })),
      verify: (options, onProgress) => tracked(verify(needs.engines, options, onProgress, stopping.signal)),
      imports: () => importRuns({ engines: needs.engines, running: all.importing }),
      retractImport: (importId, onProgress) =>
        trackedWithLog(async () => {
          requireRepaired(needs.lostRows.repairing())
          return await retractImport(retracting(all), importId, onProgress)
        }),
      rebuilds: rebuildOperations(needs.projector, needs.engines.disk, needs.lostRows.repairing),
      ...gapOperations(needs.engines, trackedWithLog),
      deadLetters: { ...deadLetters, retry: (choice, onProgress) => tracked(deadLetters.retry(choice, onProgress)) },
      migrate: async () => [
        ...applied.splice(0),
        ...(await migrate(needs.engines.clickhouse.control)),
        ...(await needs.engines.migrateWrites())
      ]
    },
    cutOff: {
      forgettings: () =>
        tracked(
          needs.engines.disk
            .whenRoom(all.signal)
            .then(() => forgetNeeds(all, () => undefined))
            .then(finishErasures)
        ),
      retractions: () => tracked(finishRetractions(retracting(all)))
    },
    stop: async () => {
      needs.spooling?.hasten()
      stopping.abort(
        new FailureError('The service is stopping; ask again when it is back: an import goes on where it stopped.')
      )
      await Promise.allSettled(underWay)
    }
  }
}

function retracting(needs: Needs): Retracting {
  const { engines, projector, importing: running } = needs
  const everything = async (topics?: readonly string[]) => {
    const targets = topics === undefined ? undefined : await headsOf(needs, topics)
    const { settled: isSettled, behind } = await settled(needs, RETRACT_SETTLED_MS, targets)
    if (!isSettled)
      throw new FailureError(`The log is not read to its end; take the import back again later: ${behind.join('; ')}.`)
  }
  return { engines, projector, running, settled: everything }
}

const RETRACT_SETTLED_MS = 600_000
const FORGET_SETTLED_MS = 600_000

async function forgetUser(
  needs: Needs,
  username: string,
  { anyway }: { readonly anyway: boolean },
  onProgress: (progress: ForgetProgress) => void
): Promise<ForgetReport> {
  const name = Username.safeParse(username)
  if (!name.success) throw new UsageError(`This is no username: ${name.error.issues[0]?.message}.`)
  const asked = await forgetNeeds(needs, onProgress)
  const report = await eraseUser(asked, name.data, anyway)
  await writeLedgerCopy(needs.engines)
  return report
}

async function forgetNeeds(
  needs: Needs,
  onProgress: (progress: ForgetProgress) => void
): Promise<Parameters<typeof eraseUser>[0]> {
  const { engines, isUnread, onChange, signal, stepsEnded } = needs
  const settledTopics = async (names: readonly string[]) => {
    // What comes next is deleting rows, which waits for ever while nothing is merged.
    await engines.disk.requireRoom(0, 'Deleting the rows of a user')
    // With the keys gone, what nobody has read yet can be opened by nobody.
    if (isUnread) return
    const targets = await headsOf(needs, names)
    const { settled: isSettled, behind } = await settled(needs, FORGET_SETTLED_MS, targets)
    if (!isSettled)
      throw new FailureError(
        `The log is not read to its end, it is tried again at the next start: ${behind.join('; ')}.`
      )
  }
  const tables = engines.clickhouse.control
  const keysKept = isUnread ? { keysKeptMs: 0 } : {}
  const writes = await engines.writes()
  return { writes, tables, settled: settledTopics, stepsEnded, onChange, onProgress, signal, ...keysKept }
}

async function scrape(
  ingest: Ingest | undefined,
  source: string,
  onProgress: ((progress: ScrapeProgress) => void) | undefined
): Promise<ScrapeReport[]> {
  if (ingest === undefined) {
    throw new UsageError('This process does not scrape; ask one that does (gamenet start or ingest).')
  }
  if (source !== 'all' && !isSource(source)) {
    throw new UsageError(
      `There is no source ${JSON.stringify(source)}; there are ${SCRAPE_SOURCES.join(', ')} and all.`
    )
  }
  return await ingest.runNow(source, onProgress)
}

function isSource(name: string): name is ScrapeSource {
  return SCRAPE_SOURCES.some((source) => source === name)
}

/** How far the log reaches in these topics. */
async function headsOf({ engines }: Needs, names: readonly string[]): Promise<Target[]> {
  const ofTopic = async (topic: string) =>
    (await engines.log.extents(topic)).filter(({ first, next }) => first < next).map((extent) => ({ topic, ...extent }))
  return (await Promise.all(names.map(ofTopic))).flat()
}

/** A projector knows what stands still and why; any other process asks the tables. */
async function settled(
  { engines, projector, onChange, signal: stopping }: Needs,
  timeoutMs: number,
  targets?: readonly Target[]
): Promise<SettledReport> {
  const begun = performance.now()
  const signal = abortedAfter(timeoutMs, stopping)
  const behind =
    projector === undefined
      ? await waitForProgress({ tables: engines.clickhouse.control, log: engines.log }, signal, targets)
      : await projector
          .settled({ signal, standstillMs: timeoutMs, ...(targets === undefined ? {} : { targets }) })
          .then(
            () => [],
            (error: unknown) => [errorMessage(error)]
          )
  // What this process answers is to know of it too; where it cannot ask, it asks again by itself.
  if (behind.length === 0) await onChange().catch(() => undefined)
  return { settled: behind.length === 0, waitedMs: Math.round(performance.now() - begun), behind }
}

async function progressOf({
  engines,
  projector
}: Needs): Promise<Pick<Status, 'topics' | 'parked' | 'projections' | 'halts' | 'trouble'>> {
  if (projector === undefined) {
    const progress = await readProgress({ tables: engines.clickhouse.control, log: engines.log })
    return {
      topics: progress.topics.flatMap(({ topic, partitions }) => partitions.map((each) => ({ topic, ...each }))),
      parked: Object.fromEntries(progress.deadLetters),
      projections: progress.projections.map(({ projection, lag }) => ({
        projection,
        state: 'elsewhere',
        isOutdated: null,
        lagEvents: lag,
        reason: null
      })),
      halts: progress.stalled.map(stallStatus),
      trouble: null
    }
  }
  const status = await projector.status()
  return {
    topics: status.topics.flatMap(({ topic, partitions }) => partitions.map((each) => ({ topic, ...each }))),
    parked: Object.fromEntries(
      status.topics.filter(({ deadLetters }) => deadLetters > 0).map(({ topic, deadLetters }) => [topic, deadLetters])
    ),
    projections: status.projections.map(({ projection, state, isOutdated, lag, reason }) => ({
      projection,
      state,
      isOutdated,
      lagEvents: lag,
      reason
    })),
    halts: status.stalled.map(stallStatus),
    trouble: status.loaderTrouble
  }
}

async function statusOf(needs: Needs): Promise<Omit<Status, 'startedAt'>> {
  const { engines, ingest, demo } = needs
  const [known, progress, rebuilds, disk, lostRows] = await Promise.all([
    newestRuns(engines),
    progressOf(needs),
    leftOf(needs.projector),
    engines.disk.status(),
    needs.lostRows.status()
  ])
  return {
    version: VERSION,
    engines: { ...engines.names },
    sources: SCRAPE_SOURCES.map((source) => {
      const own = ingest?.status().find((each) => each.source === source)
      return {
        source,
        periodSeconds: ingest === undefined ? null : (own?.periodSeconds ?? 0),
        lastRun: newerRun(own?.lastRun, known.get(source))
      }
    }),
    ...progress,
    spool: needs.spooling?.status() ?? null,
    lostRows,
    rebuilds,
    disk,
    background: [demo?.progress() ?? []].flat().filter((work) => work.total > 0)
  }
}

type LastRun = NonNullable<Status['sources'][number]['lastRun']>

/** What the process itself ran the tables may not know yet: its log may be away. */
function newerRun(own: ScrapeRan | null | undefined, known: LastRun | undefined): LastRun | null {
  const ms = (run: { readonly observedAt: string }) => millisecondsOf(run.observedAt)
  if (own === undefined || own === null || (known !== undefined && ms(known) >= ms(own))) return known ?? null
  const { source: _source, reason = '', ...run } = own
  return { ...run, reason }
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
async function newestRuns({ clickhouse }: Engines): Promise<Map<string, LastRun>> {
  const rows = await clickhouse.control.rows(`
    SELECT s.source AS source, toUnixTimestamp64Milli(s.ts) AS observedAtMs, s.outcome AS outcome,
           s.duration_ms AS durationMs, s.published AS published, s.reason AS reason
    FROM scrape AS s FINAL ORDER BY s.source, s.ts DESC LIMIT 1 BY s.source`)
  return new Map(
    rows.map((row) => {
      const { source, observedAtMs, ...run } = Run.parse(row)
      return [source, { observedAt: shownInstant(observedAtMs), ...run }]
    })
  )
}

const Known = z.object({
  rowsRead: z.coerce.number(),
  published: z.coerce.number(),
  rejected: z.coerce.number(),
  finished: z.boolean(),
  isRetracted: z.coerce.boolean()
})

const KNOWN_WITHIN_MS = 60_000

/** How far an import has come, once everything that the log says of imports is in the tables, whatever else is not. */
async function knownImport(needs: Needs, importId: string): Promise<KnownImport | undefined> {
  const targets = await headsOf(needs, [importRunTopic.name, importRetractionTopic.name])
  const { settled: isSettled, behind } = await settled(needs, KNOWN_WITHIN_MS, targets)
  if (!isSettled) throw new FailureError(`Whether this was imported before cannot be known: ${behind.join('; ')}.`)
  const [row] = await needs.engines.clickhouse.control.rows(
    `SELECT i.rows_read AS rowsRead, i.published AS published, i.rejected AS rejected, i.finished AS finished,
       i.import_id IN (SELECT r.import_id FROM import_retraction AS r) AS isRetracted
     FROM import_run AS i FINAL WHERE i.import_id = {importId: String}`,
    { importId }
  )
  return row === undefined ? undefined : Known.parse(row)
}

async function runImport(
  needs: Needs,
  request: ImportRequest,
  content: AsyncIterable<Uint8Array>,
  {
    onProgress,
    isLeft
  }: { readonly onProgress: (progress: ImportProgress) => void; readonly isLeft?: AbortSignal | undefined }
): Promise<ImportReport> {
  const { topic, file, columns, set, strict } = request
  let importing: string | undefined
  const { disk } = needs.engines
  const room = () => disk.requireRoom(0, `The import of ${file}`)
  try {
    await room()
    const input = withRoom(content, disk)
    const result = await importInWorker(
      { topic, input, fileName: file, columns, set, strict, ...(await spoolOf(needs.engines)) },
      {
        log: { append: (name, messages) => room().then(() => needs.engines.log.append(name, messages)) },
        people: needs.people,
        known: async (importId) => {
          const known = await knownImport(needs, importId)
          if (known?.isRetracted !== true) {
            if (importing !== importId && needs.importing.has(importId))
              throw new FailureError(underWay(file, importId))
            importing = importId
            needs.importing.add(importId)
          }
          return known
        },
        onProgress,
        signal: isLeft === undefined ? needs.signal : AbortSignal.any([needs.signal, isLeft])
      }
    )
    return { ...result, published: result.alreadyDone ? 0 : result.published }
  } catch (error) {
    if (isLeft?.aborted === true && !needs.signal.aborted)
      throw new FailureError(`The import of ${file} ended with its command; the same command goes on with it.`)
    if (error instanceof ImportRefused) throw new UsageError(error.message)
    if (error instanceof ImportCutOff) throw new FailureError(error.message)
    if (isDiskFull(error)) {
      throw new FailureError(
        `The disk that keeps the upload of ${file} is full; make room and import again: what was published stays, the rest follows.`
      )
    }
    throw error
  } finally {
    if (importing !== undefined) needs.importing.delete(importing)
  }
}

function underWay(file: string, importId: string): string {
  return `${file} is being imported already, as ${importId}: gamenet import list tells when that has ended. Nothing was published by this command.`
}

/** An upload is kept before it is imported, so that it ends when the disk gets low. */
async function* withRoom(content: AsyncIterable<Uint8Array>, disk: Disk): AsyncGenerator<Uint8Array> {
  for await (const chunk of content) {
    if (disk.isLow()) await disk.requireRoom(0, 'The upload')
    yield chunk
  }
}

function isDiskFull(error: unknown): boolean {
  return errorCode(error) === 'ENOSPC'
}

/** Uploads are kept on the disk that the engines use, so that one look at free space speaks for all. */
async function spoolOf({ directory }: Engines): Promise<{ spoolDirectory?: string }> {
  if (directory === undefined) return {}
  const spoolDirectory = directory.part('uploads')
  await mkdir(spoolDirectory, { recursive: true })
  return { spoolDirectory }
}
