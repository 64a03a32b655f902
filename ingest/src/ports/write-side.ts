/** What ingest asks of PostgreSQL: single statements, each of which is kept whole or not at all. */
export type WriteSide = {
  /** The rows of one statement; values are bound to `$1`, `$2`, …; bigint comes as a string, timestamps as Dates. */
  query<Row extends Record<string, unknown>>(sql: string, values?: readonly unknown[]): Promise<Row[]>
}

/** What those ask of it whose statements belong together. */
export type WriteTransactions = WriteSide & {
  /**
   * Commits what `work` did when it resolves, and none of it when it rejects. `work` must use nothing but what it is
   * given: an embedded PostgreSQL has one connection, and whoever else asks waits until the end.
   */
  transaction<Result>(work: (transaction: WriteSide) => Promise<Result>): Promise<Result>
}
