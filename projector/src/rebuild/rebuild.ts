import { z } from 'zod'

/*
 * rebuild     filling fresh tables by the statements that the live ones were filled by, while these serve
 * unit        the projection that was asked for and all that read its tables: rebuilt and swapped together
 * generation  `<table>__<id>`: what a rebuild fills; after the swap the former generation is kept, until it is dropped
 * fill        over everything that is loaded; then catch-up, never ahead of the live tables
 */

/**
 * `filling` → `filled` → (verified: see `verification`) → `swapped` → `rolled-back`. `paused` and `failed` go on by `resume`.
 * `swapping` and `rolling-back` are passed through, and are completed after a crash. `cancelled` and `dropped` have no tables.
 */
export const RebuildState = z.enum([
  'filling',
  'paused',
  'failed',
  'filled',
  'swapping',
  'swapped',
  'rolling-back',
  'rolled-back',
  'cancelled',
  'dropped'
])
export type RebuildState = z.infer<typeof RebuildState>

const Instant = z.string()

export const RebuildProgress = z.object({
  /** The projection that is filled now; empty when none is. */
  projection: z.string(),
  /** Events taken, summed over the unit's projections, of how many. */
  done: z.int(),
  total: z.int(),
  /** How much of the work is done, from 0 to 1: events by what they cost. */
  share: z.number(),
  /** Over the last minute; null before the first step. */
  eventsPerSecond: z.number().nullable(),
  /** What is left, by what each projection was measured to cost; null while nothing was measured. */
  etaSeconds: z.number().nullable()
})
export type RebuildProgress = z.infer<typeof RebuildProgress>

export const Verification = z.object({
  verifiedAt: Instant,
  isEqual: z.boolean(),
  /** Rows that differ, all of them. */
  differences: z.int()
})
export type Verification = z.infer<typeof Verification>

export const RebuildStatus = z.object({
  id: z.int(),
  projection: z.string(),
  unit: z.array(z.string()).readonly(),
  /** The tables that answers do not read: its own, after a swap the former ones; by the name in statements. */
  tables: z.record(z.string(), z.string()),
  state: RebuildState,
  /** Why it failed, else null. */
  reason: z.string().nullable(),
  /** An instant or an offset; null when it goes to the end. */
  until: z.string().nullable(),
  isFromLog: z.boolean(),
  /** The import that it takes back, else null. */
  retracts: z.string().nullable(),
  startedAt: Instant,
  changedAt: Instant,
  progress: RebuildProgress,
  verification: Verification.nullable()
})
export type RebuildStatus = z.infer<typeof RebuildStatus>

export const RebuildPlan = z.object({
  projection: z.string(),
  /** The event table that is loaded again from the log before; null where the one that serves is read. */
  fromLog: z
    .object({
      topic: z.string(),
      writes: z.object({ table: z.string(), rows: z.int(), bytes: z.int() }),
      events: z.int(),
      /** By what loading usually takes. */
      seconds: z.number()
    })
    .nullable(),
  /** In the order in which they are filled: the projection, then what depends on it. */
  unit: z.array(
    z.object({
      projection: z.string(),
      /** Tables that it reads. */
      reads: z.array(z.string()),
      writes: z.array(z.object({ table: z.string(), rows: z.int(), bytes: z.int() })),
      events: z.int(),
      /** By a sample that was measured just now; null where there is nothing to sample. */
      seconds: z.number().nullable()
    })
  ),
  /** Those of the load from the log, too. */
  events: z.int(),
  /** Bytes that the fresh tables will take beside the old ones, with room for merging. */
  bytesNeeded: z.int(),
  /** Null where the engine does not say. */
  bytesFree: z.int().nullable(),
  seconds: z.number(),
  /** Why it cannot be started now; empty when it can. */
  obstacles: z.array(z.string())
})
export type RebuildPlan = z.infer<typeof RebuildPlan>

const Row = z.record(z.string(), z.unknown())

