/*
 * statement   one SQL statement without SETTINGS and without FORMAT; the engine adds both
 * lane        a way into the engine with its own limits; what runs in one lane does not wait for another
 * slot        one connection of a lane; a statement holds it until the engine itself is done with it
 */

/** Values bound to `{name: Type}` in a statement; never glued into its text. */
export type Parameters = Readonly<Record<string, unknown>>

/** One way into ClickHouse. Rejects with a `ClickHouseError`, or with a `Refusal` when the engine is busy or away. */
export type Lane = {
  /**
   * Runs a statement that answers nothing: DDL, INSERT … SELECT, INSERT … VALUES. One that is aborted rejects with the signal's
   * reason when the engine has killed it, which may be when it is done.
   */
  execute(sql: string, parameters?: Parameters, options?: AbortOptions): Promise<void>
  /** The rows of a SELECT as objects by column name; integers wider than 32 bits come as strings. */
  rows(sql: string, parameters?: Parameters, options?: AbortOptions): Promise<Record<string, unknown>[]>
  /** The same rows as the UTF-8 bytes of one JSON array of objects, not parsed. */
  json(sql: string, parameters?: Parameters, options?: AbortOptions): Promise<Uint8Array>
  /**
   * Inserts lines of JSONCompactEachRow; resolves when they are stored. A body with a row that does not fit is
   * refused as a whole. The bytes must not change until the promise settles.
   */
  insert(table: string, columns: readonly string[], body: Uint8Array): Promise<void>
}

export type AbortOptions = {
  /** Kills the statement in the engine; a question rejects at once with the signal's reason. */
  readonly signal?: AbortSignal
}

export const LANE_NAMES = ['loader', 'projections', 'rebuild', 'readers', 'control'] as const
export type LaneName = (typeof LANE_NAMES)[number]

/** ClickHouse as the service uses it, in the process or over HTTP. */
export type ClickHouse = { readonly [name in LaneName]: Lane } & {
  /** The engine's version, as `SELECT version()` says it. */
  version(): Promise<string>
  /** Figures for metrics, free of cost. */
  stats(): ClickHouseStats
  /** Lets what runs finish for a few seconds, kills what is left, and releases the engine. Idempotent; never rejects. */
  close(): Promise<void>
}

export type LaneStats = {
  /** Connections of this lane. */
  readonly slots: number
  readonly running: number
  readonly waiting: number
  /** Statements that were finished, well or not, since the start. */
  readonly finished: number
  readonly failed: number
  /** Statements that were refused because too many waited already. */
  readonly refused: number
  /** Reads whose caller went away. */
  readonly aborted: number
}
export type ClickHouseStats = { readonly lanes: { readonly [name in LaneName]: LaneStats } }

/** A statement that ClickHouse refused, or whose answer was lost on the way. */
export class ClickHouseError extends Error {
  /** ClickHouse's own error code (62: syntax, 241: memory limit, …); absent when the failure is not its own. */
  readonly code: number | undefined
  /** The beginning of the statement, for the log. */
  readonly statement: string

  constructor(message: string, options: { code?: number | undefined; sql?: string; cause?: unknown } = {}) {
    const statement = headOf(options.sql ?? '')
    super(statement === '' ? message : `${message} [in: ${statement}]`, { cause: options.cause })
    this.name = 'ClickHouseError'
    this.code = options.code
    this.statement = statement
  }
}

const STATEMENT_HEAD_LENGTH = 160

const headOf = (sql: string): string => {
  const line = sql
    .slice(0, STATEMENT_HEAD_LENGTH * 4)
    .replace(/\s+/g, ' ')
    .trim()
  return line.length <= STATEMENT_HEAD_LENGTH ? line : `${line.slice(0, STATEMENT_HEAD_LENGTH)}…`
}
