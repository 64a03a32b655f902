import { z } from 'zod'

export const BackupProgress = z.object({
  /** In this order; `flushing` writes the files to the disk. */
  phase: z.enum(['journals', 'tables', 'writes', 'log', 'flushing']),
  bytes: z.int(),
  /** An estimate until the end. */
  bytesTotal: z.int()
})
export type BackupProgress = z.infer<typeof BackupProgress>

export const BackupReport = z.object({
  directory: z.string(),
  /** Everything acknowledged before this instant is in the backup. */
  createdAt: z.string(),
  files: z.int(),
  bytes: z.int(),
  tookMs: z.int()
})
export type BackupReport = z.infer<typeof BackupReport>
