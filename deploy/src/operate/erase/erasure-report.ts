import { z } from 'zod'

export const ErasureProgress = z.object({
  /**
   * `keys` destroys keys, `waiting` waits for readers of the log, `tables` deletes rows table by table, `files` removes
   * files.
   */
  phase: z.enum(['keys', 'waiting', 'tables', 'files']),
  done: z.int(),
  total: z.int()
})
export type ErasureProgress = z.infer<typeof ErasureProgress>

export const ErasureReport = z.object({
  /** Whether anything was stored about the user. */
  wasKnown: z.boolean(),
  /** Whether the user is in the ledger now. */
  isEntered: z.boolean(),
  /** Deleted rows of the write side. */
  rowsOfWrites: z.int(),
  /** Deleted rows of event tables and read tables. */
  rowsOfTables: z.int()
})
export type ErasureReport = z.infer<typeof ErasureReport>
