import { z } from 'zod'

export const ErasureProgress = z.object({
  /** Keys are destroyed, readers of the log are waited for, tables are cleaned one by one, then files. */
  phase: z.enum(['keys', 'waiting', 'tables', 'files']),
  done: z.int(),
  total: z.int()
})
export type ErasureProgress = z.infer<typeof ErasureProgress>

export const ErasureReport = z.object({
  /** Whether anything was stored about the user. */
  wasKnown: z.boolean(),
  /** Whether they are in the ledger now. */
  isEntered: z.boolean(),
  /** Rows that were deleted from the write side. */
  rowsOfWrites: z.int(),
  /** Rows that were deleted from event tables and read tables. */
  rowsOfTables: z.int()
})
export type ErasureReport = z.infer<typeof ErasureReport>
