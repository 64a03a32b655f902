import type { ServingTables } from '@gamenet/schemas'
import { z } from 'zod'

/*
 * rebuild     fills fresh tables with the statements of the live ones, while these serve
 * unit        the requested projection and all that read its tables: rebuilt and swapped together
 * generation  `<table>__<id>`: the tables that a rebuild fills; after the swap the former generation stays until it is
 *             dropped
 * fill        consumes all loaded events, then catches up, never ahead of the live tables
 */

/** What leads from which state to which: `states.ts`. */
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
  /** The projection that is being filled; empty if none is. */
  projection: z.string(),
  /** Consumed events and all events, summed over the unit's projections. */
  done: z.int(),
  total: z.int(),
  /** Completed share of the work, 0 to 1: events weighted by their cost. */
  share: z.number(),
  /** Over the last minute; null before the first step. */
  eventsPerSecond: z.number().nullable(),
  /** Remaining time, by the measured cost of each projection; null before the first measurement. */
  etaSeconds: z.number().nullable()
})
export type RebuildProgress = z.infer<typeof RebuildProgress>

export const Verification = z.object({
  verifiedAt: Instant,
  isEqual: z.boolean(),
  /** Number of rows that differ. */
  differences: z.int()
})
export type Verification = z.infer<typeof Verification>

export const RebuildStatus = z.object({
  id: z.int(),
  projection: z.string(),
  unit: z.array(z.string()).readonly(),
  /**
   * The tables that answers do not read, by the name in statements: the rebuild's own; after a swap the former ones.
   */
  tables: z.record(z.string(), z.string()),
  state: RebuildState,
  /** Why it failed; null otherwise. */
  reason: z.string().nullable(),
  /** An instant or an offset; null when it goes to the end. */
  until: z.string().nullable(),
  /** `until` is an instant of recording: it has the events that were known then. */
  isByRecording: z.boolean(),
  isFromLog: z.boolean(),
  /** Most events per second of the fill; null without a limit. */
  rate: z.number().nullable(),
  /** The only key that it corrects, such as a board; null: it fills all keys. */
  key: z.string().nullable(),
  /** The import that it undoes; null otherwise. */
  retracts: z.string().nullable(),
  /** Its swap and its end need no operator. */
  isAutomatic: z.boolean(),
  startedAt: Instant,
  changedAt: Instant,
  progress: RebuildProgress,
  verification: Verification.nullable()
})
export type RebuildStatus = z.infer<typeof RebuildStatus>

export const RebuildPlan = z.object({
  projection: z.string(),
  /** The event table that is reloaded from the log first; null if the serving one is read. */
  fromLog: z
    .object({
      topic: z.string(),
      writes: z.object({ table: z.string(), rows: z.int(), bytes: z.int() }),
      events: z.int(),
      /** By the typical rate of loading. */
      seconds: z.number()
    })
    .nullable(),
  /** In the order of the fill: the projection, then its dependents. */
  unit: z.array(
    z.object({
      projection: z.string(),
      /** Tables that it reads. */
      reads: z.array(z.string()),
      writes: z.array(z.object({ table: z.string(), rows: z.int(), bytes: z.int() })),
      events: z.int(),
      /** By a sample measured at the call; null if there is nothing to sample. */
      seconds: z.number().nullable()
    })
  ),
  /** Includes the events of the load from the log. */
  events: z.int(),
  /** Bytes of the fresh tables, in addition to the old ones, with space for merges. */
  bytesNeeded: z.int(),
  /** Null if the engine does not report it. */
  bytesFree: z.int().nullable(),
  seconds: z.number(),
  /** Rows of old and new tables that a preview reads at least once. */
  previewRows: z.int(),
  /** Reasons why it cannot start now; empty if it can. */
  obstacles: z.array(z.string())
})
export type RebuildPlan = z.infer<typeof RebuildPlan>

const Row = z.record(z.string(), z.unknown())

export const Difference = z.object({
  table: z.string(),
  /** The key columns of the table. */
  key: Row,
  /** The row of each side; null if it has none. */
  live: Row.nullable(),
  fresh: Row.nullable(),
  /** Columns whose values differ. */
  columns: z.array(z.string()),
  /** Positions of the newest events of the row, as `topic/epoch/partition/offset`, at most 10. */
  events: z.array(z.string())
})
export type Difference = z.infer<typeof Difference>

export const VerifyReport = z.object({
  id: z.int(),
  /** The instant or offset at which the fresh tables end; null if both sides are at one position. */
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
  /** The first differences, over all tables. */
  differences: z.array(Difference),
  /** A few equal rows, for inspection. */
  samples: z.array(z.object({ table: z.string(), row: Row }))
})
export type VerifyReport = z.infer<typeof VerifyReport>

