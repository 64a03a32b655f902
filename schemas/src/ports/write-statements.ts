/** Single statements on PostgreSQL; each is committed as a whole or not at all. */
export type WriteSide = {
  /**
   * Resolves with the rows of one statement. Values are bound to `$1`, `$2`, …; bigint and numeric are strings,
   * timestamps are Dates.
   */
  query<Row extends Record<string, unknown>>(sql: string, values?: readonly unknown[]): Promise<Row[]>
}

/** Statements and transactions on PostgreSQL. */
export type WriteTransactions = WriteSide & {
  /**
   * Commits the statements of `work` when it resolves, and none of them when it rejects. `work` must use only its
   * argument: an embedded PostgreSQL has one connection, and every other statement waits until the transaction ends.
   */
  transaction<Result>(work: (transaction: WriteSide) => Promise<Result>): Promise<Result>
}
