/** What ingest asks of PostgreSQL: single statements, each of which is kept whole or not at all. */
export type WriteSide = {
  /** The rows of one statement; values are bound to `$1`, `$2`, …; bigint comes as a string, timestamps as Dates. */
  query<Row extends Record<string, unknown>>(sql: string, values?: readonly unknown[]): Promise<Row[]>
}
