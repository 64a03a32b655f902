import { z } from 'zod'
import { Instant } from '../values/instant.js'
import { topic } from '../wire/topic.js'
import { ImportAdvanced } from './import-run.js'

/** An import was undone: its events no longer count, and the tables derived from them are rebuilt without them. */
export const ImportRetracted = z.object({
  importId: ImportAdvanced.shape.importId,
  /** The topic that the import published to. */
  topic: ImportAdvanced.shape.topic,
  observedAt: Instant
})
export type ImportRetracted = z.infer<typeof ImportRetracted>

export const importRetractionTopic = topic({
  name: 'import-retraction',
  event: ImportRetracted,
  key: (event) => event.importId,
  instant: (event) => event.observedAt
})
