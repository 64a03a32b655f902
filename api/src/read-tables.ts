/** Values bound to `{name: Type}` in a statement; never glued into its text. */
export type Parameters = Readonly<Record<string, unknown>>

/**
 * What the API asks of ClickHouse. Statements carry no SETTINGS and no FORMAT clause: the engine adds them.
 * Rejects with a `Refusal`: `engine_busy` when the bounded queue is full, `engine_away` when the engine cannot be
 * reached; anything else is a defect. Aborting `signal` kills the query in the engine.
 */
export type ReadTables = {
  /** The rows of a SELECT as objects by column name; integers wider than 32 bits come as strings. */
  rows(sql: string, parameters: Parameters, options?: { signal?: AbortSignal }): Promise<Record<string, unknown>[]>
  /** The same rows as the UTF-8 bytes of one JSON array of objects, not parsed: for long series. */
  json(sql: string, parameters: Parameters, options?: { signal?: AbortSignal }): Promise<Uint8Array>
}
