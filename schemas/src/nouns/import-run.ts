import { z } from 'zod'
import { Instant } from '../values/instant.js'
import { topic } from '../wire/topic.js'

/**
 * The progress of one import. `importId` is derived from bytes, topic and mapping, so that a repeated import is
 * recognized and an interrupted one continues after its last row.
 */
export const ImportAdvanced = z.object({
  importId: z.string().regex(/^[0-9a-f]{32}$/),
  observedAt: Instant,
  topic: z.string().regex(/^[a-z][a-z-]{0,63}$/),
  /** The file's name as the user gave it, `-` for standard input. */
  file: z.string().min(1).max(1024),
  /** Rows of the file that were processed: published, rejected or without a sample. */
  rowsRead: z.int().nonnegative(),
  published: z.int().nonnegative(),
  rejected: z.int().nonnegative(),
  finished: z.boolean()
})
export type ImportAdvanced = z.infer<typeof ImportAdvanced>

export const importRunTopic = topic({
  name: 'import-run',
  event: ImportAdvanced,
  key: (event) => event.importId,
  instant: (event) => event.observedAt
})
