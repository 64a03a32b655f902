import { RebuildStatus, type Rebuilds } from '@gamenet/projector/rebuild'
import { z } from 'zod'
import { DiskStatus } from '../disk/disk.js'
import type { BackupProgress, BackupReport } from './backups.js'
import type { DeadLetterOperations } from './dead-letters.js'

/*
 * What operators can ask of a service. The same in the process itself (`service.ts`), on the operator port
 * (`operator-app.ts`) and from the command line (`operator-client.ts`).
 */

const Instant = z.string()

/** Longest wait for everything to be readable. */
export const SETTLED_SECONDS_MAX = 86_400

export const SourceStatus = z.object({
  source: z.string(),
  /** 0 where it is scraped when asked alone; null in a process that does not scrape. */
  periodSeconds: z.int().nullable(),
  /** The last run that the tables know, or a later one of the process that is asked. */
  lastRun: z
    .object({ observedAt: Instant, outcome: z.string(), durationMs: z.int(), published: z.int(), reason: z.string() })
    .nullable()
})

/** A partition that stands still, since the log does not have what is to be loaded next. */
export const StallStatus = z.object({
  topic: z.string(),
  epoch: z.int(),
  partition: z.int(),
  /** The first offset that is not loaded. */
  loaded: z.int(),
  /** The oldest offset that the log has. */
  first: z.int(),
  head: z.int(),
  /** When the last event before it was loaded. */
  loadedAt: Instant.nullable(),
  reason: z.string()
})
export type StallStatus = z.infer<typeof StallStatus>

export const Gaps = z.object({
  open: z.array(StallStatus),
  /** Offsets `first` to below `next`, which are missing for good. */
  accepted: z.array(
    z.object({
      topic: z.string(),
      epoch: z.int(),
      partition: z.int(),
      first: z.int(),
      next: z.int(),
      acceptedAt: Instant
    })
  )
})
export type Gaps = z.infer<typeof Gaps>

export const Status = z.object({
  version: z.string(),
  startedAt: Instant,
  engines: z.record(z.string(), z.string()),
  sources: z.array(SourceStatus),
  topics: z.array(
    z.object({
      topic: z.string(),
      epoch: z.int(),
      partition: z.int(),
      head: z.int().nullable(),
      loaded: z.int()
    })
  ),
  /** Messages that could not be read and wait for a decision, by topic; topics without one are absent. */
  parked: z.record(z.string(), z.int()),
  projections: z.array(
    z.object({
      projection: z.string(),
      state: z.string(),
      /** Its table was made by other statements than the program's; null where another process knows. */
      isOutdated: z.boolean().nullable(),
      lagEvents: z.int(),
      reason: z.string().nullable()
    })
  ),
  /** Those that are under way or have tables left; none where another process projects. */
  rebuilds: z.array(RebuildStatus),
  /** Partitions that stand still until an operator decides; the others go on. */
  halts: z.array(StallStatus),
  /** What waits on the disk of this process for a log that is away; null in processes without a spool. */
  spool: z
    .object({
      bytes: z.int(),
      bytesMax: z.int(),
      messages: z.int(),
      oldestAt: Instant.nullable(),
      reason: z.string().nullable()
    })
    .nullable(),
  /** Tables that lost rows with parts that could not be read at a start. */
  lostRows: z.array(
    z.object({ table: z.string(), parts: z.int(), state: z.enum(['repairing', 'left']), reason: z.string() })
  ),
  /** Why loading stands still, or null. */
  trouble: z.string().nullable(),
  disk: DiskStatus,
  /** Work that goes on in the background, such as the demo's history. */
  background: z.array(z.object({ name: z.string(), done: z.int(), total: z.int() }))
})
export type Status = z.infer<typeof Status>

export const ScrapeReport = z.object({
  source: z.string(),
  observedAt: Instant,
  outcome: z.enum(['succeeded', 'partial', 'failed']),
  durationMs: z.int(),
  published: z.int(),
  reason: z.string().optional()
})
export type ScrapeReport = z.infer<typeof ScrapeReport>

