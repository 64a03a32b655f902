/** A value bound to `$1`, `$2`, …; never glued into a statement. */
export type Values = readonly unknown[]

export type Queries = {
  /** The rows of one statement as objects by column name; bigint and numeric come as strings, timestamps as Dates. */
  query<Row extends Record<string, unknown>>(sql: string, values?: Values): Promise<Row[]>
  /** Runs a file of statements without values, one after the other. */
  script(sql: string): Promise<void>
}

/**
 * PostgreSQL as the service uses it, in the process or a server. Rejects with a `Refusal` `engine_away` when the server
 * cannot be reached, and with PostgreSQL's own error, which has its SQLSTATE as `code`, when it refuses a statement.
 */
export type Postgres = Queries & {
  /** Commits what `work` did when it resolves, and none of it when it rejects. */
  transaction<Result>(work: (transaction: Queries) => Promise<Result>): Promise<Result>
  /**
   * Listens on a channel (`LISTEN`), on a separate connection, until the returned function is called.
   * A connection that breaks is made again. `onListening` is called whenever listening begins, the first time too: what
   * was notified before, or while the server was unavailable, is lost.
   */
  listen(channel: string, onPayload: (payload: string) => void, onListening: () => void): () => Promise<void>
  /**
   * Takes what deleted rows of these tables left behind out of the files. In the process nothing of them is left, in the
   * tables, the write-ahead log or the queue of notifications. A server frees the rows for others, and keeps older copies
   * (write-ahead log, archives, replicas) for as long as it is configured to.
   */
  erase(tables: readonly string[]): Promise<void>
  /** Resolves when a statement can be answered. */
  check(): Promise<void>
  /** Lets what runs finish; idempotent. */
  close(): Promise<void>
}
