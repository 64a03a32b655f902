/** Values bound to `$1`, `$2`, …; never concatenated into a statement. */
export type Values = readonly unknown[]

export type Queries = {
  /**
   * Returns the rows of one statement as objects by column name; bigint and numeric are strings, timestamps are Dates.
   */
  query<Row extends Record<string, unknown>>(sql: string, values?: Values): Promise<Row[]>
  /** Runs a file of statements without values in sequence. */
  script(sql: string): Promise<void>
}

export type PoolStats = {
  readonly used: number
  readonly idle: number
  /** Statements that wait for a connection. */
  readonly waiting: number
  /** Listeners that get no notifications: they poll, or cannot connect. */
  readonly deafListeners: number
}

/**
 * PostgreSQL, in the process or as a server. Rejects with a `Refusal` `engine_away` when the server is unavailable, and
 * with PostgreSQL's own error, with its SQLSTATE as `code`, when it refuses a statement.
 */
export type Postgres = Queries & {
  /** Commits the statements of `work` when it resolves, and none of them when it rejects. */
  transaction<Result>(work: (transaction: Queries) => Promise<Result>): Promise<Result>
  /**
   * Listens on a channel (`LISTEN`) on a separate connection, until the returned function is called. A broken
   * connection is replaced. `onListening` is called whenever listening begins, also the first time: earlier
   * notifications, and those sent while the server was unavailable, are lost.
   */
  listen(channel: string, onPayload: (payload: string) => void, onListening: () => void): () => Promise<void>
  /**
   * Removes the remains of deleted rows of these tables from the files. Embedded: from the tables, the write-ahead log
   * and the queue of notifications. A server frees the space of the rows, and keeps older copies (write-ahead log,
   * archives, replicas) as configured.
   */
  erase(tables: readonly string[]): Promise<void>
  /** The pool of a server; absent if it is embedded. */
  stats?(): PoolStats
  /** Resolves when a statement can be answered. */
  check(): Promise<void>
  /** Lets running work finish; idempotent. */
  close(): Promise<void>
}
