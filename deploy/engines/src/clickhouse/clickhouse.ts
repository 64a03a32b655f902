import type { Readable } from 'node:stream'

/*
 * statement   one SQL statement without SETTINGS and without FORMAT; the engine adds both
 * lane        a way into the engine with its own limits; lanes do not wait for each other
 * slot        one connection of a lane; a statement holds it until the engine has ended the statement
 */

/** Values bound to `{name: Type}` in a statement; never concatenated into its text. */
export type Parameters = Readonly<Record<string, unknown>>

/**
 * One way into ClickHouse. Rejects with a `ClickHouseError`, or with a `Refusal` when the engine is busy or
 * unavailable.
 */
export type Lane = {
  /**
   * Runs a statement without an answer: DDL, INSERT … SELECT, INSERT … VALUES. An aborted statement rejects with the
   * signal's reason when the engine has killed it, possibly after it has completed.
   */
  execute(sql: string, parameters?: Parameters, options?: AbortOptions): Promise<void>
  /** Returns the rows of a SELECT as objects by column name; integers wider than 32 bits are strings. */
  rows(sql: string, parameters?: Parameters, options?: AbortOptions): Promise<Record<string, unknown>[]>
  /** Returns the same rows as the UTF-8 bytes of one JSON array of objects, one per line, not parsed. */
  json(sql: string, parameters?: Parameters, options?: ReadOptions): Promise<Uint8Array>
  /**
   * Returns the answer of a SELECT as bytes in a format, at the pace of its reader, so that its size does not matter.
   * Resolves with the first bytes: a statement that fails at once rejects. A later failure is an `error` of the stream.
   * Destroying the stream kills the statement. The stream holds its connection until its end: see `readers`.
   */
  stream(sql: string, parameters: Parameters, options: StreamOptions): Promise<Readable>
  /**
   * Inserts lines of JSONCompactEachRow, or a block of columns; resolves when they are stored. A body with an invalid
   * row is refused as a whole. The bytes must not change until the promise settles.
   */
  insert(table: string, columns: readonly string[], body: Uint8Array | ColumnBlock): Promise<void>
  /**
   * Waits until this server has all rows of tables that any of its replicas has acknowledged before. The other lanes
   * than those of answers do this before each statement, for the tables that it reads. Nothing on plain tables.
   */
  sync(tables: readonly string[]): Promise<void>
}

/** Rows by column, in the format Native, with exactly the names and types of the columns that are inserted. */
export type ColumnBlock = { readonly columns: readonly string[]; readonly native: Uint8Array }

export type AbortOptions = {
  /** Kills the statement in the engine. A query rejects at once with the signal's reason. */
  readonly signal?: AbortSignal
}

export type ReadOptions = AbortOptions & {
  /** Limits of this statement, if they are below those of the lane. */
  readonly limits?: { readonly seconds: number; readonly memoryBytes: number } | undefined
  /** Runs the statement as the user of saved questions, who reads the tables of the datasets only. */
  readonly isQuestion?: boolean | undefined
}

export type StreamOptions = ReadOptions & {
  readonly format: FileFormat
  /** Rows of a row group of Parquet; default: that of `STREAM_SETTINGS`. */
  readonly rowGroupRows?: number | undefined
}

/** Formats of a stream: tables in files, as other programs read them. */
export const FILE_FORMATS = [
  'CSVWithNames',
  'TabSeparatedRawWithNames',
  'JSONEachRow',
  'Parquet',
  'ArrowStream'
] as const
export type FileFormat = (typeof FILE_FORMATS)[number]

export const LANE_NAMES = ['loader', 'projections', 'rebuild', 'readers', 'exports', 'control'] as const
export type LaneName = (typeof LANE_NAMES)[number]

/** Returns a value for each lane. */
export const byLane = <Value>(of: (name: LaneName) => Value): Readonly<Record<LaneName, Value>> =>
  Object.fromEntries(LANE_NAMES.map((name) => [name, of(name)])) as Record<LaneName, Value>

/**
 * ClickHouse, a server or a child of this process. The streams of `readers` run on the few connections of `exports`,
 * so that slow clients delay no answer; further streams are refused with `engine_busy`.
 */
export type ClickHouse = { readonly [name in LaneName]: Lane } & {
  /** Returns the engine's version from `SELECT version()`. */
  version(): Promise<string>
  /** Returns figures for metrics without a query. */
  stats(): ClickHouseStats
  /** Returns the addresses of a list of replicas. */
  replicas?(): readonly Replica[]
  /** Returns the process of an embedded engine. */
  process?(): EngineProcess
  /**
   * Lets running statements finish for a few seconds, kills the rest, and releases the engine. Idempotent; never
   * rejects.
   */
  close(): Promise<void>
}

/** An address of the list. `fault`: why it cannot be used, at the last look. */
export type Replica = { readonly address: string; readonly isPinned: boolean; readonly fault: string | undefined }

/** The process of an embedded engine. */
export type EngineProcess = {
  /** Undefined between two processes. */
  readonly pid: number | undefined
  readonly port: number | undefined
  readonly restarts: number
  /** The version of Landlock that confines it; 0 if nothing does. */
  readonly landlock: number
}

export type LaneStats = {
  /** Connections of this lane. */
  readonly slots: number
  readonly running: number
  readonly waiting: number
  /** Statements that ended since the start, successfully or not. */
  readonly finished: number
  readonly failed: number
  /** Statements that were refused because the queue was full. */
  readonly refused: number
  /** Reads aborted by their callers. */
  readonly aborted: number
}
export type ClickHouseStats = { readonly lanes: { readonly [name in LaneName]: LaneStats } }

/** A statement that ClickHouse refused, or whose answer was lost. */
export class ClickHouseError extends Error {
  /** ClickHouse's own error code (62: syntax, 241: memory limit, …); absent for other failures. */
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