export const Difference = z.object({
  table: z.string(),
  /** The columns that the table is keyed by. */
  key: Row,
  /** The row of either side; null where it has none. */
  live: Row.nullable(),
  fresh: Row.nullable(),
  /** Columns whose values differ. */
  columns: z.array(z.string()),
  /** Positions of the newest events that made it, as `epoch/partition/offset`, at most 10. */
  events: z.array(z.string())
})
export type Difference = z.infer<typeof Difference>

export const VerifyReport = z.object({
  id: z.int(),
  /** Where the fresh tables end, an instant or an offset, whereas the live ones go on; null when both are at one place. */
  until: z.string().nullable(),
  isEqual: z.boolean(),
  tables: z.array(
    z.object({
      table: z.string(),
      liveRows: z.int(),
      freshRows: z.int(),
      buckets: z.int(),
      differentBuckets: z.int(),
      differences: z.int()
    })
  ),
  /** The first of them, over all tables. */
  differences: z.array(Difference),
  /** A few rows that both sides agree on, to be looked at. */
  samples: z.array(z.object({ table: z.string(), row: Row }))
})
export type VerifyReport = z.infer<typeof VerifyReport>

export const SwapReport = z.object({
  id: z.int(),
  /** Events that were caught up before. */
  caughtUp: z.int(),
  /** For how long answers got no new data, in ms; they were not delayed. */
  lateMs: z.number()
})
export type SwapReport = z.infer<typeof SwapReport>

/** What cannot be done as things stand, with what can; nothing was changed. */
export class RebuildRefused extends Error {
  override readonly name: string = 'RebuildRefused'
  /** True where the question itself is wrong, such as a name that there is not. */
  readonly isUsage: boolean

  constructor(sentence: string, { isUsage = false }: { readonly isUsage?: boolean } = {}) {
    super(sentence)
    this.isUsage = isUsage
  }
}

/** A step does not run now, because waits for steps would not learn of it. Try it again. */
export class StepsHeld extends RebuildRefused {
  override readonly name = 'StepsHeld'
}

/** All of them, by the projection's name. Reject with a {@link RebuildRefused} where it cannot be done. */
export type Rebuilds = {
  plan(projection: string, options?: { readonly isFromLog?: boolean }): Promise<RebuildPlan>
  /** Resolves when it is under way; it goes on in the background, over restarts too. */
  start(projection: string, options?: { readonly until?: string; readonly isFromLog?: boolean }): Promise<RebuildStatus>
  /** All rebuilds that there were, the newest first. */
  list(): Promise<RebuildStatus[]>
  pause(projection: string): Promise<RebuildStatus>
  resume(projection: string): Promise<RebuildStatus>
  /** Ends one that was not swapped, and drops its tables. */
  cancel(projection: string): Promise<RebuildStatus>
  /** Compares old and new at the same checkpoint. */
  verify(projection: string): Promise<VerifyReport>
  swap(projection: string, options?: { readonly acceptDifferences?: boolean }): Promise<SwapReport>
  /** Once: the old tables, caught up, serve again. */
  rollback(projection: string): Promise<SwapReport>
  /** Drops the old tables that a swap left, after which it cannot be rolled back. */
  drop(projection: string): Promise<RebuildStatus>
}

/** Imports that the log says were taken back. */
export type ImportUndos = {
  /**
   * Takes one back: its events leave the topic's event table, and all that is made of them is rebuilt without. Resolves when
   * that serves; called again after a crash, it goes on.
   */
  undo(importId: string, topic: string, onProgress: (progress: RebuildProgress) => void): Promise<void>
  /** Rejects while another rebuild, or a full disk, stands in the way of taking one back; nothing is done. */
  requireUndoable(importId: string, topic: string): Promise<void>
  /** Those that are not out of all tables. */
  unfinishedImportUndos(): Promise<readonly { readonly importId: string; readonly topic: string }[]>
}
