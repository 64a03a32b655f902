/** Values bound to `{name: Type}` in a statement; never glued into its text. */
export type Parameters = Readonly<Record<string, unknown>>

/** Kills the statement in the engine when it aborts. */
export type AbortOptions = { readonly signal?: AbortSignal }

/**
 * What the projector asks of ClickHouse. Statements carry no SETTINGS clause: the engine adds its limits.
 * Calls on one `Tables` run one after the other; the loader and the projections have one each.
 */
export type Tables = {
  /** Runs a statement that answers nothing (DDL, INSERT … SELECT). */
  execute(sql: string, parameters?: Parameters, options?: AbortOptions): Promise<void>
  /** The rows of a SELECT as objects by column name; integers wider than 32 bits come as strings. */
  rows(sql: string, parameters?: Parameters, options?: AbortOptions): Promise<Record<string, unknown>[]>
  /** The same rows as the UTF-8 bytes of one JSON array of objects, for whoever parses them elsewhere. */
  json(sql: string, parameters?: Parameters, options?: AbortOptions): Promise<Uint8Array>
  /** Inserts lines of JSONCompactEachRow, all or none per ClickHouse block; resolves when they are stored. */
  insert(table: string, columns: readonly string[], body: Uint8Array): Promise<void>
}
