import { z } from 'zod'
import { Instant } from '../operation.js'

export const ImportRun = z.object({
  importId: z.string(),
  topic: z.string(),
  file: z.string(),
  /** Instant of its newest event. */
  newestAt: Instant,
  rowsRead: z.int(),
  published: z.int(),
  rejected: z.int(),
  finished: z.boolean(),
  /** Whether this process is publishing it. */
  isBeingPublished: z.boolean(),
  /** When its undo was requested, or null. */
  retractedAt: Instant.nullable(),
  /** Its undo was requested, and answers still count some of its events. */
  isBeingRetracted: z.boolean()
})
export type ImportRun = z.infer<typeof ImportRun>

export const ImportUndoProgress = z.object({
  /** `waiting`: until the tables have caught up with the log. `rebuilding`: the topic's tables. */
  phase: z.enum(['waiting', 'rebuilding']),
  /** Events. */
  done: z.int(),
  total: z.int(),
  etaSeconds: z.number().nullable()
})
export type ImportUndoProgress = z.infer<typeof ImportUndoProgress>

export const ImportUndoReport = z.object({
  importId: z.string(),
  topic: z.string(),
  /** Events that the import had published. */
  published: z.int(),
  /** It was undone before; nothing was changed. */
  alreadyDone: z.boolean()
})
export type ImportUndoReport = z.infer<typeof ImportUndoReport>