/** Rows of one subject that a swap changes, such as those of a player on a board, or of a title on a day. */
export const ChangedSubject = z.object({
  projection: z.string(),
  table: z.string(),
  key: Row,
  /** Number of rows that differ. */
  rows: z.int(),
  /** Of these rows in both tables. */
  hash: z.string()
})
export type ChangedSubject = z.infer<typeof ChangedSubject>

/** What a swap would change, at one position of the log. */
export const SwapDifference = z.object({
  rebuild: z.object({ id: z.int(), projection: z.string(), startedAt: Instant }),
  /** The only key whose rows are compared; null: all keys. */
  key: z.string().nullable(),
  comparedAt: Instant,
  /** The position, by topic. */
  position: z.record(z.string(), z.array(z.object({ epoch: z.int(), partition: z.int(), next: z.int() }))),
  /** By the number of rows, the most first. */
  subjects: z.array(ChangedSubject),
  /** Number of subjects, also of those that are not listed. */
  subjectCount: z.int()
})
export type SwapDifference = z.infer<typeof SwapDifference>

/** The tables of both sides of a comparison; nothing writes them while it runs. */
export type ComparedTables = { readonly live: ServingTables; readonly fresh: ServingTables }

export const SwapReport = z.object({
  id: z.int(),
  /** Events consumed before the swap. */
  caughtUp: z.int(),
  /** How long answers had no new data, in ms; no answer was delayed. */
  lateMs: z.number()
})
export type SwapReport = z.infer<typeof SwapReport>

/** An operation is impossible in the current state. The message names the next step; nothing was changed. */
export class RebuildRefused extends Error {
  override readonly name: string = 'RebuildRefused'
  /** True if the request itself is wrong, such as an unknown name. */
  readonly isUsage: boolean

  constructor(sentence: string, { isUsage = false }: { readonly isUsage?: boolean } = {}) {
    super(sentence)
    this.isUsage = isUsage
  }
}

/** A step does not run now, because waits for steps would miss it. The caller retries. */
export class StepsHeld extends RebuildRefused {
  override readonly name = 'StepsHeld'
}

/**
 * Operations on rebuilds, by the name of the projection, or `all` for all of them. They reject with a
 * {@link RebuildRefused} if it is impossible.
 */
export type Rebuilds = {
  plan(projection: string, options?: { readonly isFromLog?: boolean }): Promise<RebuildPlan>
  /**
   * Resolves when the rebuild has begun; it continues in the background, also after restarts. With a `key`, it corrects
   * the rows of that key, and swaps them in by itself.
   */
  start(
    projection: string,
    options?: {
      readonly until?: string
      readonly recordedUntil?: string
      readonly isFromLog?: boolean
      readonly rate?: number
      readonly key?: string
    }
  ): Promise<RebuildStatus>
  /** Returns all rebuilds, past ones too, the newest first. */
  list(): Promise<RebuildStatus[]>
  pause(projection: string): Promise<RebuildStatus>
  /** Sets the most events per second of the fill, also of a paused one, which goes on; 0 pauses it. */
  rate(projection: string, eventsPerSecond: number): Promise<RebuildStatus>
  resume(projection: string): Promise<RebuildStatus>
  /** Ends a rebuild that was not swapped, and drops its tables. */
  cancel(projection: string): Promise<RebuildStatus>
  /** Compares old and new tables at one position. */
  verify(projection: string): Promise<VerifyReport>
  /** Compares old and new tables at one position, and calls `use` with what differs while both are unchanged. */
  preview<Result>(
    projection: string,
    options: { readonly key?: string },
    use: (difference: SwapDifference, tables: ComparedTables) => Promise<Result>
  ): Promise<Result>
  /** With `expected` it compares again: what differs must be in this preview, except by later events. */
  swap(
    projection: string,
    options?: { readonly acceptDifferences?: boolean; readonly expected?: SwapDifference }
  ): Promise<SwapReport>
  /** Undoes a swap, once: the old tables catch up and serve again. */
  rollback(projection: string): Promise<SwapReport>
  /** Drops the old tables of a swap, which then cannot be rolled back. */
  drop(projection: string): Promise<RebuildStatus>
}

/** Undoes imports whose undo is in the log. */
export type ImportUndos = {
  /**
   * Deletes the import's events from the topic's event table and rebuilds all tables that depend on them. Resolves when
   * these serve; a call after a crash resumes.
   */
  undo(importId: string, topic: string, onProgress: (progress: RebuildProgress) => void): Promise<void>
  /** Rejects if another rebuild or a full disk prevents the undo; changes nothing. */
  requireUndoable(importId: string, topic: string): Promise<void>
  /** Returns the undone imports that some table still contains. */
  unfinishedImportUndos(): Promise<readonly { readonly importId: string; readonly topic: string }[]>
}
