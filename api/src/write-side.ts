/** Values bound to `$1`, `$2`, …; never glued into a statement. */
type Values = readonly unknown[]

/**
 * What the API asks of PostgreSQL: single statements, each of which is kept whole or not at all. Rejects with a
 * `Refusal` `engine_away` when the server cannot be reached; anything else is a defect.
 */
export type WriteSide = {
  /** The rows of one statement; bigint and numeric come as strings, timestamps as Dates, json as what it says. */
  query<Row extends Record<string, unknown>>(sql: string, values?: Values): Promise<Row[]>
}

/** What those ask of it whose statements belong together. */
export type WriteTransactions = WriteSide & {
  /**
   * Commits what `work` did when it resolves, and none of it when it rejects. `work` must use nothing but what it is
   * given: an embedded PostgreSQL has one connection, and whoever else asks waits until the end.
   */
  transaction<Result>(work: (transaction: WriteSide) => Promise<Result>): Promise<Result>
}

/** What PostgreSQL tells while it is listened to: see `listen` of the engine. */
export type WriteChanges = {
  listen(channel: string, onPayload: (payload: string) => void, onListening: () => void): () => Promise<void>
}