export const ScrapeProgress = z.object({
  source: z.string(),
  /** Pages that were read, of how many as far as is known. */
  done: z.int(),
  total: z.int()
})
export type ScrapeProgress = z.infer<typeof ScrapeProgress>

export const ImportRequest = z.object({
  topic: z.string(),
  file: z.string().min(1).max(1024),
  columns: z.record(z.string(), z.string()),
  set: z.record(z.string(), z.string()),
  strict: z.boolean()
})
export type ImportRequest = z.infer<typeof ImportRequest>

export const ImportProgress = z.object({
  /** `reading`: the whole file once, for its identity. `checking`: every row, in a strict import. */
  phase: z.enum(['reading', 'checking', 'publishing']),
  bytesRead: z.int(),
  bytesTotal: z.int(),
  rowsRead: z.int(),
  published: z.int(),
  rejected: z.int()
})
export type ImportProgress = z.infer<typeof ImportProgress>

export const ImportReport = z.object({
  importId: z.string(),
  /** Rows of the file that were dealt with, by this run and those before it. */
  rowsRead: z.int(),
  /** By this run and, of an interrupted import, those before it; 0 when all was imported before. */
  published: z.int(),
  rejected: z.int(),
  /** Rows without a measured value. */
  missing: z.int(),
  /** Rows that an interrupted run of the same import had dealt with. */
  skipped: z.int(),
  /** False when a strict import found faults: then nothing was published. */
  finished: z.boolean(),
  /** This very file was imported before; nothing was published. */
  alreadyDone: z.boolean(),
  /** The first of the rejected rows. */
  faults: z.array(z.object({ line: z.int(), reason: z.string() })).readonly(),
  ignoredColumns: z.array(z.string()).readonly(),
  absentColumns: z.array(z.string()).readonly()
})
export type ImportReport = z.infer<typeof ImportReport>

export const ImportRun = z.object({
  importId: z.string(),
  topic: z.string(),
  file: z.string(),
  /** When it was heard of last. */
  newestAt: Instant,
  rowsRead: z.int(),
  published: z.int(),
  rejected: z.int(),
  finished: z.boolean(),
  /** By the process that was asked. */
  isBeingPublished: z.boolean(),
  /** When it was told to be taken back, or null. */
  retractedAt: Instant.nullable(),
  /** It was, and answers still count some of it. */
  isBeingRetracted: z.boolean()
})
export type ImportRun = z.infer<typeof ImportRun>

export const RetractionProgress = z.object({
  /** `waiting` until all is loaded that the log holds; then the topic's tables are made anew. */
  phase: z.enum(['waiting', 'rebuilding']),
  /** Events, of how many. */
  done: z.int(),
  total: z.int(),
  etaSeconds: z.number().nullable()
})
export type RetractionProgress = z.infer<typeof RetractionProgress>

export const RetractionReport = z.object({
  importId: z.string(),
  topic: z.string(),
  /** Events that it had published. */
  published: z.int(),
  /** It was taken back before; nothing was done. */
  alreadyDone: z.boolean()
})
export type RetractionReport = z.infer<typeof RetractionReport>

export const SettledReport = z.object({
  settled: z.boolean(),
  waitedMs: z.int(),
  /** What still stood behind when the time was up. */
  behind: z.array(z.string())
})
export type SettledReport = z.infer<typeof SettledReport>

export const ForgetProgress = z.object({
  /** `keys` are thrown away, readers of the log are waited for, `tables` are cleaned one by one, then `files`. */
  phase: z.enum(['keys', 'waiting', 'tables', 'files']),
  done: z.int(),
  total: z.int()
})
export type ForgetProgress = z.infer<typeof ForgetProgress>

export const ForgetReport = z.object({
  /** Whether anything was known of the user. */
  wasKnown: z.boolean(),
  /** Whether they are in the ledger now. */
  isEntered: z.boolean(),
  /** Rows that were deleted from the write side. */
  rowsOfWrites: z.int(),
  /** Rows that were deleted from event tables and read tables. */
  rowsOfTables: z.int()
})
export type ForgetReport = z.infer<typeof ForgetReport>

