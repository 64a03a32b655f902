/** Values bound to `{name: Type}` in a statement; never concatenated into its text. */
export type Parameters = Readonly<Record<string, unknown>>

/** Aborting the signal kills the statement in the engine. */
export type AbortOptions = { readonly signal?: AbortSignal }

/** Queries on ClickHouse. Statements have no SETTINGS and no FORMAT clause: the engine adds them. */
export type ReadTables = {
  /** Resolves with the rows of a SELECT as objects by column name; integers wider than 32 bits are strings. */
  rows(sql: string, parameters?: Parameters, options?: AbortOptions): Promise<Record<string, unknown>[]>
}
