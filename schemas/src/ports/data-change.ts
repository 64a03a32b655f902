/**
 * Readers look for changes in this many versions (microseconds) below the newest one of `data_change`: with several
 * projectors a change can become visible after a change with a higher version. A projector that is late by more than
 * half of it announces the change with a newer version.
 */
export const CHANGE_OVERLAP_VERSIONS = 60_000_000

/** A change of a projection's rows: a key or `*`, a half-open span of milliseconds since 1970, and its version. */
export type VersionedChange = {
  readonly projection: string
  readonly key: string
  readonly fromMs: number
  readonly toMs: number
  readonly version: number
}

/** Reads `data_change`. */
export type DataChanges = {
  /** Resolves with the newest instant in which a change begins, in ms since 1970; 0 if there is none. */
  newestBegin(): Promise<number>
  /**
   * Resolves with the changes above a version. Spans are widened to whole hours, those that end after `minutesFromMs`
   * to whole minutes; of changes with the same key and span, the newest.
   */
  since(version: number, minutesFromMs: number): Promise<readonly VersionedChange[]>
}