export const Forgetting = z.object({
  /** Of the name, under a salt of this installation; hexadecimal. */
  nameHash: z.string(),
  forgottenAt: Instant,
  /** Null while it is under way. */
  doneAt: Instant.nullable(),
  /** When they came back, as somebody new. */
  returnedAt: Instant.nullable()
})
export type Forgetting = z.infer<typeof Forgetting>

/** What is damaged, what that costs, and the command that repairs it. */
export const Finding = z.object({
  part: z.enum(['log', 'tables', 'writes', 'seals', 'checkpoints']),
  what: z.string(),
  cost: z.string(),
  repair: z.string(),
  /** Whether `--repair` was given and has done what it can. */
  isRepaired: z.boolean()
})
export type Finding = z.infer<typeof Finding>

export const VerifyProgress = z.object({
  phase: z.enum(['log', 'tables', 'writes']),
  bytes: z.int(),
  /** An estimate. */
  bytesTotal: z.int()
})
export type VerifyProgress = z.infer<typeof VerifyProgress>

export const VerifyReport = z.object({
  findings: z.array(Finding),
  bytes: z.int(),
  tookMs: z.int(),
  /** Engines on servers, which check their files themselves. */
  notChecked: z.array(z.string())
})
export type VerifyReport = z.infer<typeof VerifyReport>

export type Operations = {
  status(): Promise<Status>
  /** Resolves when all that the log held at the call can be read, or when the time is up. */
  settled(timeoutMs: number): Promise<SettledReport>
  /**
   * One run of a source now, or of all; joins a run in progress. Throws a `UsageError` for an unknown source.
   * `onProgress` is called for each page of the sources that read many.
   */
  scrape(source: string, onProgress?: (progress: ScrapeProgress) => void): Promise<ScrapeReport[]>
  /** Publishes a file, until `signal` aborts: who asks for the same again then goes on where it stopped. */
  import(
    request: ImportRequest,
    content: AsyncIterable<Uint8Array>,
    onProgress: (progress: ImportProgress) => void,
    signal?: AbortSignal
  ): Promise<ImportReport>
  /**
   * Forgets a user for good; one of whom nothing is known only `anyway`. One that is cut off is ended when a service
   * starts. Throws a `UsageError` for no name.
   */
  forget(
    username: string,
    options: { readonly anyway: boolean },
    onProgress: (progress: ForgetProgress) => void
  ): Promise<ForgetReport>
  /** Copies all that an embedded service keeps into a directory that is new or empty, given by its absolute path. */
  backup(directory: string, onProgress: (progress: BackupProgress) => void): Promise<BackupReport>
  /** Reads everything that is kept, by checksums. Repairs of a stopped service alone. */
  verify(options: { readonly repair: boolean }, onProgress: (progress: VerifyProgress) => void): Promise<VerifyReport>
  /** Every import that the tables know, the newest first. */
  imports(): Promise<ImportRun[]>
  /** Takes an import back. One that is cut off is ended when a service starts. Throws a `UsageError` for an unknown one. */
  retractImport(importId: string, onProgress: (progress: RetractionProgress) => void): Promise<RetractionReport>
  /** Of projections; throw a `UsageError` or a `FailureError` where it cannot be done. */
  readonly rebuilds: Rebuilds
  /** Messages that could not be read. */
  readonly deadLetters: DeadLetterOperations
  /** Who was forgotten, as hashes. */
  forgettings(): Promise<Forgetting[]>
  /** Partitions that stand still, and gaps of the log that were accepted. */
  gaps(): Promise<Gaps>
  /** Goes on behind what the log has lost of a topic. Throws a `UsageError` for no topic, a `FailureError` for no gap. */
  acceptGap(topic: string): Promise<StallStatus[]>
  /** Brings the engines to the newest schema; the names of the migrations that were applied. */
  migrate(): Promise<string[]>
}
