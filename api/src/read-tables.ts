import type { Readable } from 'node:stream'
import type { AbortOptions, Parameters, ReadTables as Queries } from '@gamenet/schemas'

/**
 * Queries of the API on ClickHouse. They reject with a `Refusal`: `engine_busy` when the bounded queue is full,
 * `engine_away` when the engine is unavailable; any other error is a defect.
 */
export type ReadTables = Queries & {
  /** Resolves with the same rows as the UTF-8 bytes of one JSON array of objects, not parsed: for long series. */
  json(sql: string, parameters: Parameters, options?: ReadOptions): Promise<Uint8Array>
}

/** Queries whose answers are too large for memory. */
export type StreamedTables = ReadTables & {
  /**
   * Resolves with the answer of a SELECT in a file format, at the pace of its reader, once the first bytes are there. A
   * failure after that is an `error` of the stream; destroying the stream kills the statement. Rejects with
   * `engine_busy` while too many streams are open.
   */
  stream(
    sql: string,
    parameters: Parameters,
    options: ReadOptions & { readonly format: StreamFormat; readonly rowGroupRows?: number }
  ): Promise<Readable>
}

/** The engine's names of file formats. */
export type StreamFormat = 'TabSeparatedRawWithNames' | 'JSONEachRow' | 'Parquet' | 'ArrowStream'

/** Limits of one statement, if they are below the engine's own. */
export type StatementLimits = { readonly seconds: number; readonly memoryBytes: number }

type ReadOptions = AbortOptions & {
  readonly limits?: StatementLimits | undefined
  /** Runs the statement as the user of saved questions, who reads the tables of the datasets only. */
  readonly isQuestion?: boolean | undefined
}
