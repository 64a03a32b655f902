/** What answers ask of PostgreSQL. Rejects with a `Refusal` `engine_away` when it cannot be reached. */
export type WriteSide = {
  /** The rows of one statement; values are bound to `$1`, `$2`, …; bigint comes as a string, timestamps as Dates. */
  query<Row extends Record<string, unknown>>(sql: string, values?: readonly unknown[]): Promise<Row[]>
}
