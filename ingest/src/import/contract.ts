import { z } from 'zod'

/** Progress of a running import. Bytes are bytes of the file on disk. */
export const ImportProgress = z.object({
  /**
   * `reading`: hashes the whole file. `checking`: reads every row before the first is published, where that is needed.
   */
  phase: z.enum(['reading', 'checking', 'publishing']),
  bytesRead: z.int(),
  bytesTotal: z.int(),
  rowsRead: z.int(),
  published: z.int(),
  rejected: z.int()
})
export type ImportProgress = z.infer<typeof ImportProgress>

/** What an import did, for operators. */
export const ImportReport = z.object({
  importId: z.string(),
  /** Rows that this run and earlier ones processed, without the header. */
  rowsRead: z.int(),
  /** Rows whose events are in the log. Each row of a combined event counts. For operators 0 if `alreadyDone`. */
  published: z.int(),
  rejected: z.int(),
  /** Rows without a measured value. */
  missing: z.int(),
  /** Rows that an earlier run had processed. */
  skipped: z.int(),
  /** False when a strict import found faults; nothing was published then. */
  finished: z.boolean(),
  /** An earlier run had finished this import, so this run published nothing. */
  alreadyDone: z.boolean(),
  /** The first faults of this run; `rejected` counts all. */
  faults: z.array(z.object({ line: z.int(), reason: z.string() })).readonly(),
  /** Columns of the file without a field. */
  ignoredColumns: z.array(z.string()).readonly(),
  /** Mapped columns that are missing in the first rows of a JSON file. */
  absentColumns: z.array(z.string()).readonly(),
  /** Sentences about what the numbers do not tell. */
  notes: z.array(z.string()).readonly()
})
export type ImportReport = z.infer<typeof ImportReport>
