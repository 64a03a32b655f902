/** Values bound to `{name: Type}` in a statement; never glued into its text. */
export type Parameters = Readonly<Record<string, unknown>>

/**
 * What ingest asks of ClickHouse: only what the log said before, so that it need not remember it. Statements carry no
 * SETTINGS and no FORMAT clause: the engine adds them.
 */
export type ReadTables = {
  /** The rows of a SELECT as objects by column name; integers wider than 32 bits come as strings. */
  rows(sql: string, parameters?: Parameters, options?: { signal?: AbortSignal }): Promise<Record<string, unknown>[]>
}
