import type { AbortOptions, Parameters, ReadTables as Queries } from '@gamenet/schemas'

/**
 * Queries of the API on ClickHouse. They reject with a `Refusal`: `engine_busy` when the bounded queue is full,
 * `engine_away` when the engine is unavailable; any other error is a defect.
 */
export type ReadTables = Queries & {
  /** Resolves with the same rows as the UTF-8 bytes of one JSON array of objects, not parsed: for long series. */
  json(sql: string, parameters: Parameters, options?: AbortOptions): Promise<Uint8Array>
}
